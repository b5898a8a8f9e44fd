"""Cora: words and citations in halves, labels for 140 and 1,000 papers, no pickles."""

import numpy as np
import pytest
from scipy import sparse

from vfldata import UNLABELLED, load_cora
from vfldata.cora import normalised_adjacency


@pytest.fixture(scope="module")
def cora(data_home):
    if not (data_home / "cora" / "cora_nodes.csv.gz").exists():
        pytest.skip(f"the Cora tables are not in {data_home}/cora")
    return load_cora(data_home=data_home)


def edges_of(graph):
    upper = sparse.triu(graph, k=1)
    return set(zip(*(axis.tolist() for axis in upper.coords), strict=True))


def test_every_party_holds_716_words_of_all_papers_in_both_parts(cora):
    for part in ("train", "test"):
        for block in cora.blocks(part).values():
            assert block.shape == (2_708, 716)
            assert block.dtype == np.float32
            assert set(block.data) == {1.0}
    assert not set(cora.partition["library"]) & set(cora.partition["publisher"])
    assert cora.X_train["publisher"][[0]].indices.tolist() == [19, 81, 146, 315]
    assert cora.X_train["library"][[0]].indices.tolist() == [n - 716 for n in (774, 877, 1194, 1247, 1274)]


def test_140_papers_are_labelled_for_training_and_1000_others_for_testing(cora):
    train, test = cora.y_train, cora.y_test
    assert np.bincount(train[train != UNLABELLED]).tolist() == [20] * 7
    assert np.bincount(test[test != UNLABELLED]).tolist() == [130, 91, 144, 319, 149, 103, 64]
    assert not ((train != UNLABELLED) & (test != UNLABELLED)).any()
    assert set(train[140:]) == {UNLABELLED}


def test_every_citation_is_known_to_exactly_one_party(cora):
    library, publisher = (edges_of(graph) for graph in cora.graphs.values())
    assert len(library) == len(publisher) == 2_639
    assert len(library | publisher) == 5_278


def test_another_seed_shares_out_the_same_citations_differently(cora, data_home):
    other = load_cora(data_home=data_home, random_state=1)
    ours, theirs = ([edges_of(graph) for graph in data.graphs.values()] for data in (cora, other))
    assert ours[0] != theirs[0]
    assert ours[0] | ours[1] == theirs[0] | theirs[1]
    assert other.y_train.equals(cora.y_train)


def test_adjacency_is_normalised_on_both_sides_with_self_loops():
    graph = normalised_adjacency(np.array([[0, 1], [1, 2]]), 4)
    a = np.array([[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1]])
    d = np.diag(1 / np.sqrt(a.sum(axis=1)))
    assert np.allclose(graph.toarray(), d @ a @ d)
    assert graph.dtype == np.float32
    assert np.linalg.eigvalsh(graph.toarray().astype(float)).max() == pytest.approx(1, abs=1e-6)


def test_the_publishers_files_give_the_same_sizes_with_a_drawn_split(cora, data_home, tmp_path):
    """cora.content rebuilt from the tables, with subjects in the place of class numbers."""
    import pandas as pd

    from vfldata.cora import SUBJECTS

    nodes = pd.read_csv(data_home / "cora" / "cora_nodes.csv.gz")
    edges = pd.read_csv(data_home / "cora" / "cora_edges.csv.gz")
    folder = tmp_path / "cora"
    folder.mkdir()
    words = np.zeros((2_708, 1_433), dtype=np.int8)
    for node, text in zip(nodes["node"], nodes["words"], strict=True):
        words[node, np.array(text.split(), dtype=int)] = 1
    content = pd.DataFrame(words)
    content.insert(0, "paper", 10 * nodes["node"] + 7)
    content["subject"] = np.array(SUBJECTS)[nodes["label"]]
    content.to_csv(folder / "cora.content", sep="\t", header=False, index=False)
    both = pd.concat([edges, edges[["v", "u"]].set_axis(["u", "v"], axis=1)[:151]])  # some cite each other
    (10 * both + 7).to_csv(folder / "cora.cites", sep="\t", header=False, index=False)
    data = load_cora(data_home=tmp_path)
    assert data.class_names == SUBJECTS
    assert np.bincount(data.y_train[data.y_train >= 0]).tolist() == [20] * 7
    assert (data.y_test >= 0).sum() == 1_000
    assert not ((data.y_train >= 0) & (data.y_test >= 0)).any()
    assert (data.X_train["library"] != cora.X_train["library"]).nnz == 0
    assert set.union(*map(edges_of, data.graphs.values())) == set.union(*map(edges_of, cora.graphs.values()))


def test_what_is_not_cora_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"Cora was not found: .*cora\.content and cora\.cites"):
        load_cora(data_home=tmp_path)
    folder = tmp_path / "cora"
    folder.mkdir()
    (folder / "cora_nodes.csv").write_text("node,label,split,words\n0,0,train,1 2\n")
    (folder / "cora_edges.csv").write_text("a,b\n")
    with pytest.raises(ValueError, match=r"has the columns \['a', 'b'\], expected \['u', 'v'\]"):
        load_cora(data_home=tmp_path)
    (folder / "cora_edges.csv").write_text("u,v\n0,0\n")
    with pytest.raises(ValueError, match="not Cora: 1 papers, 1 citations"):
        load_cora(data_home=tmp_path)
