"""Nodes of a graph: each party has its own columns and its own half of the edges; most nodes have no label."""

import numpy as np
import pytest
import torch
from scipy import sparse
from torch.nn import functional as F

from tests.nn import small
from vflnn.models import make_bottom, make_top
from vflnn.recipes import model_recipe
from vflnn.samples import Samples
from vflnn.seating import PartyPlan, TrainingPlan, train
from vflnn.working import RandomStream

N = 40


def normalised(edges):
    """D^-1/2 (A + I) D^-1/2 of an undirected graph."""
    adjacency = np.eye(N, dtype=np.float32)
    adjacency[edges[:, 0], edges[:, 1]] = adjacency[edges[:, 1], edges[:, 0]] = 1
    scale = 1 / np.sqrt(adjacency.sum(axis=1))
    return sparse.csr_matrix(scale[:, None] * adjacency * scale)


def plan(top="sum", **changes):
    """Two communities of nodes whose columns say little; six nodes have a label."""
    random = np.random.default_rng(1)
    community = np.arange(N) % 2
    pairs = np.array([(i, j) for i in range(N) for j in range(i) if community[i] == community[j]])
    edges = random.permutation(pairs)[:160]
    X = random.normal(size=(N, 8)).astype(np.float32) + 0.4 * community[:, None].astype(np.float32)
    labels = np.where(np.arange(N) < 6, community, -1)
    parts = [
        PartyPlan(model_recipe("GCN", {"hidden": 4, "dropout": 0.0}, seed=7 + k), 2, x, x, graph, graph)
        for k, (x, graph) in enumerate(
            zip((X[:, :4], X[:, 4:]), (normalised(edges[::2]), normalised(edges[1::2])), strict=True)
        )
    ]
    agreed = small.settings(
        n_samples=N, n_evaluation=N, batch_size=None, epochs=30, scheduler="constant", **changes
    )
    return TrainingPlan(
        agreed,
        "active",
        parts[0],
        {"one": parts[1]},
        model_recipe(top),
        labels,
        2,
        evaluation_labels=community,
    )


def uncut(chosen, top):
    """The same network in one piece, by plain PyTorch."""
    blocks = [Samples(part.samples, part.graph) for part in (chosen.own, chosen.passive["one"])]
    options = {"hidden": 4, "dropout": 0.0}
    with RandomStream(7).working():
        first, head = make_bottom("GCN", (4,), 2, **options), make_top(top, (2, 2), 2)
    with RandomStream(8).working():
        second = make_bottom("GCN", (4,), 2, **options)
    modules = {"active.bottom": first, "active.top": head, "one": second}
    optimizer = torch.optim.Adam([p for m in modules.values() for p in m.parameters()], lr=0.05)
    labels = torch.from_numpy(chosen.labels)
    x, graph = zip(*((block.batch(np.arange(N)), block.graph) for block in blocks), strict=True)
    for _ in range(30):
        optimizer.zero_grad()
        outputs = [first(x[0], graph[0]), second(x[1], graph[1])]
        scores = head(outputs, graph[0]) if top == "graph" else head(outputs)
        (F.cross_entropy(scores, labels, reduction="none", ignore_index=-1)[:6].sum() / 6).backward()
        optimizer.step()
    return {f"{part}.{k}": v.numpy() for part, m in modules.items() for k, v in m.state_dict().items()}


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
@pytest.mark.parametrize("top", ["sum", "graph"])
def test_nodes_without_label_are_learnt_as_by_the_network_in_one_piece(top):
    chosen = plan(top)
    trained = train(chosen)
    weights = {
        f"{party}.{name}": array
        for party, state in trained.states.items()
        for name, array in zip(state.names, state.arrays, strict=True)
    }
    assert small.same(weights, uncut(chosen, top))
    unlabelled = trained.result.scores.argmax(axis=1)[6:]
    assert (unlabelled == chosen.evaluation_labels[6:]).mean() > 0.9


def test_a_graph_is_not_cut_into_batches():
    with pytest.raises(ValueError, match="batch_size must be None, got 10"):
        chosen = plan()
        agreed = small.settings(n_samples=N, n_evaluation=N, batch_size=10)
        train(TrainingPlan(**{**vars(chosen), "settings": agreed}))
