"""Cora (McCallum et al. 2000): 2,708 papers on machine learning, 1,433 words that occur in them, and who cites whom.

Read from text files only; the copies known as "planetoid" are pickles, and reading a pickle runs code.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from vfldata.dataset import UNLABELLED, VerticalDataset
from vfldata.home import Folder, find_file, missing

N_NODES, N_WORDS, N_EDGES = 2_708, 1_433, 5_278
N_TRAIN_PER_CLASS, N_TEST = 20, 1_000
CLASS_SIZES = (
    180,
    217,
    298,
    351,
    418,
    426,
    818,
)  # sorted: the two forms of the files number the classes differently
SUBJECTS = (  # the publishers' names, sorted
    "Case_Based", "Genetic_Algorithms", "Neural_Networks", "Probabilistic_Methods", "Reinforcement_Learning",
    "Rule_Learning", "Theory",
)  # fmt: skip
ACTIVE, PASSIVE = "library", "publisher"


def load_cora(*, data_home: Folder = None, random_state: int = 0) -> VerticalDataset:
    """Cora for two parties, each with half of the words and half of the citations; the active one has the subjects.

    Every block holds all 2,708 papers in both parts: a CSR array of zeros and ones, the first 716 words for
    "publisher", the next 716 for the active "library"; the last of the 1,433 is dropped. `graphs` has each party's half
    of the 5,278 undirected citations, drawn with `random_state`, as D^-1/2 (A + I) D^-1/2. Labels are -1 but for the
    140 training papers (20 of each of the seven subjects) in `y_train`, and for the 1,000 test papers in `y_test`.

    Looks in the folder "cora" of `data_home`, or else of the folder that VFL_DATA_HOME names, for one of

    * cora_nodes.csv and cora_edges.csv (or .csv.gz): columns "node, label, split, words" (word numbers separated by
      blanks, split "train", "test" or another word) and "u, v". They hold the split that everybody uses;
    * cora.content and cora.cites, the publishers' files. They come without a split: the training and test papers are
      drawn with `random_state`.

    Raises FileNotFoundError saying what to get, ValueError when files of those names hold something else.
    """
    found = _find(data_home)
    words, labels, split, edges, names = (
        _read_tables(*found)
        if found[0].name.startswith("cora_nodes")
        else _read_content(*found, random_state)
    )
    _check(found[0].parent, words, labels, edges)
    half = N_WORDS // 2
    blocks = {ACTIVE: words[:, half : 2 * half], PASSIVE: words[:, :half]}
    order = np.random.RandomState(random_state).permutation(len(edges))
    halves = {ACTIVE: order[: N_EDGES // 2], PASSIVE: order[N_EDGES // 2 :]}
    columns = [f"word_{number}" for number in range(2 * half)]
    return VerticalDataset(
        "cora",
        blocks,
        blocks,
        _labelled(labels, split == "train"),
        _labelled(labels, split == "test"),
        {ACTIVE: columns[half:], PASSIVE: columns[:half]},
        "multiclass",
        names,
        source=str(found[0].parent),
        graphs={party: normalised_adjacency(edges[chosen], N_NODES) for party, chosen in halves.items()},
    )


def normalised_adjacency(edges: NDArray[np.int64], n_nodes: int) -> sparse.csr_array:
    """D^-1/2 (A + I) D^-1/2 of undirected edges, float32; D holds the row sums of A + I (Kipf and Welling 2017).

    edges : ndarray of int64, shape (n_edges, 2), each pair once, no pair of a node with itself
    """
    sources = np.concatenate([edges[:, 0], edges[:, 1], np.arange(n_nodes)])
    targets = np.concatenate([edges[:, 1], edges[:, 0], np.arange(n_nodes)])
    scale = 1 / np.sqrt(np.bincount(sources, minlength=n_nodes))
    values = (scale[sources] * scale[targets]).astype(np.float32)
    return sparse.csr_array((values, (sources, targets)), shape=(n_nodes, n_nodes))


Parts = tuple[sparse.csr_array, NDArray[np.int64], NDArray[np.str_], NDArray[np.int64], tuple[str, ...]]


def _find(data_home: Folder) -> tuple[Path, Path]:
    for nodes, edges in (("cora_nodes.csv", "cora_edges.csv"), ("cora.content", "cora.cites")):
        paths = [find_file((f"cora/{name}.gz", f"cora/{name}"), data_home) for name in (nodes, edges)]
        if paths[0] is not None and paths[1] is not None:
            return paths[0], paths[1]
    get_it = "Get cora.content and cora.cites (the archive cora.tgz of the LINQS group)"
    raise FileNotFoundError(missing("Cora", data_home, get_it, "cora/"))


def _read_tables(nodes_path: Path, edges_path: Path) -> Parts:
    nodes, edges = pd.read_csv(nodes_path), pd.read_csv(edges_path)
    for path, table, columns in (
        (nodes_path, nodes, ["node", "label", "split", "words"]),
        (edges_path, edges, ["u", "v"]),
    ):
        if list(table.columns) != columns:
            raise ValueError(f"{path} has the columns {list(table.columns)}, expected {columns}")
    nodes = nodes.sort_values("node")
    numbers = [np.array(text.split(), dtype=np.int64) for text in nodes["words"].fillna("").astype(str)]
    columns_of_ones = np.concatenate(numbers)
    starts = np.concatenate([[0], np.cumsum([len(row) for row in numbers])])
    ones = np.ones(len(columns_of_ones), dtype=np.float32)
    words = sparse.csr_array((ones, columns_of_ones, starts), shape=(len(nodes), N_WORDS))
    # The names of this numbering of the classes were not published with it.
    names = tuple(str(number) for number in range(len(CLASS_SIZES)))
    return (
        words,
        nodes["label"].to_numpy(np.int64),
        nodes["split"].to_numpy(str),
        edges.to_numpy(np.int64),
        names,
    )


def _read_content(content_path: Path, cites_path: Path, seed: int) -> Parts:
    """`cora.content`: paper, a 0 or 1 per word, subject. `cora.cites`: cited paper, citing paper."""
    content = pd.read_csv(content_path, sep="\t", header=None)
    cites = pd.read_csv(cites_path, sep="\t", header=None).to_numpy(np.int64)
    if content.shape[1] != N_WORDS + 2 or not content.iloc[:, -1].isin(SUBJECTS).all():
        raise ValueError(
            f"{content_path} is not Cora: expected a paper, {N_WORDS} words and one of {SUBJECTS} a line"
        )
    papers = pd.Index(content.iloc[:, 0])
    pairs = np.sort(papers.get_indexer(cites.ravel()).reshape(cites.shape), axis=1)
    if (pairs < 0).any():
        raise ValueError(f"{cites_path} names a paper that {content_path.name} does not hold")
    edges = np.unique(pairs, axis=0)  # some papers cite each other
    labels = pd.Categorical(content.iloc[:, -1], SUBJECTS).codes.astype(np.int64)
    words = sparse.csr_array(content.iloc[:, 1:-1].to_numpy(np.float32))
    return words, labels, _draw_split(labels, seed), edges, SUBJECTS


def _draw_split(labels: NDArray[np.int64], seed: int) -> NDArray[np.str_]:
    order = np.random.RandomState(seed).permutation(len(labels))
    train = np.concatenate([order[labels[order] == k][:N_TRAIN_PER_CLASS] for k in range(len(SUBJECTS))])
    split = np.full(len(labels), "other")
    split[train] = "train"
    split[order[~np.isin(order, train)][:N_TEST]] = "test"
    return split


def _check(
    folder: Path, words: sparse.csr_array, labels: NDArray[np.int64], edges: NDArray[np.int64]
) -> None:
    got = (len(labels), len(edges), tuple(sorted(np.bincount(labels).tolist())))
    if got != (N_NODES, N_EDGES, CLASS_SIZES) or set(np.unique(words.data)) != {1.0}:
        raise ValueError(
            f"the files in {folder} are not Cora: {got[0]} papers, {got[1]} citations, class sizes {got[2]}; expected "
            f"{N_NODES}, {N_EDGES}, {CLASS_SIZES}, words 0 or 1"
        )


def _labelled(labels: NDArray[np.int64], chosen: NDArray[np.bool_]) -> pd.Series:
    return pd.Series(np.where(chosen, labels, UNLABELLED), dtype="int64", name="subject")
