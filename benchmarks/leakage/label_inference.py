"""Which label does a row have? What a passive party infers from the row sets of nodes and a few labels that it knows.

Rows that trees keep together tend to share a label. The party describes each row by the nodes it saw the row in, small
nodes counting more, and fits a logistic regression to the rows whose labels it knows. Beside it the same on its own
features alone, which it could always do. In the manner of ID2Graph (Takahashi et al., arXiv 2307.10318), which groups
rows by shared nodes and needs no label.

Input: a `PassiveView` and the known labels, nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import QuantileTransformer

from .views import PassiveView

N_KNOWN, N_DRAWS = 20, 20
CHOICES = {"max_iter": 2000}


@dataclass(frozen=True)
class Inferred:
    """Of the labels that were not known: share of right ones at the threshold 1/2, and area under the curve."""

    accuracy: float
    auc: float


def feature_table(view: PassiveView) -> np.ndarray:
    """The party's own columns on a common scale."""
    scaled = QuantileTransformer(n_quantiles=min(1000, len(view.features)), output_distribution="normal")
    return np.asarray(scaled.fit_transform(np.nan_to_num(view.features)))


def node_table(view: PassiveView, n_rounds: int | None = None) -> sp.csr_matrix:
    """A column per node, in which its rows hold 1 / sqrt(size), on the scale of one standard column a round."""
    n_rows = len(view.features)
    nodes = [
        rows
        for of_round in view.rounds[:n_rounds]
        for rows in of_round.values()
        if 1 < len(rows) < n_rows  # the root tells nothing
    ]
    if not nodes:
        return sp.csr_matrix((n_rows, 1))
    sizes = np.array([len(rows) for rows in nodes])
    weights = np.repeat(np.sqrt(n_rows / sizes / max(len(view.rounds[:n_rounds]), 1)), sizes)
    columns = np.repeat(np.arange(len(nodes)), sizes)
    return sp.csr_matrix((weights, (np.concatenate(nodes), columns)), shape=(n_rows, len(nodes)))


def infer(table: np.ndarray | sp.csr_matrix, known: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Probability of label 1 for every row. known : row numbers.  labels : 0 or 1, of these rows."""
    return np.asarray(LogisticRegression(**CHOICES).fit(table[known], labels).predict_proba(table)[:, 1])


def judge(table: np.ndarray | sp.csr_matrix, truth: np.ndarray, n_draws: int = N_DRAWS) -> Inferred:
    """Mean over draws of the labels that are known."""
    results = []
    for known in known_rows(truth, n_draws):
        guess = infer(table, known, truth[known])
        unknown = np.setdiff1d(np.arange(len(truth)), known)
        right = ((guess[unknown] > 0.5) == truth[unknown]).mean()
        results.append((right, roc_auc_score(truth[unknown], guess[unknown])))
    return Inferred(*np.mean(results, axis=0).tolist())


def known_rows(truth: np.ndarray, n_draws: int) -> Iterator[np.ndarray]:
    """Draws of rows whose labels the party knows; both labels are among them."""
    rng = np.random.default_rng(0)
    for _ in range(n_draws):
        known = rng.choice(len(truth), N_KNOWN, replace=False)
        while len(set(truth[known].tolist())) < 2:
            known = rng.choice(len(truth), N_KNOWN, replace=False)
        yield known
