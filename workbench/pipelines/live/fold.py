"""Windows of readings that come one by one: what is open is kept, what can no longer change is handed on.

It folds lines in their order and keeps sums, so that the windows do not depend on how the lines were cut into batches:
they are the same to the last bit, however often the one who folds was killed and went on from what it had kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from workbench.pipelines.live.readings import SCHEMA
from workbench.pipelines.live.windows import Asked

_PLACES = {field.name: place for place, field in enumerate(SCHEMA)}
_COUNT, _SUM, _MIN, _MAX, _LATE = range(5)


class Fold:
    """The open windows of readings so far."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.newest_us = 0
        # (start in µs, what is in `by`) -> count, sum, min, max, late
        self._open: dict[tuple[Any, ...], list[Any]] = {}
        self._by = tuple(_PLACES[name] for name in asked.by)

    def add(self, rows: Iterable[list[Any]]) -> None:
        """Fold rows of a capture in, in their order."""
        every_us, late_us, by = self.asked.every_us, self.asked.late_us, self._by
        for row in rows:
            time_us, value, newest_us = round(row[0] * 1e6), row[6], round(row[8] * 1e6)
            start_us = time_us - time_us % every_us
            is_late = start_us + every_us <= newest_us - late_us
            if is_late:
                start_us = newest_us - newest_us % every_us
            name = (start_us, *[row[place] for place in by])
            window = self._open.get(name)
            if window is None:
                window = self._open[name] = [0, 0.0, math.inf, -math.inf, 0]
            self.newest_us = newest_us
            if is_late:
                window[_LATE] += 1
                continue
            window[_COUNT] += 1
            window[_SUM] += value
            window[_MIN] = min(window[_MIN], value)
            window[_MAX] = max(window[_MAX], value)

    def close(self, is_over: bool = False) -> list[tuple[Any, ...]]:
        """Take the windows that no reading can be counted in any more, ascending; all if nothing more will come.

        Rows of `Asked.schema`.
        """
        before_us = math.inf if is_over else self.newest_us - self.asked.late_us
        closed = sorted(name for name in self._open if name[0] + self.asked.every_us <= before_us)
        return [self._row(name, self._open.pop(name)) for name in closed]

    def _row(self, name: tuple[Any, ...], window: list[Any]) -> tuple[Any, ...]:
        start_us, *by = name
        count, total, least, greatest, late = window
        told = (total / count, least, greatest) if count else (None, None, None)
        return start_us / 1e6, (start_us + self.asked.every_us) / 1e6, *by, count, *told, late

    # As plain values, to be kept

    def state(self) -> dict[str, Any]:
        """All that it knows, as JSON has it."""
        return {"newest_us": self.newest_us, "open": [[*name, *_finite(one)] for name, one in self._open.items()]}

    def restore(self, state: dict[str, Any]) -> None:
        """Know what `state` told."""
        self.newest_us = state["newest_us"]
        width = 1 + len(self._by)
        self._open = {tuple(one[:width]): list(_infinite(one[width:])) for one in state["open"]}


def _finite(window: list[Any]) -> list[Any]:
    """A window without readings has no least and no greatest, and JSON has no infinity."""
    return window if window[_COUNT] else [0, 0.0, None, None, window[_LATE]]


def _infinite(window: list[Any]) -> Iterator[Any]:
    return iter(window if window[_COUNT] else [0, 0.0, math.inf, -math.inf, window[_LATE]])
