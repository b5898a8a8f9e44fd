"""Lesson 8: a trained model as one file per party: who keeps what, predictions from files, and a model for XGBoost.

    python examples/08_save_load_export.py

A hospital (the diagnosis and 10 columns) and a laboratory (20 columns) train together; `--fast` takes a weak key.
"""

import argparse
import tempfile
import warnings
from pathlib import Path

import numpy as np

import vfltree
from vflcrypto import InsecureKeyWarning
from vfldata import load_breast_cancer_vertical
from vflparty import InProcessNetwork, ModelFile
from vfltree import SecureBoostClassifier
from vfltree.growing.prediction import ActivePredictor
from vfltree.plotting import tree_to_text
from vfltree.secureboost import PassiveParty


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fast", action="store_true", help="a weak key: seconds, no protection")
    cipher = {"key_bits": 512, "allow_weak_key": True} if parser.parse_args().fast else {"key_bits": 2048}
    warnings.simplefilter("ignore", InsecureKeyWarning)

    data = load_breast_cancer_vertical()
    hospital, laboratory = data.partition
    model = SecureBoostClassifier(3, max_depth=3, partition=data.partition, random_state=0, **cipher)
    model.fit(data.X_train, data.y_train)
    proba = model.predict_proba(data.X_test)

    print("1. Which columns matter, and what the hospital sees of that")
    print(model.importances("total_gain")[laboratory].nlargest(3).to_string())
    print(
        f"   as {hospital} sees it:", model.importances("total_gain", viewer=hospital)[laboratory].to_dict()
    )
    print(tree_to_text(model, 0, viewer=hospital))

    with tempfile.TemporaryDirectory() as folder:
        print("\n2. One file per party, none with a key")
        paths = model.save(folder)
        for path in paths.values():
            names = ModelFile.read(path).metadata["names"]
            print(f"   {path.name}: {path.stat().st_size} bytes, knows {len(names)} column names")

        again = vfltree.load(folder)
        print(
            "   loaded, predicts bit for bit the same:",
            np.array_equal(again.predict_proba(data.X_test), proba),
        )
        predict_apart(paths, data, proba)

    print("\n4. A model for XGBoost, which shows everything to whoever holds it")
    try:
        model.to_xgboost(consent=[hospital])
    except ValueError as error:
        print("  ", str(error).partition(".")[0])
    export(model, data, proba)


def predict_apart(paths: dict[str, Path], data, proba: np.ndarray) -> None:
    """Each party with its own file and its own rows; here they share a process, bytes cross even so."""
    print("\n3. Each party with its own file and its own columns")
    hospital, laboratory = data.partition

    def ask(setup):
        party = PassiveParty.from_file(paths[laboratory], data.X_test[data.partition[laboratory]])
        return InProcessNetwork({laboratory: party}, leader=hospital).run(ActivePredictor.from_setup(setup))

    alone = vfltree.load_active(paths[hospital], ask)
    rows = data.X_test[data.partition[hospital]]
    print("   the hospital predicts the same:", np.array_equal(alone.predict_proba(rows), proba))
    print("   and still sees:", tree_to_text(alone, 0).splitlines()[0])


def export(model: SecureBoostClassifier, data, proba: np.ndarray) -> None:
    try:
        import xgboost
    except ImportError:
        print("   (pip install xgboost to go on)")
        return
    try:
        booster = model.to_xgboost(consent=list(data.partition))
    except ValueError as error:  # these measurements are doubles: two of them may be one float32
        print("  ", error)
        return
    found = booster.predict(xgboost.DMatrix(data.X_test.astype(np.float32)))
    print(f"   with everybody's consent: {booster.num_boosted_rounds()} rounds; largest difference "
          f"{np.abs(found - proba[:, 1]).max():.1e}")  # fmt: skip


if __name__ == "__main__":
    main()
