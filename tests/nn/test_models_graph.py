"""Graph convolutions against their formula in dense NumPy."""

import numpy as np
import pytest
import torch

from vflnn.models import make_bottom, make_top


def random_graph(n: int, seed: int = 0) -> np.ndarray:
    """A D^-1/2 (A + I) D^-1/2 of random edges. Not symmetric here, so that a transposed product shows."""
    rng = np.random.default_rng(seed)
    edges = (rng.random((n, n)) < 0.2) + np.eye(n)
    return edges / np.sqrt(np.outer(edges.sum(axis=1), edges.sum(axis=0)))


# torch warns once per process that its CSR tensors are young; what is used of them is compared below.
pytestmark = pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")


def csr(dense: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(dense).to_sparse_csr()


@pytest.fixture
def model():
    torch.manual_seed(0)
    return make_bottom("GCN", (6,), 3, hidden=5).double()


def test_gcn_is_the_formula_in_numpy(model):
    graph, x = random_graph(11), np.random.default_rng(1).normal(size=(11, 6))
    for parameter in model.parameters():  # biases start at zero and would hide
        torch.nn.init.normal_(parameter)
    W1, b1, W2, b2 = (
        model.get_parameter(name).detach().numpy()
        for name in ("first.weight", "first.bias", "second.weight", "second.bias")
    )
    expected = graph @ np.maximum(graph @ x @ W1 + b1, 0) @ W2 + b2
    got = model.eval()(torch.from_numpy(x), csr(graph))
    np.testing.assert_allclose(got.detach().numpy(), expected, rtol=0, atol=1e-12)
    assert got.shape == (11, 3)


def test_gradients_through_the_sparse_graph_are_right(model):
    """Those of x and of every parameter, and the second derivatives that attacks by gradient matching take."""
    dense, x = random_graph(7), torch.rand(7, 6, dtype=torch.float64, requires_grad=True)
    model.eval()

    def derivatives(graph):
        loss = model(x, graph).square().sum()
        first = torch.autograd.grad(loss, [x, *model.parameters()], create_graph=True)
        return [*first, *torch.autograd.grad(first[0].square().sum(), [x])]

    sparse, plain = derivatives(csr(dense)), derivatives(torch.from_numpy(dense))
    for got, expected in zip(sparse, plain, strict=True):
        torch.testing.assert_close(got, expected, rtol=0, atol=1e-12)
        assert expected.abs().sum() > 0


def test_gcn_drops_hidden_nodes_in_training_only():
    torch.manual_seed(0)
    graph, x = csr(random_graph(9)).float(), torch.rand(9, 6)
    dropping, whole = make_bottom("GCN", (6,), 3), make_bottom("GCN", (6,), 3, dropout=0)
    assert not torch.equal(dropping(x, graph), dropping(x, graph))
    assert torch.equal(whole(x, graph), whole(x, graph))
    dropping.eval()
    assert torch.equal(dropping(x, graph), dropping(x, graph))


def test_a_graph_of_other_rows_is_refused(model):
    with pytest.raises(ValueError, match="4 rows need an adjacency of 4 x 4, got \\(11, 11\\)"):
        model(torch.rand(4, 6, dtype=torch.float64), csr(random_graph(11)))


def test_graph_top_is_one_convolution_of_all_outputs():
    torch.manual_seed(0)
    top = make_top("graph", [3, 2], 4).double()
    torch.nn.init.normal_(top.convolution.bias)
    graph = random_graph(8)
    outputs = [torch.rand(8, 3, dtype=torch.float64), torch.rand(8, 2, dtype=torch.float64)]
    joined = np.hstack([output.numpy() for output in outputs])
    weight, bias = top.convolution.weight.detach().numpy(), top.convolution.bias.detach().numpy()
    got = top(outputs, csr(graph)).detach().numpy()
    np.testing.assert_allclose(got, graph @ joined @ weight + bias, rtol=0, atol=1e-12)


def test_graph_models_say_that_they_take_one():
    assert make_bottom("GCN", (6,), 3).takes_graph
    assert make_top("graph", [3], 3).takes_graph
    assert not make_top("linear", [3], 3).takes_graph
    assert not getattr(make_bottom("MLP2", (6,), 3), "takes_graph", False)
