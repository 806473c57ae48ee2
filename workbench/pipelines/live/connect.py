"""Windows of a capture by Spark Connect: the server's workers read the capture, and this process merges their windows.

Structured Streaming is not used here: on a server, the processes that plan the batches of a stream cannot import the
package that this process has sent (Spark 4.3).

Theory of operation
    Each new part of the capture, of at most `BATCH_B` bytes, is divided into pieces of whole lines. If there are
    several pieces, a task of Spark folds the lines of each piece into windows (`Fold`). A line has all data that
    determine in which window its reading counts, so the windows of the pieces can be merged, and the merged windows
    are those of the whole part.

    This process merges these windows, writes closed windows, and stores its state, as a follower without Spark does. If
    there is only one piece, this process reads it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from workbench.errors import DataError
from workbench.pipelines.live import capture
from workbench.pipelines.live.capture import BATCH_B, PIECE_B
from workbench.pipelines.live.following import LocalFollowing
from workbench.pipelines.live.windows import Fold, WindowSettings
from workbench.pipelines.shipping import ship
from workbench.sweeps.spark.session import reason


class ConnectFollowing(LocalFollowing):
    """The result of `follow` with Spark Connect: a thread of this process merges windows that workers compute."""

    engine = "by Spark Connect"

    def __init__(self, *settings: Any, spark: Any) -> None:
        self._spark = spark
        super().__init__(*settings)

    def _prepare(self) -> None:
        super()._prepare()
        ship(self._spark)

    def _read_next_lines(self) -> int:
        pieces = capture.split_into_pieces(self._source, self._offset, BATCH_B, PIECE_B)
        if len(pieces) <= 1:  # Reading a single piece here takes less time than a job.
            return super()._read_next_lines()
        for piece in self._fold_on_workers(pieces):
            self._fold.merge(piece["fold"])
            self.damaged += piece["damaged"]
        return pieces[-1][1]

    def _fold_on_workers(self, pieces: list[tuple[int, int]]) -> list[dict[str, Any]]:
        """Return the result of `_fold_piece` for each piece, in the order of the pieces."""
        table = self._spark.range(len(pieces), numPartitions=len(pieces))
        task = _make_fold_function(self._source.absolute(), self.settings, pieces)
        try:
            rows = table.mapInArrow(task, "piece long, state string").collect()
        except Exception as error:
            raise DataError(f"Spark Connect did not compute the windows of {self._source}: {reason(error)}") from None
        return [json.loads(state) for _, state in sorted(rows)]


def _make_fold_function(folder: Path, settings: WindowSettings, pieces: list[tuple[int, int]]) -> Any:
    """Return a function for ``mapInArrow`` that takes indices in ``pieces`` and returns the windows of each piece."""

    def fold_pieces(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            numbers = batch.column(0).to_pylist()
            states = [json.dumps(_fold_piece(folder, settings, *pieces[number])) for number in numbers]
            yield pa.RecordBatch.from_arrays([pa.array(numbers, pa.int64()), pa.array(states)], ["piece", "state"])

    return fold_pieces


def _fold_piece(folder: Path, settings: WindowSettings, offset: int, end: int) -> dict[str, Any]:
    """Return the windows of the lines from ``offset`` to ``end`` (`Fold.state`) and the number of damaged lines."""
    fold, damaged = Fold(settings), 0
    for chunk in capture.read_piece(folder, offset, end):
        fold.add(chunk.rows)
        damaged += chunk.damaged
    return {"fold": fold.state(), "damaged": damaged}
