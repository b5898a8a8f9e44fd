"""Pictures show what the viewer may see, and the same in text."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tests.secureboost.small import CONST4, XA4, Y4, blocks, boost1, some_data
from vfltree import SecureBoostClassifier, load_active, plotting
from vfltree.inspection import ModelView
from vfltree.plotting import layout, plot_importance, plot_tree, tree_to_text

pytestmark = pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning")


@pytest.fixture(scope="module")
def model():
    X, y = some_data("five", n_rows=150)
    bank = pd.DataFrame(X[:, :4], columns=["income", "age", "debt", "rent"])
    shop = pd.DataFrame(X[:, 4:], columns=[f"secret {i}" for i in range(5)])
    with pytest.warns(UserWarning):
        return SecureBoostClassifier(2, max_depth=3, encryption="none").fit({"bank": bank, "shop": shop}, y)


@pytest.fixture
def pyplot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


class TestText:
    def test_a_hand_computed_tree(self):
        model = boost1().fit(blocks(pd.DataFrame({"age": XA4[:, 0]}), CONST4), Y4)
        assert tree_to_text(model) == "\n".join(
            ["a: age < 2 (missing: right)", "├─ left: -0.6667", "└─ right: 0.6667"]
        )

    def test_foreign_splits_are_an_owner_and_a_number(self):
        X = np.array([[0.0], [1.0], [np.nan], [3.0]])
        model = boost1(max_depth=2).fit(blocks(CONST4, X), [0, 1, 0, 1])
        assert "b: column 0 < 1 (missing: left)" in tree_to_text(model)
        seen = tree_to_text(model, viewer="a")
        assert seen.splitlines()[0] == "b: split 1"
        assert "column" not in seen

    def test_every_node_has_a_line_below_its_parents(self, model):
        for number, tree in enumerate(ModelView.of(model).trees):
            lines = tree_to_text(model, number).splitlines()
            assert len(lines) == tree.n_nodes
            depths = [(len(line) - len(line.lstrip("│├└─ "))) // 3 for line in lines]
            expected = [int(node).bit_length() - 1 for node in tree.node]
            assert sorted(depths) == sorted(expected)

    def test_the_active_partys_view_names_no_foreign_column(self, model, tmp_path):
        alone = load_active(model.save(tmp_path)["bank"], ask=print)
        for number in range(len(ModelView.of(model).trees)):
            assert "secret" not in tree_to_text(model, number, viewer="bank")
            assert tree_to_text(alone, number) == tree_to_text(model, number, viewer="bank")
        assert any("secret" in tree_to_text(model, number) for number in range(10))

    def test_a_passive_party_has_no_trees_to_look_at(self, model):
        with pytest.raises(ValueError, match=r"'shop' alone .* no trees"):
            tree_to_text(model, viewer="shop")
        with pytest.raises(ValueError, match="tree 99 was asked, the model has trees 0 to 9"):
            tree_to_text(model, 99)

    def test_values_that_are_there_and_categories_are_told_in_words(self):
        X = np.array([[1.0], [1.0], [np.nan], [np.nan]])
        model = boost1().fit(blocks(X, CONST4), Y4)
        assert tree_to_text(model).startswith("a: column 0 is there (missing: right)")


class TestLayout:
    def test_parents_stand_in_the_middle_of_their_children_and_leaves_side_by_side(self, model):
        view = ModelView.of(model)
        for number, tree in enumerate(view.trees):
            nodes = {node.place: node for node in layout(view, number)}
            assert len(nodes) == tree.n_nodes
            leaves = [node.x for node in nodes.values() if node.split is None]
            assert leaves == sorted(leaves) == list(range(len(leaves)))
            for at in np.flatnonzero(tree.owner >= 0):
                left, right = nodes[int(tree.left[at])], nodes[int(tree.right[at])]
                assert nodes[at].x == (left.x + right.x) / 2
                assert left.y == right.y == nodes[at].y + 1
                assert (left.left, right.left) == (True, False)


class TestPictures:
    def test_a_tree_is_drawn_with_all_its_nodes(self, model, pyplot):
        ax = plot_tree(model, 1, viewer="bank")
        texts = [text.get_text() for text in ax.texts]
        tree = ModelView.of(model).trees[1]
        assert len(texts) == 2 * tree.n_nodes - 1  # a box per node and a word per edge
        assert any(text.startswith("shop:\nsplit ") for text in texts)
        assert not any("secret" in text for text in texts)
        ax.figure.canvas.draw()

    def test_bars_are_drawn_for_what_matters_most(self, model, pyplot):
        ax = plot_importance(model, "total_gain", max_features=4)
        labels = [label.get_text() for label in ax.get_yticklabels()]
        widths = [bar.get_width() for bar in ax.patches]
        best = pd.concat(model.importances("total_gain")).sort_values(ascending=False)
        assert widths == pytest.approx(best.iloc[:4][::-1])
        assert labels[-1] == f"{best.index[0][0]}: {best.index[0][1]}"
        ax.figure.canvas.draw()

    def test_the_active_party_sees_one_bar_for_all_foreign_columns(self, model, pyplot):
        labels = [label.get_text() for label in plot_importance(model, viewer="bank").get_yticklabels()]
        assert "shop: all columns" in labels
        assert not any("secret" in label for label in labels)

    def test_given_axes_are_used(self, model, pyplot):
        _, axes = pyplot.subplots(1, 2)
        assert plot_tree(model, ax=axes[0]) is axes[0]
        assert plot_importance(model, ax=axes[1]) is axes[1]


def test_without_matplotlib_the_error_says_what_to_install(model, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(plotting, "import_module", missing)
    for draw in (plot_tree, plot_importance):
        with pytest.raises(ImportError, match=r"pip install \"vfltree\[plot\]\""):
            draw(model)
    with pytest.raises(ValueError, match="max_features"):
        plot_importance(model, max_features=0)
