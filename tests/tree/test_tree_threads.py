"""Threads are a number of ranges, nothing else: errors arrive, results stay."""

import threading

import pytest

from vfltree._threads import run_ranges


@pytest.mark.parametrize("size", [0, 1, 2, 3, 10])
@pytest.mark.parametrize("n_jobs", [1, 2, 3, 20])
def test_ranges_cover_everything_once(size, n_jobs):
    seen = []
    run_ranges(lambda start, stop: seen.extend(range(start, stop)), size, n_jobs)
    assert sorted(seen) == list(range(size))


def test_at_most_n_jobs_threads_work():
    names = set()
    run_ranges(lambda start, stop: names.add(threading.get_ident()), 100, 3)
    assert len(names) <= 3


def test_an_error_in_a_range_is_raised_after_the_others_have_ended():
    done = []

    def work(start, stop):
        if start == 0:
            raise RuntimeError("first range")
        done.append(start)

    with pytest.raises(RuntimeError, match="first range"):
        run_ranges(work, 4, 4)
    assert sorted(done) == [1, 2, 3]
