"""docs/neural.md is true: its program runs, its table has every parameter, and gradients show labels as it says."""

import ast
import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from torch import nn

from vflnn import VFLClassifier, VFLRegressor

PAGE = (Path(__file__).parents[2] / "docs" / "neural.md").read_text(encoding="utf-8")


def test_the_program_runs_and_learns(capsys):
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    exec(compile(program, "neural.md", "exec"), {"__name__": "neural_page"})
    assert float(capsys.readouterr().out.split()[0]) > 0.94


@pytest.mark.parametrize("estimator", [VFLClassifier, VFLRegressor])
def test_the_table_has_the_parameters_and_defaults_of_the_signatures(estimator):
    rows = re.findall(r"^\| `(\w+)` \| `(.*?)` \| .+ \|$", PAGE, re.MULTILINE)
    table = {name: ast.literal_eval(default) for name, default in rows}
    parameters = inspect.signature(estimator).parameters.values()
    assert table == {p.name: p.default for p in parameters} and len(rows) == len(table)


def arriving_gradients(X, y, top, width):
    """What the passive party receives in one epoch, in the order of the rows."""
    arrived = []

    def keep(module, inputs, output):
        if output.requires_grad:
            output.register_hook(lambda gradient: arrived.append(gradient.clone().numpy()))

    def watched(in_shape, width):
        model = nn.Linear(in_shape[0], width)
        model.register_forward_hook(keep)
        return model

    bottom = {"active": "MLP2", "passive": watched}
    model = VFLClassifier(
        bottom, top, cut_width=width, epochs=1, batch_size=16, shuffle=False, random_state=0
    )
    model.fit(X, y)
    return np.concatenate(arrived)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_with_a_sum_on_top_a_passive_party_reads_every_label(n_classes):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(64, 4)), np.arange(64) % n_classes
    assert np.array_equal(arriving_gradients(X, y, "sum", None).argmin(axis=1), y)


def test_with_a_linear_layer_on_top_two_classes_point_in_opposite_directions():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(64, 4)), np.arange(64) % 2
    first = arriving_gradients(X, y, "linear", 6)[:16, 0] > 0  # of one batch: weights change
    assert np.array_equal(first, y[:16] == 1) or np.array_equal(first, y[:16] == 0)
