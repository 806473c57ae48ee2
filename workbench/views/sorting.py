"""A stable order of integers, some times faster than numpy's: by 16 bits at a time, for which numpy counts."""

from __future__ import annotations

import numpy as np

DIGIT = 16
MOST_DIGITS = 3


def order_of(keys: np.ndarray) -> np.ndarray:
    """What ``np.argsort(keys, kind="stable")`` gives for integers, shape (rows,)."""
    if not len(keys):
        return np.arange(0)
    if keys.dtype.kind not in "iu" or keys.dtype == np.uint64:
        return np.argsort(keys, kind="stable")
    low, high = int(keys.min()), int(keys.max())
    if high - low >= 1 << (DIGIT * MOST_DIGITS):
        return np.argsort(keys, kind="stable")
    rest = np.subtract(keys, low, dtype=np.int64)
    if high - low < 1 << DIGIT:
        return np.argsort(rest.astype(np.uint16), kind="stable")
    order = np.argsort(rest.astype(np.uint16), kind="stable")  # the lowest digit: others are cut off
    shift = DIGIT
    while (high - low) >> shift:
        digit = (rest >> shift).astype(np.uint16)
        order = order[np.argsort(digit[order], kind="stable")]
        shift += DIGIT
    return order
