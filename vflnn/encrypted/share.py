"""A party's own share of encrypted training, active or passive: encoded outputs, sums of residuals, its own steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from vflparty import Ledger, RemoteProtocolError
from vflparty.arithmetic import PaillierArithmetic, PlainArithmetic, read_public_key

from ..agreement import Agreement
from ..messages import TrainingSettings
from ..samples import Samples
from ..split import Half, Rows
from .factors import make_factors
from .numbers import decode_sums, encode_factors, encode_outputs
from .terms import Terms, least_rows

Arithmetic = PlainArithmetic | PaillierArithmetic


class OwnShare:
    """A bottom model, its samples, and the arithmetic they meet residuals in.

    Parameters
    ----------
    party : its name, for errors
    half : with the optimiser that was agreed on
    model : the bottom model, part of `half`
    samples : its training rows
    n_classes : width of all outputs
    """

    def __init__(
        self,
        party: str,
        half: Half,
        model: nn.Module,
        samples: Samples,
        *,
        n_classes: int,
        agreed: Agreement,
        terms: Terms,
        arithmetic: Arithmetic,
    ) -> None:
        self._party, self._half, self._model, self._samples = party, half, model, samples
        self._n_classes, self._agreed, self._arithmetic = n_classes, agreed, arithmetic
        self._factors = make_factors(model, n_classes)
        self._prepared: tuple[Rows, Any] | None = None
        self._check(terms)

    @property
    def n_values(self) -> int:
        return self._factors.n_values

    def outputs(self, step: int) -> NDArray[np.int64]:
        """H_k of the rows of this step, encoded: int64 (n_rows, n_classes)."""
        order = self._agreed.order
        self._half.start_epoch(order.epoch_of(step))
        with self._half.stream.working():
            self._half.model.train()
            output = self._forward(self._samples.inputs(order.rows(step), self._model, dense=True))
        return encode_outputs(output.cpu().numpy(), self._party)

    def sums(self, step: int, residuals: Any) -> Any:
        """[[sum_ic D_ic dH_ic/dtheta]] of the rows of this step, in one vector."""
        prepared = self._factors_of(self._agreed.order.rows(step))
        return self._arithmetic.joined([self._arithmetic.product(prepared, self._factors.terms(residuals))])

    def descend(self, step: int, sums: NDArray[np.object_]) -> None:
        """One step of the optimiser, from opened sums."""
        n_rows = len(self._agreed.order.rows(step))
        scaled = decode_sums(sums.reshape(-1, self._factors.n_vectors)) / (4.0 * n_rows)
        with self._half.stream.working():
            self._half.zero_grad()
            for parameter, gradient in self._factors.gradients(scaled):
                parameter.grad = torch.from_numpy(np.ascontiguousarray(gradient)).to(parameter)
            self._half.step()

    def _factors_of(self, rows: Rows) -> Any:
        """Ready to be combined with residuals; kept where the next batch has the same."""
        if self._prepared is not None and np.array_equal(self._prepared[0], rows):
            return self._prepared[1]
        prepared = self._arithmetic.prepare(self._encoded_factors(rows))
        if self._factors.constant and self._agreed.order.n_batches == 1:
            self._prepared = rows, prepared
        return prepared

    def _encoded_factors(self, rows: Rows) -> NDArray[np.int32]:
        inputs = self._samples.inputs(rows, self._model, dense=True)
        with self._half.stream.working():
            self._half.model.train()
            outputs = self._forward(inputs)
            try:
                factors = self._factors.of(inputs, outputs)
            except ValueError as error:
                raise ValueError(f"party {self._party!r}: {error}") from error
        return encode_factors(factors, self._party)

    def _forward(self, inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
        with torch.no_grad():
            output: torch.Tensor = self._model(*inputs)
        if output.shape != (len(inputs[0]), self._n_classes):
            raise ValueError(
                f"party {self._party!r}: its bottom model gives outputs of shape {tuple(output.shape)}, expected "
                f"{(len(inputs[0]), self._n_classes)}: a sum of outputs needs one per class"
            )
        return output

    def _check(self, terms: Terms) -> None:
        """ValueError where its batches are too small, its model too large, or its rows not to be taken one by one."""
        order, n_values = self._agreed.order, self._factors.n_values
        if not n_values:
            raise ValueError(f"party {self._party!r}: its bottom model has nothing to train")
        sizes = [len(order.rows(step)) for step in (0, order.n_batches - 1)]  # only the last may be another
        least = least_rows(n_values, self._n_classes)
        if min(sizes) < least and not terms.allow_small_batches:
            raise ValueError(
                SMALL_BATCH.format(
                    rows=min(sizes), party=self._party, values=n_values, classes=self._n_classes, least=least
                )
            )
        products = self._factors.count_products(max(sizes))
        if not self._factors.constant and products > terms.most_products:
            raise ValueError(
                f"party {self._party!r}: its bottom model has {n_values} parameters, which takes {products} products "
                f"of a derivative and a ciphertext for a batch of {max(sizes)} rows and {self._n_classes} classes; "
                f"most_products={terms.most_products}: a smaller model, a smaller batch, or more patience"
            )
        self._encoded_factors(order.rows(0)[:2])


SMALL_BATCH = (
    "a batch of {rows} rows for party {party!r}, which trains {values} parameters for {classes} classes: from a "
    "gradient over few rows the labels can be solved for. Use batches of at least {least} rows, the last of an epoch "
    "included (batch_size=None: all rows in one), a smaller model, or pass allow_small_batches=True"
)


def make_arithmetic(public_key: bytes, terms: Terms, ledger: Ledger) -> Arithmetic:
    """Under the coordinator's key as received, which is checked; in the clear only where these terms say so."""
    if terms.encryption == "none":
        if public_key:
            raise RemoteProtocolError("a key came, and encryption='none' was agreed on here")
        return PlainArithmetic()
    if not public_key:
        raise RemoteProtocolError("no key came, and this party trains under encryption only")
    key = read_public_key(public_key, allow_weak_key=terms.allow_weak_key)
    return PaillierArithmetic(key, terms.n_jobs, ledger)


def check_protocol(settings: TrainingSettings) -> None:
    """ValueError unless the settings say what encrypted training does."""
    if settings.protocol != "fedsgd" or settings.compressor:
        raise ValueError(
            f"encrypted training is protocol='fedsgd' without a compressor, got {settings.protocol!r} and "
            f"{settings.compressor!r}"
        )
