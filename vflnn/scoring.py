"""Evaluation as the active party leads it: outputs of rows that nobody trains on here, joined into scores."""

from __future__ import annotations

from collections.abc import Generator, Mapping

import numpy as np
from numpy.typing import NDArray

from vflparty import RemoteProtocolError, Round, to_all

from .messages import AskScoring, ScoredOutputs
from .protocols.uncompressed import checked_array
from .samples import Samples
from .split import TopHalf

SCORING_ROWS = 8192  # evaluated at once, so that no frame grows with the data


def ask_scores(
    half: TopHalf,
    own: Samples | None,
    widths: Mapping[str, int],
    n_rows: int,
    rows_at_once: int = SCORING_ROWS,
) -> Generator[Round, Round, NDArray[np.generic]]:
    """Scores of the rows to evaluate, (n_rows, n_outputs); (0, 0) where there are none.

    own : the active party's own rows.  widths : passive party -> width of its outputs
    """
    blocks = []
    for start in range(0, n_rows, max(rows_at_once, 1)):
        stop = min(start + rows_at_once, n_rows)
        answers = yield to_all(widths, AskScoring(start, stop))
        outputs = []
        for party, width in widths.items():
            answer = answers[party]
            assert isinstance(answer, ScoredOutputs)
            try:
                array = checked_array(answer.outputs, (stop - start, width), "outputs")
            except RemoteProtocolError as error:
                raise error.by(party) from error
            outputs.append(half.received(array))
        blocks.append(half.evaluate(own, start, stop, outputs).cpu().numpy())
    return np.concatenate(blocks) if blocks else np.zeros((0, 0), dtype=np.float32)
