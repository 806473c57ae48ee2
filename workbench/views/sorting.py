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
    rest = keys.astype(np.int64) - low
    order = np.argsort((rest & 0xFFFF).astype(np.uint16), kind="stable")
    shift = DIGIT
    while (high - low) >> shift:
        digit = ((rest >> shift) & 0xFFFF).astype(np.uint16)
        order = order[np.argsort(digit[order], kind="stable")]
        shift += DIGIT
    return order
