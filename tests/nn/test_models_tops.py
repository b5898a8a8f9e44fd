"""Top models: what they compute from the outputs of the parties, and what they refuse."""

import pytest
import torch
from torch import nn

from vflnn.models import TOP_MODELS, make_top

NAMES = list(TOP_MODELS)
LOG_PROBABILITIES = {"sum_log_softmax", "model_completion"}


def outputs_of(widths, n=6, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(n, width, generator=generator, requires_grad=True) for width in widths]


def call(top: nn.Module, outputs: list[torch.Tensor]) -> torch.Tensor:
    if top.takes_graph:
        return top(outputs, torch.eye(len(outputs[0])).to_sparse_csr())
    return top(outputs)


@pytest.mark.parametrize("widths", [[5], [5, 5], [5, 5, 5, 5]])
def test_sum_is_the_sum_from_left_to_right_bit_for_bit(widths):
    outputs = outputs_of(widths)
    expected = outputs[0].clone()
    for output in outputs[1:]:
        expected = expected + output
    assert torch.equal(make_top("sum", widths, 5)(outputs), expected)


def test_sum_hands_every_party_the_same_gradient_bit_for_bit():
    outputs = outputs_of([3, 3, 3])
    loss = nn.functional.cross_entropy(
        make_top("sum", [3, 3, 3], 3)(outputs), torch.tensor([0, 1, 2, 0, 1, 2])
    )
    first, *others = torch.autograd.grad(loss, outputs)
    assert all(torch.equal(first, other) for other in others)


def test_sum_tops_have_no_parameters():
    assert not list(make_top("sum", [2, 2], 2).parameters())
    assert not list(make_top("sum_log_softmax", [2, 2], 2).parameters())


@pytest.mark.parametrize("name", ["sum", "sum_log_softmax"])
def test_a_sum_of_other_widths_is_refused(name):
    with pytest.raises(ValueError, match=f"{name}: .*output 1 has 3, the scores 4"):
        make_top(name, [4, 3], 4)


def test_log_softmax_top_with_nll_is_the_sum_with_cross_entropy():
    outputs, labels = outputs_of([4, 4]), torch.tensor([0, 1, 2, 3, 0, 1])
    scores = make_top("sum", [4, 4], 4)(outputs)
    log_probabilities = make_top("sum_log_softmax", [4, 4], 4)(outputs)
    assert torch.equal(log_probabilities, torch.log_softmax(scores, dim=1))
    assert torch.equal(
        nn.functional.nll_loss(log_probabilities, labels), nn.functional.cross_entropy(scores, labels)
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_top_says_whether_it_returns_log_probabilities(name):
    torch.manual_seed(0)
    top = make_top(name, [4, 4], 4).eval()
    sums = call(top, outputs_of([4, 4])).exp().sum(dim=1)
    assert torch.allclose(sums, torch.ones(6)) == top.log_probabilities == (name in LOG_PROBABILITIES)


def test_linear_is_one_layer_on_the_outputs_side_by_side():
    torch.manual_seed(0)
    top, outputs = make_top("linear", [2, 3], 4), outputs_of([2, 3])
    weight, bias = top.parameters()
    assert torch.allclose(top(outputs), torch.cat(outputs, dim=1) @ weight.T + bias)


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("linear", [(4, 10)]),
        ("mlp2", [(5, 10), (4, 5)]),
        ("mlp3", [(10, 10), (5, 10), (4, 5)]),
        ("model_completion", [(10, 10), (4, 10), (4, 4), (4, 4)]),
    ],
)
def test_layers_have_the_sizes_of_the_table(name, shapes):
    layers = [layer for layer in make_top(name, [5, 5], 4).modules() if isinstance(layer, nn.Linear)]
    assert [tuple(layer.weight.shape) for layer in layers] == shapes
    assert all(layer.bias is not None for layer in layers)


@pytest.mark.parametrize("name", ["linear", "mlp2", "mlp3", "graph"])
def test_scores_may_be_negative(name):
    torch.manual_seed(0)
    assert call(make_top(name, [5, 5], 4), outputs_of([5, 5], n=50)).min() < 0


def test_model_completion_puts_batchnorm_and_relu_before_each_layer():
    kinds = [type(layer) for layer in make_top("model_completion", [5, 5], 4).layers]
    assert kinds == [nn.BatchNorm1d, nn.ReLU, nn.Linear] * 4 + [nn.LogSoftmax]


def test_model_completion_weights_are_kaiming_normal():
    torch.manual_seed(0)
    weight = make_top("model_completion", [200, 200], 10).layers[2].weight.detach()
    assert abs(float(weight.std()) / (2 / 400) ** 0.5 - 1) < 0.01
    assert weight.abs().max() > 3 * weight.std()  # no uniform distribution reaches that far


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("widths", [[8], [8, 8], [8, 8, 8, 8]])
def test_gradients_reach_every_parameter_and_every_party(name, widths):
    torch.manual_seed(1)
    top, outputs = make_top(name, widths, 8), outputs_of(widths, n=40)
    scores = call(top, outputs)
    assert scores.shape == (40, 8)
    weights = torch.randn(40, 8)  # a plain sum has a zero gradient behind BatchNorm and softmax
    (scores * weights).sum().backward()
    dead = [label for label, parameter in top.named_parameters() if not parameter.grad.abs().sum() > 0]
    assert dead == []
    assert all(output.grad.abs().sum() > 0 for output in outputs)


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"sum", "sum_log_softmax"}))
@pytest.mark.parametrize(("widths", "n_outputs"), [([1], 2), ([2, 5], 3), ([7, 1, 4], 1)])
def test_widths_may_differ_and_be_small(name, widths, n_outputs):
    torch.manual_seed(0)
    assert call(make_top(name, widths, n_outputs), outputs_of(widths)).shape == (6, n_outputs)


@pytest.mark.parametrize("name", NAMES)
def test_the_seed_decides_the_weights(name):
    def state(seed):
        torch.manual_seed(seed)
        return make_top(name, [3, 3], 3).state_dict()

    assert all(torch.equal(state(5)[key], value) for key, value in state(5).items())
    if name not in {"sum", "sum_log_softmax"}:
        assert not all(torch.equal(state(6)[key], value) for key, value in state(5).items())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("widths", "message"),
    [
        ([4], "joins 2 outputs, got 1"),
        ([4, 4, 4], "joins 2 outputs, got 3"),
        ([4, 1], r"output 1 must have shape \(6, 4\), got \(6, 1\)"),
    ],
)
def test_outputs_that_would_broadcast_are_refused(name, widths, message):
    with pytest.raises(ValueError, match=message):
        call(make_top(name, [4, 4], 4), outputs_of(widths))


def test_outputs_of_other_rows_are_refused():
    top = make_top("sum", [4, 4], 4)
    with pytest.raises(ValueError, match=r"output 1 must have shape \(6, 4\), got \(1, 4\)"):
        top([torch.rand(6, 4), torch.rand(1, 4)])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("summ", [4], 4), ValueError, "no top model is called 'summ'; did you mean 'sum'"),
        (("linear", [], 4), TypeError, "linear: widths must list one width per party"),
        (("linear", 4, 4), TypeError, "linear: widths must list one width per party"),
        (("linear", [4, 0], 4), ValueError, "every width must be at least 1, got 0"),
        (("linear", [4], 0), ValueError, "n_outputs must be at least 1, got 0"),
        ((3, [4], 4), TypeError, "name of a top model must be a string, got 3"),
    ],
)
def test_wrong_arguments_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        make_top(*arguments)


def test_an_option_of_a_top_without_options_is_refused():
    with pytest.raises(ValueError, match="linear has no option 'bias'; it takes none"):
        make_top("linear", [4], 4, bias=False)
