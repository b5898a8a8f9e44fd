"""Models on disk: one file per party, each fit for its party's eyes, and predictions bit for bit as before."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from tests.secureboost.small import CONST4, WEAK, XA4, Y4, blocks, boost1, some_data, thirds
from vflparty import (
    DamagedFileError,
    FileVersionError,
    InProcessNetwork,
    ModelFile,
    ModelFileError,
    OtherVersionWarning,
    RemoteProtocolError,
    RowsDisagreeError,
    WrongFileError,
    codec,
    make_network,
    make_seat,
    new_training_id,
)
from vflparty.labels import encode_labels
from vfltree import SecureBoostClassifier, SecureBoostRegressor, load, load_active
from vfltree.growing.messages import ActiveResult, Records
from vfltree.growing.own_file import passive_setup, prediction_setup
from vfltree.growing.prediction import ActivePredictor
from vfltree.halves import Half
from vfltree.secureboost import ActiveParty, BoostSettings, PassiveParty
from vfltree.secureboost.files import FILE_KIND

pytestmark = [
    pytest.mark.filterwarnings("ignore::vfltree.NotEncryptedWarning"),
    pytest.mark.filterwarnings("ignore::vflcrypto.InsecureKeyWarning"),
]


def frames(n_rows=120, seed=0):
    """A bank's and a shop's columns, and labels that need both."""
    rng = np.random.default_rng(seed)
    bank = pd.DataFrame(rng.normal(size=(n_rows, 2)), columns=["income", "age"])
    shop = pd.DataFrame(rng.normal(size=(n_rows, 3)), columns=["visits", "basket", "returns"])
    shop[rng.random(shop.shape) < 0.1] = np.nan
    score = bank["income"] + shop["visits"].fillna(0)
    return {"bank": bank, "shop": shop}, np.where(score > 0, "good", "bad")


@pytest.fixture
def saved(tmp_path):
    """(model, X, folder) of a small model of two parties."""
    X, y = frames()
    model = SecureBoostClassifier(5, max_depth=3, encryption="none").fit(X, y)
    model.save(tmp_path / "model")
    return model, X, tmp_path / "model"


def edited(path, **changes):
    """Write the file again with another header or metadata, soundly sealed."""
    file = ModelFile.read(path)
    metadata = {**file.metadata, **changes}
    replace(file, metadata=metadata).write(path)


class TestRoundTrip:
    @pytest.mark.parametrize("task", ["binary", "five", "regression"])
    @pytest.mark.parametrize("encryption", [{"encryption": "none"}, WEAK], ids=["plain", "paillier"])
    def test_a_loaded_model_predicts_the_same_bits(self, tmp_path, task, encryption):
        X, y = some_data(task, n_rows=90, missing=True)
        kind = SecureBoostRegressor if task == "regression" else SecureBoostClassifier
        model = kind(2, max_depth=3, partition=thirds(9, 3), random_state=0, **encryption).fit(X, y)
        again = load(model.save(tmp_path).values())
        assert (again.predict(X) == model.predict(X)).all()
        assert (again.apply(X) == model.apply(X)).all()
        if task != "regression":
            assert again.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
            assert again.decision_function(X).tobytes() == model.decision_function(X).tobytes()
        assert (again.base_score_ == model.base_score_).all()
        assert again.encryption_ == model.encryption_

    def test_targets_beyond_single_precision_keep_their_digits(self, tmp_path):
        y = np.array([1e9, 1e9, 1e9 + 4, 1e9 + 4])
        model = SecureBoostRegressor(2, learning_rate=0.7, encryption="none").fit(blocks(XA4, CONST4), y)
        model.save(tmp_path)
        assert (
            load(tmp_path).predict(blocks(XA4, CONST4)).tobytes()
            == model.predict(blocks(XA4, CONST4)).tobytes()
        )

    def test_files_may_come_in_any_order(self, saved):
        model, X, folder = saved
        for files in (sorted(folder.iterdir()), sorted(folder.iterdir(), reverse=True), folder, str(folder)):
            assert (load(files).predict_proba(X) == model.predict_proba(X)).all()

    def test_what_scikit_learn_asks_of_a_trained_model_is_there(self, saved):
        model, X, folder = saved
        again = load(folder)
        assert type(again) is SecureBoostClassifier
        assert list(again.classes_) == ["bad", "good"]
        assert again.parties_ == ("bank", "shop")
        assert (again.n_features_in_, again.n_features_in_per_party_) == (5, {"bank": 2, "shop": 3})
        assert again.training_id_ == model.training_id_
        shuffled = {"shop": X["shop"][["returns", "visits", "basket"]], "bank": X["bank"][["age", "income"]]}
        assert (again.predict_proba(shuffled) == model.predict_proba(X)).all()
        with pytest.raises(ValueError, match=r"missing columns \['visits'\]"):
            again.predict({**X, "shop": X["shop"].drop(columns="visits")})

    def test_one_matrix_with_names_comes_back_as_such(self, tmp_path):
        X, y = frames()
        whole = pd.concat([X["shop"], X["bank"]], axis=1)
        partition = {"bank": ["age", "income"], "shop": ["basket", "visits", "returns"]}
        model = SecureBoostClassifier(3, encryption="none", partition=partition).fit(whole, y)
        model.save(tmp_path)
        again = load(tmp_path)
        assert list(again.feature_names_in_) == list(whole.columns)
        assert (again.predict_proba(whole) == model.predict_proba(whole)).all()
        with pytest.raises(ValueError, match="feature names"):
            again.predict(whole[whole.columns[::-1]])
        assert again.partition == {"bank": [4, 3], "shop": [1, 0, 2]}

    def test_a_loaded_model_can_be_trained_and_saved_again(self, saved, tmp_path):
        model, X, folder = saved
        again = load(folder)
        assert again.get_params() == model.get_params()
        y = model.predict(X)
        fresh = clone(again).fit(X, y)
        assert (fresh.predict(X) == y).mean() > 0.9
        again.save(tmp_path / "again")
        for name in ("bank.model", "shop.model"):
            assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()
        assert fresh.training_id_ != model.training_id_

    @pytest.mark.parametrize(
        "y",
        [
            [-1, -1, 1, 1],
            ["no", "no", "yes", "yes"],
            ["näh", "näh", "ya\u0000h", "ya\u0000h"],
            [False, False, True, True],
            [1.0, 1.0, 2.0, 2.0],
            pd.Categorical(["x", "x", "y", "y"]),
            pd.Series(["x", "x", "y", "y"], dtype="string"),
            pd.Series([0, 0, 1, 1], dtype="Int64"),
            pd.Series([False, False, True, True], dtype="boolean"),
            np.array([2**62, 2**62, 2**62 + 1, 2**62 + 1]),
            np.array([0, 0, 1, 1], dtype=np.uint8),
        ],
        ids=["signs", "text", "accents", "bools", "floats", "categorical", "strings", "Int64", "boolean", "long", "u1"],
    )  # fmt: skip
    def test_labels_of_any_kind_survive(self, tmp_path, y):
        model = boost1().fit(blocks(XA4, CONST4), y)
        model.save(tmp_path)
        again = load(tmp_path)
        assert again.classes_.dtype == model.classes_.dtype
        assert list(again.classes_) == list(model.classes_)
        assert [type(c) for c in again.classes_] == [type(c) for c in model.classes_]
        assert list(again.predict(blocks(XA4, CONST4))) == list(y)

    @pytest.mark.parametrize("strategy", ["one_output_per_tree", "multi_output_tree"])
    def test_models_of_several_targets_come_back(self, tmp_path, strategy):
        X, _ = some_data("binary", n_rows=60)
        model = SecureBoostRegressor(2, max_depth=2, encryption="none", multi_strategy=strategy).fit(
            X, X[:, :3]
        )
        model.save(tmp_path)
        assert load(tmp_path).predict(X).tobytes() == model.predict(X).tobytes()

    def test_a_model_that_was_stopped_early_keeps_its_best_round(self, tmp_path):
        X, y = some_data("binary", n_rows=200)
        model = SecureBoostClassifier(40, early_stopping_rounds=3, encryption="none", learning_rate=1.0)
        model.fit(X[:120], y[:120], eval_set=(X[120:], y[120:]))
        assert model.n_rounds_ == model.best_iteration_ + 1 < 40
        model.save(tmp_path)
        again = load(tmp_path)
        assert (again.best_iteration_, again.best_score_) == (model.best_iteration_, model.best_score_)
        assert again.n_rounds_ == model.n_rounds_
        assert again.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
        staged = list(again.staged_predict_proba(X))
        assert len(staged) == model.n_rounds_
        assert (staged[-1] == model.predict_proba(X)).all()

    def test_an_active_party_without_features_is_saved_too(self, tmp_path):
        model = boost1().fit({"a": None, "b": XA4}, Y4)
        model.save(tmp_path)
        assert (load(tmp_path).predict({"b": XA4}) == Y4).all()

    def test_party_names_do_not_choose_the_folder(self, tmp_path):
        model = boost1().fit({"../up": XA4, "a/b": CONST4}, Y4)
        paths = model.save(tmp_path / "here")
        assert all(path.parent == tmp_path / "here" for path in paths.values())
        assert len(list(tmp_path.rglob("*.model"))) == 2
        assert (load(tmp_path / "here").predict({"../up": XA4, "a/b": CONST4}) == Y4).all()

    def test_nothing_is_saved_before_training(self, tmp_path):
        for kind in (SecureBoostClassifier, SecureBoostRegressor):
            with pytest.raises(NotFittedError):
                kind().save(tmp_path / "model")
        assert not (tmp_path / "model").exists()

    def test_a_fresh_process_predicts_without_a_key(self, saved, tmp_path):
        model, X, folder = saved
        bank = X["bank"].to_numpy()
        shop = np.asfortranarray(X["shop"].fillna(0).to_numpy().astype(np.int32))
        np.savez(tmp_path / "rows.npz", bank=bank, shop=shop)
        script = f"""
import numpy as np, vflcrypto.paillier
def refuse(*args, **kwargs): raise AssertionError("a key was made")
vflcrypto.paillier.generate_keypair = refuse
from vfltree import load
rows = np.load({str(tmp_path / "rows.npz")!r})
proba = load({str(folder)!r}).predict_proba({{"bank": rows["bank"], "shop": np.asfortranarray(rows["shop"])}})
np.save({str(tmp_path / "proba.npy")!r}, proba)
"""
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert (np.load(tmp_path / "proba.npy") == model.predict_proba({"bank": bank, "shop": shop})).all()


class TestWhatFilesHold:
    """Bytes that a party's file must not hold, and the same search on a file that does."""

    def halves(self, tmp_path, names=True, **settings):
        foreign = np.array([[123.456], [123.456], [987.654], [987.654]])
        rng = np.random.default_rng(0)
        shop = pd.DataFrame(foreign, columns=["shop_secret_column"]) if names else foreign
        bank = (
            pd.DataFrame(rng.normal(size=(4, 1)) * 0 + 5.0, columns=["bank_secret_column"])
            if names
            else CONST4
        )
        model = boost1(**settings).fit(
            {"bank": bank, "shop": shop}, ["label_no", "label_no", "label_yes", "label_yes"]
        )
        paths = model.save(tmp_path)
        return model, {party: path.read_bytes() for party, path in paths.items()}

    @pytest.mark.parametrize("settings", [{}, {"encryption": "paillier", **WEAK}], ids=["plain", "paillier"])
    def test_the_active_file_has_no_foreign_threshold_and_no_foreign_name(self, tmp_path, settings):
        _, files = self.halves(tmp_path, **settings)
        between = [((n >= 123) & (n <= 988)).any() for n in map(numbers_in, (files["bank"], files["shop"]))]
        assert between == [False, True]  # the same search finds what the owner's file does hold
        assert not holds_number(files["bank"], 123.456)
        assert not holds_number(files["bank"], 987.654)
        assert holds_number(files["shop"], 987.654)
        assert b"123.4" not in files["bank"]
        assert b"987.6" not in files["bank"]
        assert b"shop_secret_column" not in files["bank"]
        assert b"bank_secret_column" in files["bank"]
        assert b"shop_secret_column" in files["shop"]

    @pytest.mark.parametrize("settings", [{}, {"encryption": "paillier", **WEAK}], ids=["plain", "paillier"])
    def test_a_passive_file_has_no_leaf_value_no_label_no_gradient_and_no_name_of_others(
        self, tmp_path, settings
    ):
        _, files = self.halves(tmp_path, **settings)
        for secret in (2 / 3, 0.5, 0.25, 0.339244, 0.660756):
            assert not holds_number(files["shop"], secret), secret
            assert not holds_number(files["shop"], -secret), secret
        for word in (b"label_", b"bank", b"learning_rate", b"classes", b"base_score"):
            assert word not in files["shop"], word
        assert holds_number(files["bank"], 2 / 3)  # the leaf, where it belongs
        assert b"label_yes" in files["bank"]

    def test_no_file_has_a_key_or_the_seed_of_secret_orders(self, tmp_path):
        _, files = self.halves(tmp_path, encryption="paillier", **WEAK, random_state=987123645)
        for data in files.values():
            for word in (b"PrivateKey", b"private", b"random_state", b"987123645"):
                assert word not in data
            assert max(map(len, ModelFile.from_bytes(data).frames)) < 3000  # no ciphertext, no key material
        assert load(tmp_path).random_state is None

    def test_columns_by_place_are_in_their_owners_file_only(self, tmp_path):
        X, y = some_data("binary", n_rows=60)
        model = SecureBoostClassifier(2, encryption="none", partition=thirds(9, 3)).fit(X, y)
        for party, path in model.save(tmp_path).items():
            metadata = ModelFile.read(path).metadata
            assert metadata["columns"] == thirds(9, 3)[party]
            rest = json.dumps({**metadata, "columns": None})
            assert "[3, 4, 5]" not in rest
            assert "partition" not in rest.replace("partitioned", "")


def holds_number(data, number):
    """Whether any eight or four bytes are this number, up to its last digits, as a float64 or float32."""
    found = False
    for width, form in ((8, "<f8"), (4, "<f4")):
        for offset in range(width):
            values = np.frombuffer(data[offset : offset + (len(data) - offset) // width * width], dtype=form)
            with np.errstate(invalid="ignore", over="ignore"):
                found |= bool((np.abs(values / number - 1) < 1e-6).any())
    return found


def numbers_in(data):
    """All floating-point numbers in the arrays of a file."""
    found = []
    for message in ModelFile.from_bytes(data).many(ActiveResult, Records):
        fields = dict(vars(message))
        if isinstance(message, ActiveResult):
            fields.update(vars(codec.decode(message.records, (Records,))))
        found += [v.ravel() for v in fields.values() if isinstance(v, np.ndarray) and v.dtype.kind == "f"]
    return np.concatenate(found)


class TestRefusals:
    def test_files_of_different_trainings_do_not_make_a_model(self, tmp_path):
        X, y = frames()
        for name in ("one", "two"):
            SecureBoostClassifier(2, encryption="none", random_state=0).fit(X, y).save(tmp_path / name)
        with pytest.raises(WrongFileError, match=r"shop\.model.*different trainings"):
            load([tmp_path / "one" / "bank.model", tmp_path / "two" / "shop.model"])

    def test_a_missing_party_is_named(self, saved):
        _, _, folder = saved
        with pytest.raises(WrongFileError, match=r"party 'shop' is missing"):
            load(folder / "bank.model")
        with pytest.raises(WrongFileError, match=r"active party's, 0 of 1"):
            load([folder / "shop.model"])

    def test_a_party_twice_or_too_many_is_named(self, saved, tmp_path):
        _, _, folder = saved
        shutil.copy(folder / "shop.model", folder / "copy.model")
        with pytest.raises(WrongFileError, match=r"two files of party 'shop'"):
            load(folder)
        with pytest.raises(WrongFileError, match=r"active party's, 2 of 3"):
            load([folder / "bank.model", folder / "bank.model", folder / "shop.model"])
        file = ModelFile.read(folder / "shop.model")
        replace(file, party="mall").write(folder / "copy.model")
        with pytest.raises(WrongFileError, match="mall"):
            load(folder)

    def test_a_folder_without_models_says_so(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="no model files"):
            load(tmp_path)
        with pytest.raises(FileNotFoundError):
            load(tmp_path / "nowhere")

    @pytest.mark.parametrize("party", ["bank", "shop"])
    def test_damage_is_found_when_loading(self, saved, party):
        _, _, folder = saved
        path = folder / f"{party}.model"
        good = path.read_bytes()
        rng = np.random.default_rng(0)
        damaged = [good[:-1], good[: len(good) // 2], b"", good + b"x"]
        for at in rng.integers(len(good), size=20):
            flipped = bytearray(good)
            flipped[at] ^= 1 << int(rng.integers(8))
            damaged.append(bytes(flipped))
        for data in damaged:
            path.write_bytes(data)
            with pytest.raises(ModelFileError, match=f"{party}.model"):
                load(folder)

    @pytest.mark.parametrize("version", [999, None])
    def test_another_format_version_is_named_beside_ours(self, saved, version):
        _, _, folder = saved
        path = folder / "bank.model"
        data = path.read_bytes()
        new = b'"format_version": 999' if version else b'"format_versioN": 1'
        path.write_bytes(data.replace(b'"format_version": 1', new))
        if version:  # the header has grown by two bytes
            grown = path.read_bytes()
            (size,) = struct.unpack_from("<Q", grown, 8)
            path.write_bytes(grown[:8] + struct.pack("<Q", size + 2) + grown[16:])
        with pytest.raises(FileVersionError, match=r"999.*version 1" if version else r"missing.*version 1"):
            load(folder)

    def test_an_older_library_warns_and_works(self, saved):
        model, X, folder = saved
        for path in folder.iterdir():
            replace(ModelFile.read(path), library_version="0.0.3").write(path)
        with pytest.warns(OtherVersionWarning, match=r"0\.0\.3"):
            again = load(folder)
        assert (again.predict_proba(X) == model.predict_proba(X)).all()

    def test_a_file_of_another_kind_is_refused(self, saved):
        _, _, folder = saved
        replace(ModelFile.read(folder / "shop.model"), kind="recipe").write(folder / "shop.model")
        with pytest.raises(WrongFileError, match=r"'recipe', expected 'secureboost'"):
            load(folder)

    @pytest.mark.parametrize(
        ("party", "changes"),
        [
            ("bank", {"n_features": "two"}),
            ("bank", {"n_features": 3}),
            ("bank", {"n_features": 10**30, "names": None}),
            ("bank", {"n_features": -1, "names": None}),
            ("bank", {"names": ["income"]}),
            ("bank", {"names": [1, 2]}),
            ("bank", {"columns": [0, 1]}),
            ("bank", {"active": {}}),
            ("shop", {"n_features": 1, "names": None}),
            ("shop", {"active": {"estimator": "SecureBoostClassifier"}}),
        ],
    )
    def test_metadata_that_cannot_be_is_refused_by_load(self, saved, party, changes):
        _, _, folder = saved
        edited(folder / f"{party}.model", **changes)
        with pytest.raises(ModelFileError):
            load(folder)

    @pytest.mark.parametrize("n_classes", [1, 3, None])
    def test_classes_that_the_trees_do_not_have_are_refused_by_load(self, saved, n_classes):
        _, _, folder = saved
        path = folder / "bank.model"
        extra = dict(ModelFile.read(path).metadata["active"])
        extra["classes"] = None if n_classes is None else encode_labels(np.arange(n_classes))
        edited(path, active=extra)
        with pytest.raises(DamagedFileError, match="classes"):
            load(folder)

    @pytest.mark.parametrize(
        "changes",
        [
            {"base_score": np.zeros(2, np.float32)},
            {"base_score": np.zeros(10**6, np.float32)},
            {"base_score": np.full(1, np.nan, np.float32)},
            {"objective": "reg:nothing"},
        ],
    )
    def test_outputs_that_the_trees_do_not_have_are_refused_by_load(self, saved, changes):
        _, _, folder = saved
        path = folder / "bank.model"
        file = ModelFile.read(path)
        (message,) = file.messages(ActiveResult)
        replace(file, frames=(codec.encode(replace(message, **changes)),)).write(path)
        with pytest.raises(DamagedFileError, match="do not fit"):
            load(folder)

    @pytest.mark.parametrize("name", ["owner", "left", "node", "sizes", "value", "cover"])
    def test_trees_that_are_none_are_refused_by_load(self, saved, name):
        _, _, folder = saved
        path = folder / "bank.model"
        file = ModelFile.read(path)
        (message,) = file.messages(ActiveResult)
        array = getattr(message, name)
        changes = {
            "left": lambda a: a[::-1].copy(),
            "node": lambda a: a + 1,
            "value": lambda a: a[:, 0].copy(),
            "cover": lambda a: a[:-1],
        }
        spoil = changes.get(name, lambda a: a + 7)
        broken = replace(message, **{name: spoil(array)})
        replace(file, frames=(codec.encode(broken),)).write(path)
        with pytest.raises(DamagedFileError, match="do not fit"):
            load(folder)

    def test_a_split_without_its_record_is_refused_by_load(self, saved):
        _, _, folder = saved
        path = folder / "shop.model"
        file = ModelFile.read(path)
        (table,) = file.messages(Records)
        short = replace(
            table, **{f: getattr(table, f)[1:] for f in ("ids", "columns", "thresholds", "missing_left")}
        )
        replace(file, frames=(codec.encode(short),)).write(path)
        with pytest.raises(DamagedFileError, match=r"split of party 1 is not in its table"):
            load(folder)


class TestOneFileEach:
    """Parties that hold only their own file."""

    @pytest.mark.parametrize("kind", ["inprocess", "process"])
    def test_parties_on_their_own_files_predict_as_the_whole_model(self, saved, kind):
        model, X, folder = saved
        seats = [
            make_seat("bank", ActivePredictor, prediction_setup(folder / "bank.model", X["bank"])),
            make_seat("shop", PassiveParty, passive_setup(folder / "shop.model", X["shop"])),
        ]
        with make_network(kind, seats) as network:
            raw = network.run().raw_scores
        assert (raw[:, 0] == model.decision_function(X)).all()

    def test_the_active_party_alone_has_the_estimator(self, saved):
        model, X, folder = saved
        (folder / "shop.model").rename(folder.parent / "shop.model")  # out of the active party's reach

        def ask(setup):
            shop = PassiveParty.from_file(folder.parent / "shop.model", X["shop"])
            network = InProcessNetwork({"shop": shop}, leader="bank")
            return network.run(ActivePredictor.from_setup(setup))

        alone = load_active(folder / "bank.model", ask)
        assert (alone.predict(X["bank"]) == model.predict(X)).all()
        assert (alone.predict_proba(X["bank"][["age", "income"]]) == model.predict_proba(X)).all()
        assert (alone.apply(X["bank"].to_numpy()) == model.apply(X)).all()
        assert list(alone.save(folder.parent / "alone")) == ["bank"]
        assert (folder.parent / "alone" / "bank.model").read_bytes() == (folder / "bank.model").read_bytes()
        with pytest.raises(ValueError, match=r"missing columns \['age'\]"):
            alone.predict(X["bank"][["income"]])

    def test_rows_in_another_order_are_noticed(self, saved):
        _, X, folder = saved
        shop = PassiveParty.from_file(folder / "shop.model", X["shop"].iloc[::-1])
        bank = ActivePredictor.from_file(folder / "bank.model", X["bank"])
        with pytest.raises(RowsDisagreeError):
            InProcessNetwork({"shop": shop}, leader="bank").run(bank)

    def test_ids_may_be_given_beside_arrays(self, saved):
        model, X, folder = saved
        names = [("customer", i) for i in range(len(X["bank"]))]
        shop = PassiveParty.from_file(folder / "shop.model", X["shop"].to_numpy(), ids=names)
        bank = ActivePredictor.from_file(folder / "bank.model", X["bank"].to_numpy(), ids=names)
        raw = InProcessNetwork({"shop": shop}, leader="bank").run(bank).raw_scores
        assert (raw[:, 0] == model.decision_function(X)).all()
        with pytest.raises(ValueError, match="119 row IDs for 120 rows"):
            PassiveParty.from_file(folder / "shop.model", X["shop"], ids=names[:-1])

    def test_nobody_can_take_the_other_role(self, saved):
        _, X, folder = saved
        with pytest.raises(WrongFileError, match=r"active party's half, expected a passive"):
            PassiveParty.from_file(folder / "bank.model", X["bank"])
        with pytest.raises(WrongFileError, match=r"passive party's half, expected the active"):
            ActivePredictor.from_file(folder / "shop.model", X["shop"])
        with pytest.raises(WrongFileError, match="expected the active"):
            load_active(folder / "shop.model", print)

    def test_a_party_trained_elsewhere_cannot_answer_for_this_model(self, saved, tmp_path):
        _, X, folder = saved
        X2, y2 = frames(seed=1)
        SecureBoostClassifier(1, max_depth=1, encryption="none").fit(X2, y2).save(tmp_path / "other")
        shop = PassiveParty.from_file(tmp_path / "other" / "shop.model", X["shop"])
        bank = ActivePredictor.from_file(folder / "bank.model", X["bank"])
        with pytest.raises(RemoteProtocolError, match="unknown record"):
            InProcessNetwork({"shop": shop}, leader="bank").run(bank)

    def test_a_table_beyond_its_columns_is_refused(self, saved):
        _, X, folder = saved
        edited(folder / "shop.model", n_features=1, names=None)
        with pytest.raises(DamagedFileError, match=r"shop\.model.*outside the 1"):
            PassiveParty.from_file(folder / "shop.model", X["shop"][["visits"]])

    def test_parties_that_trained_by_hand_write_their_own_files(self, tmp_path):
        X, y = frames()
        numbers = (y == "good").astype(float)
        settings = BoostSettings(n_estimators=3, max_depth=3, encryption="none")
        shop = PassiveParty(X["shop"].to_numpy(), name="shop")
        bank = ActiveParty(X["bank"].to_numpy(), numbers, passive_parties=["shop"], settings=settings)
        result = InProcessNetwork({"shop": shop}, leader="bank").run(bank)
        training = new_training_id()  # agreed on beside the protocol
        Half.of_passive(
            FILE_KIND, "shop", training, shop.export_state(), 3, X["shop"].columns
        ).to_file().write(tmp_path / "shop.model")
        Half.of_active(
            FILE_KIND, "bank", training, result, 2, X["bank"].columns, passive_parties=["shop"],
            estimator="SecureBoostClassifier", classes=np.array(["bad", "good"]),
        ).to_file().write(tmp_path / "bank.model")  # fmt: skip
        model = SecureBoostClassifier(3, max_depth=3, encryption="none").fit(X, y)
        again = load(tmp_path)
        assert (again.predict_proba(X) == model.predict_proba(X)).all()
        assert (again.predict(X) == model.predict(X)).all()
