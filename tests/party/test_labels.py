"""Class labels as JSON: what goes in comes out, and documents of other shapes are refused."""

import json

import numpy as np
import pytest

from vflparty.labels import decode_labels, encode_labels


@pytest.mark.parametrize(
    "labels",
    [
        np.array([1.5, -0.0, np.inf, 5e-324]),
        np.array([1, 2], dtype=">i4"),
        np.array(["2024-01-01", "2025-06-30"], dtype="M8[D]"),
        np.array([1, 2], dtype="m8[ns]"),
        np.array(["a", "bb"], dtype="U50"),
        np.array([True, False]),
        np.array([1, 2.5, "x", True, None, 2**80], dtype=object),
        np.array([0.1], dtype=np.float32),
    ],
)
def test_what_goes_in_comes_out(labels):
    back = decode_labels(json.loads(json.dumps(encode_labels(labels))))
    assert back.dtype == labels.dtype.newbyteorder("=")
    assert back.tobytes() == labels.astype(back.dtype).tobytes() or list(back) == list(labels)
    assert [type(a) for a in back.tolist()] == [type(a) for a in labels.tolist()]


@pytest.mark.parametrize("labels", [np.array([1 + 2j]), np.array([object()], dtype=object), np.array([b"x"])])
def test_labels_that_cannot_be_kept_are_named(labels):
    with pytest.raises(TypeError, match="cannot be kept"):
        encode_labels(labels)


@pytest.mark.parametrize(
    "document",
    [
        {}, {"dtype": "object", "values": [["function", "x"]]}, {"dtype": "object", "values": ["x"]},
        {"dtype": "O", "values": [1]}, {"dtype": "<i8", "values": ["1"]}, {"dtype": "<i8", "values": [2**70]},
        {"dtype": "|V8", "values": [1]}, {"dtype": "<i8", "values": [[1, 2]]}, {"dtype": "<f8", "values": [1.0]},
        {"dtype": "<f8", "values": ["one"]}, {"dtype": "object", "values": [["int", 3]]},
        {"dtype": 3, "values": []},
        {"dtype": "<M8[banana]", "values": [1]}, {"dtype": "object", "values": [["float", "x"]]},
    ],
)  # fmt: skip
def test_documents_of_other_shapes_are_refused(document):
    with pytest.raises(ValueError):
        decode_labels(document)


def test_a_false_width_takes_no_memory():
    assert decode_labels({"dtype": "<U999999", "values": ["a", "b"]}).nbytes < 10_000
