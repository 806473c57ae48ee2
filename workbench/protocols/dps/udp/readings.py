"""Publications as readings: what `wb.pipelines.stream` takes of subscriptions and of meshes."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any


def now_s() -> float:
    """Unix time."""
    return time.time_ns() / 1e9


def reading_of(topics: Sequence[str], text: str, series: str, sequence: int, at_s: float) -> dict[str, Any]:
    """The fields of a reading that was measured when it came.

    The first topic's last part is the key, what is before it the region. No publication names its node: the beginning
    of its series' id (hex digits) stands for it. The value is NaN if the text is no number.
    """
    region, _, key = topics[0].rpartition("/")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    node = int(series[:8], 16)
    return {"time_s": at_s, "node": node, "key": key, "value": value, "region": region, "sequence": sequence}
