"""The bridge: a thread between a source and a capture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from workbench.keywords import checked
from workbench.pipelines.live.background import Background
from workbench.pipelines.live.capture import Capture
from workbench.pipelines.live.sources import Source, source_of


class Stream(Background):
    """What `stream` returns: a source that is being captured. ``folder``: of the capture.

    A source that can wait is asked for more only when what it gave is written; one that cannot keeps so many readings,
    and those beyond are ``lost``. ``refused``: why -> readings that cannot be captured. When it is
    stopped, what it has delivered is the whole capture.
    """

    def __init__(self, source: Source, capture: Capture) -> None:
        self.folder = capture.folder
        self.refused = capture.refused
        self._source, self._capture = source, capture
        self._unwritten = 0  # readings that were taken of the source and will not come again
        super().__init__("bridge")
        self._thread.start()

    def _work(self) -> None:
        if not self._capture.is_over:
            for chunk in self._source.chunks(self._is_stopping.is_set):
                self._unwritten = 0 if self._source.replays else len(chunk)
                self._capture.append(chunk)
                self._unwritten = 0
            self._capture.end(is_whole=not self._is_stopping.is_set())

    def _let_go(self) -> None:
        self._capture.close()

    @property
    def rows(self) -> int:
        """How many readings the capture has."""
        return self._capture.rows

    @property
    def lost(self) -> int:
        """How many readings the source could not keep, as more came than could be written, or that an error cost."""
        return self._source.lost() + (self._unwritten if self.error is not None else 0)

    def __repr__(self) -> str:
        lost = f", {self.lost:,} lost" if self.lost else ""
        refused = f", {self.refused.total():,} refused" if self.refused else ""
        return f"<stream into {str(self.folder)!r}: {self.rows:,} readings{lost}{refused}, {self.state}>"


@checked
def stream(
    source: Any,
    out: str | Path,
    pace: float | None = None,
    regions: Any = None,
    most_MB: float | None = None,
) -> Stream:
    """Capture the readings that a source delivers in the folder ``out``, in the background; returns a `Stream`.

    source    a scenario, which is simulated as its readings are captured; a run, which is replayed; a run on motes,
              as it goes on; an `Inbox`; a subscription of a node on this machine's network, or a mesh of such nodes
    pace      seconds of a scenario or a run in a second; None: as fast as it goes
    regions   (columns, rows) of a grid over the network, 2 x 2 by default, or a mapping from nodes to regions
    most_MB   how large the capture may become; what would be more ends the stream with an error

    If ``out`` has a capture of the same source that was not ended, it is continued: a scenario or a run where it was,
    with no reading twice, and if it is whole there is nothing to do; an Inbox, a subscription or a mesh with what comes
    from now on.
    ParameterError for no source, DataError for a folder that cannot be written, or has another capture or one that was
    stopped.
    """
    found = source_of(source, pace, regions)
    capture = Capture(out, found.name, found.replays, None if most_MB is None else most_MB * 1e6)
    return Stream(found, capture)
