"""Small tables and estimators for tests, and their weights."""

import numpy as np
import pandas as pd

from tests.nn import small
from vflnn import VFLClassifier

FAST = {"lr": 0.05, "batch_size": 32, "random_state": 3}


def classifier(epochs=4, **changes):
    return VFLClassifier(epochs=epochs, **{**FAST, **changes})


def table(n_rows=90, n_features=6, n_classes=3, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, n_features))
    y = np.digitize(X.sum(axis=1), np.linspace(-1.5, 1.5, n_classes + 1)[1:-1])
    return X, y


def halves(X, index=None):
    """The same columns as two frames, the first party's with IDs."""
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])], index=index)
    half = X.shape[1] // 2
    return {"active": frame.iloc[:, :half], "passive": frame.iloc[:, half:]}


def weights(model):
    return {
        f"{part}.{name}": value.numpy()
        for part, module in {**model.bottoms_, "top": model.top_}.items()
        for name, value in module.state_dict().items()
    }


def same(one, other):
    return small.same(weights(one), weights(other))
