"""A progress bar per fit; silent unless asked for."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from tqdm.auto import tqdm


class ProgressBar:
    """Called with (text, done, total) by the network; draws only when `verbose` is positive."""

    def __init__(self, verbose: int, total: int, unit: str) -> None:
        self._bar: Any = tqdm(total=total, unit=unit, disable=verbose <= 0, leave=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()

    def __call__(self, text: str, done: int, total: int | None) -> None:
        self._bar.set_postfix_str(text, refresh=False)
        self._bar.update(done - self._bar.n)
