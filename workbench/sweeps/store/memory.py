"""Rows that live as long as the sweep's object."""

from __future__ import annotations

from collections.abc import Iterable

from workbench.sweeps.plan import Plan
from workbench.sweeps.work import Row


class MemoryStore:
    """Keeps rows by the keys of their points."""

    place = "memory"

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}

    def open(self, plan: Plan, retry: bool = False) -> dict[int, Row]:
        """number -> row of those points that are here; with ``retry`` without those that failed."""
        self._plan = plan
        if not self._rows:
            return {}
        found = ((number, self._rows.get(plan.point_key(number))) for number in range(len(plan)))
        return {
            number: row._replace(number=number)
            for number, row in found
            if row is not None and not (retry and row.error is not None)
        }

    def begin(self, rows: dict[int, Row]) -> dict[int, Row]:
        """What is here when the sweep begins: nobody else has added any."""
        return rows

    def add(self, rows: Iterable[Row]) -> None:
        """Keep rows."""
        self._rows.update((self._plan.point_key(row.number), row._replace(document="")) for row in rows)

    def close(self) -> None:
        """Nothing is left to do."""
