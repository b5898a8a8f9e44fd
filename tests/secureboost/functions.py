"""Objectives and metrics of one's own, where a process of its own can import them."""

from __future__ import annotations

import numpy as np


def squared(y, raw):
    return raw - y, np.ones_like(raw)


def logistic(y, raw):
    p = 1 / (1 + np.exp(-raw))
    return p - y, p * (1 - p)


def softmax(y, raw):
    e = np.exp(raw - raw.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    return p - (y[:, None] == np.arange(raw.shape[1])), 2 * p * (1 - p)


def worst_error(y, predictions, sample_weight=None):
    return np.abs(y - predictions).max()
