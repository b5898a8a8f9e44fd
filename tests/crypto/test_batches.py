"""Work cut into spans and given to threads: nothing twice, nothing left out, and the first error wins."""

import threading

import numpy as np
import pytest

from vflcrypto.batches import SPAN_WORK, ahead, even_spans, run, spans

MANY = [(i, i + 1) for i in range(40)]


@pytest.mark.parametrize("threads", [1, 2, 3, 64])
@pytest.mark.parametrize("n_spans", [0, 1, 2, 40])
def test_every_span_is_done_once_and_results_keep_their_order(threads, n_spans):
    seen = []

    def task(start, stop):
        seen.append(start)
        return stop * 10

    assert run(task, MANY[:n_spans], threads) == [10 * (i + 1) for i in range(n_spans)]
    assert sorted(seen) == list(range(n_spans))


def test_the_calling_thread_works_too_and_the_others_end_with_the_call():
    both = threading.Barrier(2, timeout=20)
    before = threading.active_count()
    names = run(lambda *_: both.wait() * 0 or threading.get_ident(), MANY[:2], 2)
    assert len(set(names)) == 2
    assert threading.get_ident() in names
    assert threading.active_count() == before


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_error_of_the_first_span_that_fails_is_raised(threads):
    def task(start, stop):
        if start >= 5:
            raise ValueError(f"span {start}")

    for _ in range(20):
        with pytest.raises(ValueError, match=r"span 5$"):
            run(task, MANY, threads)


@pytest.mark.parametrize("threads", [1, 2])
def test_items_made_ahead_keep_their_order_and_their_error(threads):
    def counting():
        yield from range(5)
        raise ValueError("no more")

    seen = []
    with pytest.raises(ValueError, match="no more"):
        for item in ahead(counting(), threads):
            seen.append(item)
    assert seen == list(range(5))
    assert list(ahead(iter(()), threads)) == []


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 1000])
def test_spans_cover_everything_in_whole_vectors(count, threads, lanes):
    rng = np.random.default_rng(count)
    for found in (
        spans(count, threads, lanes),
        even_spans(np.full(count, 9), threads, lanes),
        even_spans(np.sort(rng.integers(1, 1000, count))[::-1], threads, lanes),
    ):
        assert [i for start, stop in found for i in range(start, stop)] == list(range(count))
        assert all(start % lanes == 0 for start, _ in found)


def test_spans_are_up_to_four_a_thread_where_each_still_has_eight_vectors():
    assert spans(1000, 1, 8) == [(0, 1000)]
    pieces = {8: 1, 16: 2, 8 * 8 * 2: 2, 8 * 8 * 3: 3, 8 * 8 * 8: 8, 1000: 8}
    assert {count: len(spans(count, 2, 8)) for count in pieces} == pieces


def test_even_spans_hold_equal_work_and_little_work_stays_together():
    work = np.repeat([100, 1], [80, 8000])
    parts = [int(work[start:stop].sum()) for start, stop in even_spans(work, 2, 8)]
    assert len(parts) == 8
    assert max(parts) <= 2400  # vectors of 800
    assert even_spans(np.full(2 * SPAN_WORK - 1, 1), 2, 8) == [(0, 2 * SPAN_WORK - 1)]
