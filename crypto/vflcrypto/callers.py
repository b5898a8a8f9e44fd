"""Whose line a warning should name: that of whoever calls into these packages, however deep the warning arises."""

from __future__ import annotations

import sys

# Ours, and those that call an estimator in the user's stead.
_INSIDE = {"vflcrypto", "vflparty", "vfldata", "vfltree", "vflnn", "sklearn", "joblib"}


def outside_level() -> int:
    """`stacklevel` for `warnings.warn`, in the function that calls this one; 1 where everybody is inside."""
    frame = sys._getframe(1)
    level = 1
    while frame.f_back is not None:
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] not in _INSIDE:
            return level
        frame, level = frame.f_back, level + 1
    outermost = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return 1 if outermost in _INSIDE else level
