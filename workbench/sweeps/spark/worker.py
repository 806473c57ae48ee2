"""The work of a task on a Spark worker: a process beside the task runs the points, and the task returns the rows.

The task may also write the traces of its runs, so that they do not pass through the driver.

If a point crashes its process or runs too long, only this point fails, and the task continues. The process stays alive
for later tasks.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from workbench.sweeps.processes import SHARE_S, Failure, ProcessGroup
from workbench.sweeps.shares import Shares
from workbench.sweeps.store import traces
from workbench.sweeps.work import ROW_SCHEMA, Row, rows_from_table, to_batch

FILE_B = 64 << 20  # size of packed traces at which a task writes a file
NO_ENGINE = ""  # the engine of a row that contains only an error
SCHEMA = ROW_SCHEMA.append(pa.field("task_s", pa.float64()))


def run_share(
    path: str, numbers: list[int], timeout_s: float | None, trace_folder: str = ""
) -> Iterator[pa.RecordBatch]:
    """Run the points ``numbers`` of the plan in the file ``path``; yield batches of result rows (`SCHEMA`).

    ``timeout_s`` is the longest time of a point in seconds, None for no limit. If ``trace_folder`` is a folder or URL,
    the traces are written there, before the rows are yielded without them. Raises DataError if they cannot be written.
    """
    if not trace_folder:
        yield from _run_points(path, numbers, timeout_s)
        return
    unwritten: list[pa.RecordBatch] = []
    for batch in _run_points(path, numbers, timeout_s):
        unwritten.append(batch)
        if sum(unwritten_batch.nbytes for unwritten_batch in unwritten) >= FILE_B:
            yield from _write_traces(unwritten, trace_folder)
            unwritten = []
    yield from _write_traces(unwritten, trace_folder)


def _write_traces(batches: list[pa.RecordBatch], trace_folder: str) -> Iterator[pa.RecordBatch]:
    """Write the traces of result rows into one file of ``trace_folder``, and yield the rows without their traces."""
    traces.write_traces(trace_folder, [row for batch in batches for row in rows_from_table(batch)])
    for batch in batches:
        index = batch.schema.get_field_index("trace")
        yield batch.set_column(index, "trace", pa.array([b""] * len(batch), pa.large_binary()))


def _run_points(path: str, numbers: list[int], timeout_s: float | None) -> Iterator[pa.RecordBatch]:
    group = _get_group(path, timeout_s)
    shares = _TimedShares(numbers, SHARE_S)
    try:
        while group.feed(shares):
            for batch_or_failure in group.gather(shares):
                batch = (
                    to_batch([_make_failed_row(batch_or_failure)])
                    if isinstance(batch_or_failure, Failure)
                    else batch_or_failure
                )
                seconds, shares.seconds = shares.seconds / len(batch), 0.0
                yield batch.append_column("task_s", pa.array([seconds] * len(batch), pa.float64()))
    except BaseException:
        group.kill()
        raise


class _TimedShares(Shares):
    """A queue of shares (lists of points) that also adds up the seconds that finished points took."""

    seconds = 0.0

    def record_time(self, points: int, seconds: float) -> None:
        """Record that ``points`` finished points took ``seconds``, and add ``seconds`` to the total of this task."""
        super().record_time(points, seconds)
        self.seconds += seconds


def _make_failed_row(failure: Failure) -> Row:
    return Row(failure.number, "", "", 0, "", NO_ENGINE, 0.0, 0.0, failure.sentence, {}, "")


_groups: dict[tuple[str, float | None], ProcessGroup] = {}


def _get_group(path: str, timeout_s: float | None) -> ProcessGroup:
    """Return a group of one process that runs points of the plan in the file ``path``.

    ``timeout_s`` is the longest time of a point in seconds, None for no limit. The group is kept for later tasks.
    """
    group_key = Path(path).name, timeout_s
    if group_key not in _groups:
        for group in _groups.values():
            group.release()
        _groups.clear()
        _groups[group_key] = ProcessGroup(1, Path(path).read_bytes(), timeout_s)
    return _groups[group_key]
