"""Models on whole numbers: the LSTM on words, the sparse tower of Wide & Deep on hashed columns."""

import numpy as np
import pytest
import torch
from torch import nn

from vflnn.models import BOTTOM_MODELS, REQUIRED, make_bottom


def lstm() -> nn.Module:
    torch.manual_seed(0)
    return make_bottom("LSTM", (5,), 3, vocab_size=11)


def tower(**options) -> nn.Module:
    torch.manual_seed(0)
    return make_bottom("WideDeep_sparse", (3,), 2, **{"buckets": 11, **options})


def test_lstm_reads_both_ways_and_returns_logits():
    model, words = lstm(), torch.randint(11, (6, 5))
    states, _ = model.lstm(model.embedding(words))  # (n, length, 2 * 128): forwards, backwards
    last = torch.cat([states[:, -1, :128], states[:, 0, 128:]], dim=1)
    scores = model(words)
    torch.testing.assert_close(scores, model.linear(last))
    assert scores.min() < 0


def test_lstm_has_the_sizes_of_the_table():
    model = lstm()
    assert model.embedding.weight.shape == (11, 100)
    assert (model.lstm.hidden_size, model.lstm.num_layers, model.lstm.bidirectional) == (128, 1, True)
    assert model.linear.weight.shape == (3, 256)


def test_the_order_of_words_matters_to_the_lstm():
    model, words = lstm(), torch.arange(5)[None]
    assert not torch.allclose(model(words), model(words.flip(1)))


def test_sparse_tower_is_one_table_per_column_and_a_perceptron():
    model = tower()
    x = np.array([[0, 0, 0], [10, 3, 7]])
    tables = [table.weight.detach().numpy() for table in model.embeddings]
    joined = np.hstack([table[column] for table, column in zip(tables, x.T, strict=True)])
    assert joined.shape == (2, 48)
    expected = joined
    linears = [layer for layer in model.layers if isinstance(layer, nn.Linear)]
    for layer in linears:
        expected = np.maximum(expected, 0) if layer is not linears[0] else expected
        expected = expected @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
    np.testing.assert_allclose(model(torch.from_numpy(x)).detach().numpy(), expected, rtol=0, atol=1e-5)
    assert [layer.out_features for layer in linears] == [256, 256, 2]


@pytest.mark.parametrize("make", [lstm, tower])
def test_whole_floats_are_the_same_as_ints(make):
    model = make()
    x = torch.randint(11, (4, 5 if make is lstm else 3))
    assert torch.equal(model(x.float()), model(x))
    assert torch.equal(model(x.to(torch.uint8)), model(x))


@pytest.mark.parametrize(("make", "option"), [(lstm, "vocab_size"), (tower, "buckets")])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (11, "{option}=11 takes 0 to 10, 1 of \\d+ numbers are beyond"),
        (-1, "{option}=11 takes 0 to 10, 1 of \\d+ numbers are beyond"),
        (0.5, "must be whole, 1 of \\d+ are not"),
        (float("nan"), "must be whole, 1 of \\d+ are not"),
        (float("inf"), "must be whole, 1 of \\d+ are not"),
    ],
)
def test_numbers_outside_the_table_are_refused(make, option, value, message):
    x = torch.zeros(2, 5 if make is lstm else 3, dtype=torch.float64)
    x[1, 2] = value
    with pytest.raises(ValueError, match=message.format(option=option)):
        make()(x)


def test_other_columns_are_refused():
    for shape in [(4, 2), (4, 4), (4,), (4, 3, 1)]:
        with pytest.raises(ValueError, match="expected rows of 3 columns, got shape"):
            tower()(torch.zeros(shape, dtype=torch.int64))


@pytest.mark.parametrize(("name", "option"), [("LSTM", "vocab_size"), ("WideDeep_sparse", "buckets")])
def test_the_size_of_a_table_must_be_given(name, option):
    assert BOTTOM_MODELS[name].options[option] is REQUIRED
    assert repr(REQUIRED) == "required"
    with pytest.raises(ValueError, match=f"{name} needs the option '{option}'"):
        make_bottom(name, (3,), 2)


@pytest.mark.parametrize(
    ("name", "option", "what"), [("LSTM", "vocab_size", "tokens"), ("WideDeep_sparse", "buckets", "columns")]
)
def test_only_rows_of_numbers_are_taken(name, option, what):
    with pytest.raises(
        ValueError, match=rf"{name}: takes rows of {what}, in_shape \({what},\), got in_shape \(3, 4\)"
    ):
        make_bottom(name, (3, 4), 2, **{option: 5})
    with pytest.raises(TypeError, match=f"{name}: {option} must be a whole number, got '5'"):
        make_bottom(name, (3,), 2, **{option: "5"})
