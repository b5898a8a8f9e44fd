"""Warnings of vfltree. Errors are ValueError and TypeError, or of `vflparty.errors` and `vflcrypto.errors`."""


class NotEncryptedWarning(UserWarning):
    """Training ran with encryption="none": every passive party could read gradients, and so labels."""


class RowsLeftOutWarning(UserWarning):
    """Some party has rows that another lacks; training uses the common ones."""


class InterruptedFitWarning(UserWarning):
    """Ctrl-C ended a training: the model holds the rounds that were finished."""
