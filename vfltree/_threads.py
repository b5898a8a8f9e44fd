"""Short-lived thread pools for kernels that release the GIL; safe under threads, forks and nested use."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

from threadpoolctl import threadpool_info  # type: ignore[import-untyped]


def effective_n_jobs(n_jobs: int | None = None) -> int:
    """The number of threads `n_jobs` stands for.

    `None` is 1. A negative number counts back from the usable cores (-1 all of them, -2 all but one), and
    these are the cores this process may run on, not more than `OMP_NUM_THREADS` or a `threadpoolctl` limit
    on OpenMP allow.
    """
    if n_jobs is None:
        return 1
    if n_jobs == 0:
        raise ValueError(
            "n_jobs must be a positive number of threads, or negative to count from all cores; got 0"
        )
    if n_jobs > 0:
        return int(n_jobs)
    return max(1, usable_cores() + 1 + int(n_jobs))


def usable_cores() -> int:
    """Cores this process may use, within the limits set from outside."""
    affinity = getattr(os, "sched_getaffinity", None)
    limits = [len(affinity(0)) if affinity else os.cpu_count() or 1]
    declared = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if declared.isdigit() and int(declared) > 0:
        limits.append(int(declared))
    limits += [pool["num_threads"] for pool in threadpool_info() if pool.get("user_api") == "openmp"]
    return max(1, min(limits))


def run_ranges(work: Callable[[int, int], object], size: int, n_jobs: int) -> None:
    """Call `work(start, stop)` on consecutive ranges that cover `range(size)`, in up to `n_jobs` threads.

    The first exception raised by a range is raised here, after all ranges have ended.
    """
    n_ranges = min(n_jobs, size)
    if n_ranges <= 1:
        if size:
            work(0, size)
        return
    bounds = [size * k // n_ranges for k in range(n_ranges + 1)]
    with ThreadPoolExecutor(n_ranges) as pool:
        for done in [pool.submit(work, *pair) for pair in pairwise(bounds)]:
            done.result()
