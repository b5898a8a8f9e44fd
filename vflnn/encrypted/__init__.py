"""Training of the cut under encryption, with a coordinator: neither outputs nor their gradients are seen by anybody.

For networks whose scores are the sum of the parties' outputs, Z = sum_k H_k (aggVFL), and the one-vs-rest Taylor loss
`taylor_logit`: its derivative by a score, (z - 2y)/4 with y in {-1, +1}, is linear, so additions alone form it under
encryption. VFLAIR's "VFL with homomorphic encryption"; Yang et al. 2019, section 2.4. One batch of n rows::

    P_k -> A      [[H_k]]
    A -> P_k      [[D]],  D = sum_k H_k - 2 y, blinded anew; 4 n times the gradient by the scores
    all -> C      [[sum_ic D_ic dH_ic/dtheta + R]],  R uniform modulo n, one per parameter, never reused
    C -> all      the same, decrypted; everybody takes off its mask, divides by 4 n, and takes its own optimiser's step

======== ========================================================= ==================================================
party    learns                                                    does not learn
======== ========================================================= ==================================================
active   its own gradient in the clear, per batch; how many        outputs, gradients, weights and samples of others
         parameters each party trains; with `watch_loss` the loss  in training
         of every batch; outputs of rows to evaluate, once
passive  its own gradient in the clear, per batch; which rows a    labels, the loss, the derivatives by its outputs,
         batch has; number of rows and classes, optimiser          everything of the other parties
coordi-  how many parameters each party trains, number of steps,   anything else: what it decrypts is uniform modulo n
nator    sizes and times
======== ========================================================= ==================================================

Against honest-but-curious parties that do not collude; what a party that deviates could have opened is said in
`vflparty.coordinator`. The active party carries masked values between the others and the coordinator: they are uniform
to it as well.

**Gradients of small batches give labels away.** A party knows its Jacobian, so its gradient is a system of linear
equations for D, with as many equations as it trains parameters and n times the number of classes unknowns. A batch must
therefore have 64 rows per parameter and class, unless `allow_small_batches=True`: a rule of thumb, which full batches
keep too. A gradient of many rows still tells how the labels go with the party's own columns.

**Evaluation is a prediction**: after the last epoch every passive party gives the active party its outputs of the rows
to evaluate in the clear, each row once.
"""

from .active import EncryptedActiveParty
from .passive import EncryptedPassiveParty
from .terms import Terms

__all__ = ["EncryptedActiveParty", "EncryptedPassiveParty", "Terms"]
