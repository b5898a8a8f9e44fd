"""20 Newsgroups (Lang 1995), the five classes that VFLAIR calls News20-S5: postings as TF-IDF weights of words."""

import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from scipy import sparse

from vfldata.dataset import VerticalDataset, stratified_rows
from vfldata.home import Folder, data_folder, find_file, missing

CLASSES = (
    "alt.atheism",
    "comp.graphics",
    "comp.os.ms-windows.misc",
    "comp.sys.ibm.pc.hardware",
    "comp.sys.mac.hardware",
)
FILES = ("newsgroups/20news-bydate-5class.tar.gz", "newsgroups/20news-bydate.tar.gz")
FOLDER = "newsgroups"  # or unpacked in here
N_POSTINGS = {"train": 2_823, "test": 1_879}  # as published, "bydate"
ACTIVE, PASSIVE = "archive", "server"

Posting = tuple[str, str, str]  # part, class, text


def load_news20(
    *,
    split: Literal["random", "bydate"] = "random",
    strip_headers: bool = False,
    data_home: Folder = None,
    download: bool = True,
    random_state: int = 0,
) -> VerticalDataset:
    """News20-S5 for two parties: "server" holds the first half of the words, the active "archive" the rest.

    The label is the newsgroup. Blocks are CSR arrays of float32, TF-IDF weights in [0, 1], words in alphabetical order.
    Words and weights are learned from the training postings alone.

    Parameters
    ----------
    split : "random" or "bydate"
        "random": a fifth of the 4,702 postings of each class for testing, 3,762 + 940, drawn with `random_state`.
        (The papers' 4,000 + 1,000 are more than these five classes have in this edition.) "bydate": the publishers' own
        split, 2,823 postings and 1,879 later ones.
    strip_headers : bool
        Leave out the mail header of every posting. It often gives the group away, as subject and sender do.
    data_home, download
        Looks for 20news-bydate.tar.gz, for 20news-bydate-5class.tar.gz (the same, five folders only), or for either
        unpacked, in the folder "newsgroups" of `data_home`, or else of the folder that VFL_DATA_HOME names; else asks
        scikit-learn to fetch it unless ``download=False``.

    Raises
    ------
    FileNotFoundError
        When the data is nowhere to be had; the message says what to get and where to put it.
    ValueError
        When there are more or fewer postings than published.
    """
    if split not in ("random", "bydate"):
        raise ValueError(f'split is "random" or "bydate", got {split!r}')
    postings, source = _read_or_fetch(data_home, download)
    parts = np.array([part for part, _, _ in postings])
    for part, expected in N_POSTINGS.items():
        if (parts == part).sum() != expected:
            raise ValueError(
                f"{source} is not 20 Newsgroups: {(parts == part).sum()} {part} postings of the five classes, "
                f"expected {expected}"
            )
    labels = np.array([CLASSES.index(group) for _, group, _ in postings])
    texts = [without_header(text) if strip_headers else text for _, _, text in postings]
    rows = _split(split, parts, labels, random_state)
    return _from_texts(texts, labels, rows, source)


def without_header(text: str) -> str:
    """The text after the first empty line, which ends a mail header."""
    return text.partition("\n\n")[2]


def _from_texts(
    texts: Sequence[str], labels: np.ndarray, rows: dict[str, np.ndarray], source: str
) -> VerticalDataset:
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(dtype=np.float32)
    weights = {"train": sparse.csr_array(vectorizer.fit_transform([texts[i] for i in rows["train"]]))}
    weights["test"] = sparse.csr_array(vectorizer.transform([texts[i] for i in rows["test"]]))
    words = [str(word) for word in vectorizer.get_feature_names_out()]
    half = len(words) // 2
    blocks = {part: {ACTIVE: block[:, half:], PASSIVE: block[:, :half]} for part, block in weights.items()}
    y = {
        part: pd.Series(labels[chosen], index=chosen, dtype="int64", name="group")
        for part, chosen in rows.items()
    }
    return VerticalDataset(
        "news20",
        blocks["train"],
        blocks["test"],
        y["train"],
        y["test"],
        {ACTIVE: words[half:], PASSIVE: words[:half]},
        "multiclass",
        CLASSES,
        source=source,
    )


def _split(split: str, parts: np.ndarray, labels: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    if split == "bydate":
        return {part: np.flatnonzero(parts == part) for part in N_POSTINGS}
    train, test = stratified_rows(labels, round(len(labels) / 5), seed)
    return {"train": train, "test": test}


def _read_or_fetch(data_home: Folder, download: bool) -> tuple[list[Posting], str]:
    archive, folder = find_file(FILES, data_home), data_folder(data_home)
    if archive is not None:
        return sorted(_read_archive(archive)), str(archive)
    if folder is not None and (folder / FOLDER / "20news-bydate-train").is_dir():
        return sorted(_read_folder(folder / FOLDER)), str(folder / FOLDER)
    what_to_do = missing(
        "20 Newsgroups",
        data_home,
        "Get 20news-bydate.tar.gz from Jason Rennie's page of the data set",
        FILES[1],
    )
    if not download:
        raise FileNotFoundError(what_to_do)
    return sorted(_fetch(what_to_do)), "scikit-learn, fetch_20newsgroups"


def _read_archive(path: Path) -> Iterator[Posting]:
    with tarfile.open(path) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isfile() else None
            if content is not None:
                yield from _posting(member.name, content.read())


def _read_folder(folder: Path) -> Iterator[Posting]:
    for path in folder.glob("20news-bydate-*/*/*"):
        yield from _posting(path.as_posix(), path.read_bytes())


def _posting(name: str, content: bytes) -> Iterator[Posting]:
    """The posting at ".../20news-bydate-train/<group>/<number>", if its group is one of the five."""
    part, group = name.split("/")[-3:-1] if name.count("/") >= 2 else ("", "")
    if group in CLASSES:
        yield part.removeprefix("20news-bydate-"), group, content.decode("latin-1")


def _fetch(what_to_do: str) -> Iterator[Posting]:
    from sklearn import datasets

    for part in N_POSTINGS:
        try:
            bunch = datasets.fetch_20newsgroups(subset=part, categories=list(CLASSES), n_retries=1)
        except Exception as error:  # no network, a proxy, a moved service: the way out is the same
            raise FileNotFoundError(
                f"{what_to_do} (scikit-learn: {type(error).__name__}: {error})"
            ) from error
        for text, number in zip(bunch.data, bunch.target, strict=True):
            yield part, bunch.target_names[number], text
