"""scikit-learn's door to split training: `VFLClassifier` and `VFLRegressor`."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import torch
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from .fitting import CutNetworkEstimator


class VFLClassifier(ClassifierMixin, CutNetworkEstimator):
    """A neural network cut between parties, for classes.

    Every party's bottom model turns its columns into an output; the active party's top model joins the outputs into one
    score per class. Trained by split learning: outputs up, gradients down, nothing encrypted. **Without a defence the
    gradients show every passive party the labels** (docs/neural.md).

    Parameters
    ----------
    bottom : what a party's model is: a name of `vflnn.models.BOTTOM_MODELS`, "module:function", (one of them, dict of
        options), a function of (shape of one sample, width), or a torch.nn.Module, from whose weights training starts.
        A dict party -> one of them for models that differ. Modules, and functions that cannot be imported, need
        network="inprocess".
    top : the same for the model that joins the outputs, of `vflnn.models.TOP_MODELS`: "sum" (aggVFL), "linear"
        (splitVFL) and others. A function gets (widths of the outputs, number of scores).
    cut_width : width of the parties' outputs, or a dict party -> width. None: as many as classes.
    protocol, protocol_options : a name of `vflnn.protocols.PROTOCOLS`, and a dict.
    compressor : how outputs are written: a name of `vflnn.protocols.COMPRESSORS`, or (name, options).
    epochs : passes over the rows.
    lr : learning rate of every party's optimiser.
    batch_size : rows per exchange; None takes all rows at once.
    optimizer : a name of `torch.optim` in any case, or (name, options).
    scheduler : how the learning rate falls: "inverse_sqrt" (lr / sqrt(epoch), epochs from 0; that of published runs,
        whose learning rates suit it), "constant", a name of `torch.optim.lr_scheduler`, or (name, options).
    shuffle : draw new batches every epoch, the same at every party.
    partition : dict party -> columns, the first party is the active one. None: two parties, half the columns each.
    network : "inprocess", or "process" for a process per party; the weights are the same, bit for bit.
    timeout : seconds that a party's process may be silent.
    device : "cpu", "cuda", "cuda:1", or "auto".
    n_jobs : threads of every party; None is 1, the fastest for small networks, -1 all cores. Equal numbers give
        equal bits.
    callbacks : functions of an `EpochRecord`, called after every epoch.
    random_state : seeds weights, batches and dropout, of every party separately.
    verbose : 1 shows a progress bar.

    Attributes
    ----------
    classes_ : the labels, sorted.
    parties_ : party names, the active one first.
    n_features_in_per_party_ : dict party -> number of features.
    history_ : DataFrame, a row per epoch: loss and accuracy (means over its batches, each before its update), on the
        `eval_set` evaluation_loss and evaluation_score (accuracy), seconds.
    steps_ : the same per batch.
    n_epochs_ : epochs trained, over all calls of `partial_fit`.
    bottoms_, top_, joined() : the trained models, each party's or in one piece.
    traffic_ : DataFrame of messages and bytes per party and kind.
    costs_ : dict: rounds, bytes, steps, seconds per phase.
    training_id_ : drawn once per call of `fit` or `partial_fit`; all files that `save` writes carry it.
    """

    _no_targets = np.zeros(0, dtype=np.int64)
    _score_name = "accuracy"

    def fit(self, X: Any, y: Any, *, eval_set: Any = None) -> Self:
        """Train.

        X : DataFrame, array or CSR matrix of all columns, or a dict party -> one of these or an array of images
            (n_rows, channels, height, width). With DataFrames in a dict the index is the row ID: the parties' rows are
            matched by it. Values must be finite; they are taken as float32.
        y : (n_rows,) labels of any kind scikit-learn accepts, in the order of the active party's rows.
        eval_set : a pair (X, y) to evaluate after every epoch.
        """
        return self._fit(X, y, eval_set)

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, *, epochs: int = 1, eval_set: Any = None
    ) -> Self:
        """Go on for some epochs, as if there had been no pause: weights, optimisers and random numbers stand where they
        stood. A protocol that remembers batches (CELU-VFL) starts with none.

        classes : all labels that will come, for the first call; None: those of y.
        """
        self._coming = None if classes is None else np.unique(column_or_1d(classes))
        try:
            return self._partial_fit(X, y, eval_set, epochs)
        finally:
            del self._coming

    def predict(self, X: Any) -> np.ndarray:
        """Labels, (n_rows,)."""
        scores = self._scores(X)
        return np.asarray(self.classes_[scores.argmax(axis=1)])

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities, float32 (n_rows, n_classes), columns in the order of `classes_`."""
        return torch.softmax(torch.from_numpy(self._scores(X)), dim=1).numpy()

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of `predict_proba`."""
        return torch.log_softmax(torch.from_numpy(self._scores(X)), dim=1).numpy()

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores, (n_rows, n_classes); of two classes the second's minus the first's, (n_rows,)."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def _class_scores(self, X: Any) -> np.ndarray:
        return self._scores(X)

    @property
    def _n_outputs(self) -> int:
        return len(self.classes_)

    def _see(self, y: np.ndarray) -> None:
        check_classification_targets(y)
        coming = getattr(self, "_coming", None)
        found = np.unique(y) if coming is None else coming
        if len(found) < 2:
            raise ValueError(f"there is one class, {found.tolist()}: a classifier needs two classes at least")
        self.classes_ = found

    def _targets(self, y: np.ndarray) -> np.ndarray:
        known = np.isin(y, self.classes_)
        if not known.all():
            raise ValueError(
                f"y holds labels that training did not see, {np.unique(y[~known])[:3].tolist()}; there are "
                f"{self.classes_[:10].tolist()}, and `classes` of the first partial_fit names more"
            )
        return np.searchsorted(self.classes_, y).astype(np.int64)


class VFLRegressor(RegressorMixin, CutNetworkEstimator):
    """A neural network cut between parties, for numbers. Parameters and attributes as `VFLClassifier`, but:

    The active party trains on targets of mean 0 and deviation 1, so that a learning rate suits whatever their unit is;
    losses are squared errors of these, predictions come back in the unit of y. evaluation_score is R2; there is no
    accuracy. cut_width : None means 1.
    """

    _no_targets = np.zeros((0, 1), dtype=np.float32)
    _score_name = "R2"

    def fit(self, X: Any, y: Any, *, eval_set: Any = None) -> Self:
        """Train; y : (n_rows,) finite numbers. See `VFLClassifier.fit`."""
        return self._fit(X, y, eval_set)

    def partial_fit(self, X: Any, y: Any, *, epochs: int = 1, eval_set: Any = None) -> Self:
        """Go on for some epochs, see `VFLClassifier.partial_fit`; targets keep the mean and deviation of the first."""
        return self._partial_fit(X, y, eval_set, epochs)

    def predict(self, X: Any) -> np.ndarray:
        """Predicted values, float64 (n_rows,)."""
        scores = self._scores(X)
        return scores[:, 0].astype(np.float64) * self._scale + self._mean

    @property
    def _n_outputs(self) -> int:
        return 1

    def _see(self, y: np.ndarray) -> None:
        values = _finite(y)
        self._mean, self._scale = float(values.mean()), float(values.std()) or 1.0

    def _targets(self, y: np.ndarray) -> np.ndarray:
        return ((_finite(y) - self._mean) / self._scale).astype(np.float32)[:, None]


def _finite(y: np.ndarray) -> np.ndarray:
    """Targets in float64, finite."""
    try:
        values = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"y holds values that are not numbers: {error}; classes are for VFLClassifier"
        ) from error
    if not np.isfinite(values).all():
        raise ValueError("y contains infinity or NaN")
    return values
