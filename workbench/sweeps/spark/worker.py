"""What a task does on a worker of Spark: it has its points run by a point process beside it, and hands on the rows.

So a point that ends its process, or does not end, costs a row and not the task, and the process stays warm for the
tasks that follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from workbench.sweeps.processes import SHARE_S, Crew, Failure
from workbench.sweeps.shares import Shares
from workbench.sweeps.work import ROW_SCHEMA, Row, to_batch

NO_ENGINE = ""  # of a row that says no more than why there is no result
SCHEMA = ROW_SCHEMA.append(pa.field("task_s", pa.float64()))


def run_share(path: str, numbers: list[int], timeout_s: float | None) -> Iterator[pa.RecordBatch]:
    """Run points of the plan in a file; batches of `SCHEMA`, with the seconds that their points took."""
    crew = _crew(path, timeout_s)
    shares = _Timed(numbers, SHARE_S)
    try:
        while crew.feed(shares):
            for result in crew.gather(shares):
                batch = to_batch([_failed(result)]) if isinstance(result, Failure) else result
                seconds, shares.seconds = shares.seconds / len(batch), 0.0
                yield batch.append_column("task_s", pa.array([seconds] * len(batch), pa.float64()))
    except BaseException:
        crew.kill()
        raise


class _Timed(Shares):
    """Shares that add up what their points have taken."""

    seconds = 0.0

    def took(self, points: int, seconds: float) -> None:
        """So many points have taken so long on their worker."""
        super().took(points, seconds)
        self.seconds += seconds


def _failed(failure: Failure) -> Row:
    return Row(failure.number, "", "", 0, "", NO_ENGINE, 0.0, 0.0, failure.sentence, {}, "")


_crews: dict[tuple[str, float | None], Crew] = {}


def _crew(path: str, timeout_s: float | None) -> Crew:
    """The point process of this worker, which has this plan."""
    key = Path(path).name, timeout_s
    if key not in _crews:
        for crew in _crews.values():
            crew.dismiss()
        _crews.clear()
        _crews[key] = Crew(1, Path(path).read_bytes(), timeout_s)
    return _crews[key]
