"""Short-lived thread pools for kernels that release the GIL; safe under threads, forks and nested use.

How many threads an `n_jobs` stands for is `vflcrypto.kernels.thread_count`, the same for all rooms.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise


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
