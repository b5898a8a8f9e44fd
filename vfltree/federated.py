"""What every estimator of trees over several parties does around its protocol: seats, costs, predictions.

Subclasses say which parties sit there and what their targets are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from vflparty import Ledger, Message, Party, codec, make_network, make_seat, new_training_id
from vflparty.party import Leader

from .base import PartitionedEstimator, check_targets
from .bin_groups import check_min_rows
from .blocks import Block
from .growing.messages import PassiveSetup, Predicted, PredictionSetup, Records
from .growing.models import encode_categories
from .growing.prediction import ActivePredictor
from .inspection import Inspected
from .joining import join_training
from .progress import ProgressBar
from .saving import SavedByParty
from .sealing import COUNTERS
from .seating import CipherSettings, check_seating, costs_of, warn_of_keys

_ANSWERS_AT_ONCE = 1 << 27  # a passive party keeps one byte per (record, row) while it predicts


class TrainingSettings(CipherSettings, Protocol):
    """What the report of a training says of its settings."""

    @property
    def n_estimators(self) -> int: ...


class FederatedTrees(SavedByParty, Inspected, PartitionedEstimator):
    """What estimators of trees share. `__init__` of a subclass only stores; everything is checked in `fit`."""

    _passive_party: ClassVar[type[Party]]  # who sits at a passive party's seat
    _in_the_clear: ClassVar[str] = "gradients in the clear and can read labels from them"
    max_bin: int
    min_rows_per_sum: int = 1
    allow_weak_key: bool
    network: str
    timeout: float
    verbose: int

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_active_model")

    # ---- training

    def _check_seating(self) -> None:
        """Parameters that say how the parties sit and talk."""
        check_seating(self.network, self.timeout, self.verbose)
        check_min_rows(self.min_rows_per_sum)

    def _begin_fit(self, X: Any, y: Any) -> tuple[dict[str, Block], np.ndarray]:
        """Blocks and targets; a model that was there is gone."""
        # A fit that fails must not leave the trees of one data set with the labels of another.
        self.__dict__.pop("_active_model", None)
        blocks, y = self._training_blocks(X, y)
        n_rows = next(iter(blocks.values())).n_rows
        if n_rows == 0:
            raise ValueError("0 rows to train on")
        self.n_rows_ = n_rows
        y = check_targets(y, n_rows, self._several_targets)
        self._see_labels(y)
        return blocks, y

    def _see_labels(self, y: np.ndarray) -> None:
        """All of them, those of rows of weight 0 too: a classifier notes which classes there are."""

    def _joined(self, X: Any, y: Any, sample_weight: Any, ids: Any) -> tuple[Any, Any, Any]:
        """The rows that all parties have, where explicit IDs say which they are."""
        if ids is None:
            return X, y, sample_weight
        return join_training(X, y, sample_weight, ids, self.partition)

    def _warn_of_keys(self, settings: TrainingSettings) -> None:
        warn_of_keys(settings, self.network, f"passive parties receive {self._in_the_clear}")

    def _lead_training(
        self,
        leader: type[Leader],
        setup: Any,
        passive: Sequence[Block],
        seeds: Sequence[int],
        settings: TrainingSettings,
        unit: str,
    ) -> tuple[Any, dict[str, Message]]:
        """Seat the parties and let them talk; returns the leader's result, and every passive party's half by name.

        setup : of the leader's seat.  seeds : one a passive party.  unit : what the progress bar counts.
        """
        seats = [make_seat(setup.party, leader, setup)] + [
            make_seat(block.party, self._passive_party, self._passive_setup(block, settings.n_jobs, seed))
            for block, seed in zip(passive, seeds, strict=True)
        ]
        with (
            ProgressBar(self.verbose, settings.n_estimators, unit) as bar,
            make_network(self.network, seats, timeout=self.timeout, on_progress=bar) as network,
        ):
            result = network.run()
            tables = {block.party: network.collect(block.party) for block in passive}
        self.training_id_ = new_training_id()
        self.encryption_ = settings.encryption
        self._report_costs(network.ledger, settings)
        return result, tables

    def _cuts_of(self, block: Block) -> tuple[np.ndarray, ...] | None:
        """Bin borders given by the caller of a subclass; None means quantiles."""
        return None

    def _passive_setup(
        self, block: Block, n_jobs: int, seed: int = 0, table: Records | None = None
    ) -> PassiveSetup:
        return PassiveSetup(
            party=block.party,
            features=block.values,
            ids_digest=block.ids_digest,
            max_bin=int(self.max_bin),
            allow_weak_key=bool(self.allow_weak_key),
            cuts=self._cuts_of(block),
            random_seed=seed,
            n_jobs=n_jobs,
            records=codec.encode(table) if table else b"",
            min_rows_per_sum=int(self.min_rows_per_sum),
            categories=encode_categories(block.categories),
        )

    def _report_costs(self, ledger: Ledger, settings: TrainingSettings) -> None:
        self.traffic_ = ledger.summary()
        self.costs_ = costs_of(ledger, settings, COUNTERS)

    # ---- prediction

    def _predict(self, X: Any, ledger: Ledger | None = None, ids: Any = None) -> Predicted:
        """Raw scores and leaves of every row, by the federated protocol; its traffic is added to `ledger`.

        ids : row IDs per party, see `fit`; every row of the active party must be known to the others that are needed.
        """
        ledger = Ledger() if ledger is None else ledger
        check_is_fitted(self, "_active_model")
        blocks = self._prediction_blocks(X if ids is None else self._with_ids(X, ids))
        if next(iter(blocks.values())).n_rows == 0:
            raise ValueError("0 rows to predict")
        return self._predict_blocks(blocks, ledger)

    def _predict_blocks(self, blocks: dict[str, Block], ledger: Ledger) -> Predicted:
        """The same for blocks as `_prediction_blocks` gives them; some thousands of rows at a time."""
        n_rows = next(iter(blocks.values())).n_rows
        n_records = max([len(t.ids) for t in self._passive_models.values()] + [1])
        step = max(1, _ANSWERS_AT_ONCE // n_records)
        pieces = [
            self._predict_rows(
                {party: block.take(slice(at, at + step)) for party, block in blocks.items()}, ledger
            )
            for at in range(0, n_rows, step)
        ]
        return Predicted(
            np.concatenate([piece.raw_scores for piece in pieces]),
            np.concatenate([piece.leaves for piece in pieces]),
        )

    def _predict_rows(self, blocks: dict[str, Block], ledger: Ledger) -> Predicted:
        active = blocks[self.parties_[0]]
        asked = [party for party in self.parties_[1:] if party in blocks or self._ask is not None]
        setup = PredictionSetup(
            party=active.party,
            features=active.values,
            ids_digest=active.ids_digest,
            passive_parties=self.parties_[1:],
            present_parties=tuple(asked),
            model=codec.encode(self._active_model),
            categories=encode_categories(active.categories),
        )
        if self._ask is not None:
            return self._ask(setup)
        seats = [make_seat(active.party, ActivePredictor, setup)] + [
            make_seat(
                party,
                self._passive_party,
                self._passive_setup(blocks[party], 1, table=self._passive_models[party]),
            )
            for party in asked
        ]
        with make_network(self.network, seats, timeout=self.timeout) as network:
            result: Predicted = network.run()
        ledger.merge(network.ledger.to_message())
        return result

    def _splits_owned(self, number: int) -> int:
        return int((self._active_model.owner == number).sum())

    def prediction_traffic(self, X: Any, ids: Any = None) -> pd.DataFrame:
        """Predict, and say what crossed: messages and bytes per party and kind, as `traffic_`."""
        ledger = Ledger()
        self._predict(X, ledger, ids)
        return ledger.summary()

    def apply(self, X: Any, ids: Any = None) -> np.ndarray:
        """Leaf of every row in every tree: int32 (n_rows, n_trees), nodes as numbered in the tree."""
        return self._predict(X, ids=ids).leaves
