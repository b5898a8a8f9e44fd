"""`warm_start`: what a trained estimator hands to the training that continues it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from vflparty import codec, new_training_id

from ..growing.messages import ActiveResult, Records
from ..growing.models import decode_records, record_table
from ..tree import RecordTable
from .messages import TrainingState
from .settings import BoostSettings

if TYPE_CHECKING:
    from ..blocks import Block  # pandas, which a party on a seat does without


@dataclass(frozen=True)
class Past:
    """A trained model, and what must not change while it is continued."""

    model: ActiveResult
    tables: dict[str, Records]
    features: dict[str, int]  # party -> number of features, the active party first
    classes: np.ndarray | None

    @classmethod
    def of(cls, estimator: Any) -> Past | None:
        """None where nothing is trained yet."""
        if not estimator.warm_start or getattr(estimator, "_active_model", None) is None:
            return None
        if len(estimator._passive_models) + 1 != len(estimator.parties_):
            raise ValueError(
                "warm_start needs the halves of all parties; this model holds the active party's only"
            )
        return cls(
            estimator._active_model,
            estimator._passive_models,
            dict(estimator.n_features_in_per_party_),
            getattr(estimator, "classes_", None),
        )

    def check(self, estimator: Any, settings: BoostSettings) -> None:
        """ValueError unless the new training is on the same parties, columns, classes and objective."""
        features = estimator.n_features_in_per_party_
        if list(features.items()) != list(self.features.items()):
            raise ValueError(f"warm_start: the model has features {self.features}, X has {features}")
        classes: Any = getattr(estimator, "classes_", None)
        if self.classes is not None and not np.array_equal(self.classes, classes):
            raise ValueError(f"warm_start: the model has classes {self.classes}, y has {classes}")
        if self.model.objective != settings.objective or len(self.model.base_score) != settings.n_outputs:
            raise ValueError(
                f"warm_start: the model was trained for {self.model.objective} with {len(self.model.base_score)} "
                f"outputs, now it is {settings.objective} with {settings.n_outputs}"
            )
        if settings.n_outputs > 1 and (self.model.value.shape[1] > 1) != settings.vector_leaves:
            raise ValueError(
                f"warm_start: leaves of the model hold {self.model.value.shape[1]} values, now multi_strategy is "
                f"{settings.multi_strategy!r}"
            )
        if settings.label_privacy_epsilon is not None:
            raise ValueError(
                "warm_start would draw labels under label_privacy_epsilon anew, and spend it twice"
            )
        if settings.n_estimators < self.n_rounds(settings):
            raise ValueError(
                f"warm_start: n_estimators={settings.n_estimators} is less than the {self.n_rounds(settings)} "
                "rounds of the model"
            )

    def check_categories(self, blocks: Mapping[str, Block]) -> None:
        """ValueError unless every party's columns hold the categories that the model knows: before a key is made."""
        active, *_ = blocks
        tables = {active: decode_records(self.model.records)}
        tables |= {party: record_table(records) for party, records in self.tables.items()}
        for party, block in blocks.items():
            known, (given, _) = tables[party].categories.lists, block.categories.used(block.values)
            for column in sorted({*known, *given.lists}):
                there, here = known.get(column, ()), given.lists.get(column, ())
                if there != here:
                    raise ValueError(
                        f"warm_start: column {block.column_name(column)} of party {party!r} holds {len(here)} "
                        f"categories, other ones than the {len(there)} that the model was trained on; train on the "
                        "same categories, or anew with warm_start=False"
                    )

    def n_rounds(self, settings: BoostSettings) -> int:
        return len(self.model.sizes) // settings.trees_per_round

    def state(self, raw: np.ndarray, evaluation_raw: np.ndarray | None, settings: BoostSettings) -> bytes:
        """An encoded TrainingState. raw, evaluation_raw : float64 (n_rows, n_outputs), as the model predicts them."""
        dtype = self.model.base_score.dtype
        scores = np.zeros((0, 0)) if evaluation_raw is None else evaluation_raw
        return codec.encode(
            TrainingState(
                training=new_training_id(),
                n_rounds=self.n_rounds(settings),
                model=codec.encode(self.model),
                raw_scores=raw.astype(dtype),
                evaluation_scores=scores.astype(dtype),
                history="",
                private_targets=np.zeros(0),
            )
        )


def continued(finished: RecordTable, fresh: RecordTable) -> RecordTable:
    """A party's table of finished rounds, to go on with on rows whose own, still empty table is `fresh`."""
    if dict(finished.categories.lists) != dict(fresh.categories.lists):
        raise ValueError("columns of categories hold other ones than where the finished rounds were trained")
    return finished
