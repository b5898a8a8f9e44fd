"""Threads are a number of ranges, nothing else: limits are kept, errors arrive, results stay."""

import threading

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from vfltree._threads import effective_n_jobs, run_ranges, usable_cores


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


def test_n_jobs_counts_up_from_one_or_down_from_all_cores(monkeypatch):
    monkeypatch.setattr("vfltree._threads.usable_cores", lambda: 4)
    assert [effective_n_jobs(n) for n in (None, 1, 7, -1, -2, -9)] == [1, 1, 7, 4, 3, 1]
    with pytest.raises(ValueError, match="n_jobs"):
        effective_n_jobs(0)


def test_the_environment_and_threadpoolctl_bound_all_cores(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert usable_cores() == 1
    monkeypatch.delenv("OMP_NUM_THREADS")
    if any(pool["user_api"] == "openmp" for pool in threadpool_info()):
        with threadpool_limits(1):
            assert usable_cores() == 1
