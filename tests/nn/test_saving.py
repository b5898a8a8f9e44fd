"""Files of trained networks: what comes back is the same, each party's file is its own, and no file runs code."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from torch import nn

from tests.nn import small
from tests.nn.tables import classifier, halves, same, table
from vflnn import VFLRegressor, load
from vflparty import DamagedFileError, ModelFile, WrongFileError


@pytest.fixture
def saved(tmp_path):
    X, y = table()
    model = classifier(top="linear", cut_width=4, bottom=("MLP2_scalable", {"hidden": 8})).fit(X, y)
    return model, model.save(tmp_path / "model"), X, y


def test_a_loaded_model_predicts_the_same_and_goes_on_alike(saved):
    model, paths, X, y = saved
    copy = load(paths["active"].parent)
    assert np.array_equal(copy.predict_proba(X), model.predict_proba(X)) and same(copy, model)
    assert copy.training_id_ == model.training_id_ and copy.n_epochs_ == 4
    assert same(copy.partial_fit(X, y, epochs=2), model.partial_fit(X, y, epochs=2))
    assert list(copy.history_["epoch"]) == [4, 5] and copy.training_id_ != model.training_id_


def test_frames_text_labels_and_an_active_party_without_columns_come_back(tmp_path):
    X, y = table()
    labels, blocks = np.array(["low", "mid", "high"])[y], halves(X)
    frame = pd.concat(blocks.values(), axis=1)
    partition = {"bank": [], "shop": ["c5", "c0"], "post": ["c1", "c2", "c3", "c4"]}
    for model, data in ((classifier(), blocks), (classifier(partition=partition), frame)):
        model.fit(data, labels)
        copy = load(model.save(tmp_path / str(len(model.parties_))).values())
        assert list(copy.classes_) == list(model.classes_) and copy.parties_ == model.parties_
        assert np.array_equal(copy.predict_proba(data), model.predict_proba(data))
    assert list(copy.feature_names_in_) == list(frame.columns)


def test_a_regressor_comes_back_with_the_unit_of_its_targets(tmp_path):
    X, y = table()
    model = VFLRegressor(epochs=2, random_state=0).fit(X, 1e3 * y + 0.1)
    model.save(tmp_path)
    assert np.array_equal(load(tmp_path).predict(X), model.predict(X))


def test_a_passive_partys_file_has_no_label_and_nothing_of_others(saved):
    model, paths, _, _ = saved
    file = ModelFile.read(paths["passive"])
    assert file.metadata["active"] is None and file.metadata["columns"] == [3, 4, 5]
    foreign = model._states["active"]
    content = paths["passive"].read_bytes()
    assert all(array.tobytes() not in content for array in foreign.arrays if array.size > 2)
    assert b"[3, 4, 5]" not in paths["active"].read_bytes()


def test_files_that_do_not_belong_together_are_refused(saved, tmp_path):
    model, paths, X, y = saved
    with pytest.raises(
        WrongFileError, match=r"files of \['active'\] are there, the model has \['active', 'passive'\]"
    ):
        load(paths["active"])
    with pytest.raises(WrongFileError, match="one file must be the active party's, 0 of 1 are"):
        load(paths["passive"])
    with pytest.raises(FileNotFoundError, match="no model files"):
        load(tmp_path)
    other = model.fit(X, y).save(tmp_path / "other")
    with pytest.raises(WrongFileError, match="different trainings"):
        load([paths["active"], other["passive"]])
    paths["passive"].write_bytes(paths["passive"].read_bytes()[:-40])
    with pytest.raises(DamagedFileError, match=r"passive\.model"):
        load(paths.values())


def test_weights_of_another_model_are_refused(saved):
    _, paths, _, _ = saved
    file = ModelFile.read(paths["passive"])
    dataclasses.replace(file, metadata={**file.metadata, "shape": [7]}).write(paths["passive"])
    with pytest.raises(DamagedFileError, match="do not fit"):
        load(paths.values())


def test_a_function_is_called_only_if_it_is_trusted(tmp_path):
    X, y = table()
    model = classifier(bottom=small.tanh_net, epochs=1).fit(X, y)
    model.save(tmp_path)
    name = "tests.nn.small:tanh_net"
    with pytest.raises(ValueError, match="a function that loading would call"):
        load(tmp_path)
    assert same(load(tmp_path, trusted=[name]), model)


def test_a_module_given_as_an_object_is_not_saved(tmp_path):
    X, y = table()
    model = classifier(bottom={"active": "MLP2", "passive": nn.Linear(3, 3)}, epochs=1).fit(X, y)
    with pytest.raises(ValueError, match="bottom of party 'passive': a Linear that was given as an object"):
        model.save(tmp_path)
    assert not list(tmp_path.iterdir())
