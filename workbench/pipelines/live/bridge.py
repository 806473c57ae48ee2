"""The bridge: a thread between a source and a capture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from workbench.keywords import checked
from workbench.pipelines.live.background import Background
from workbench.pipelines.live.capture import Capture
from workbench.pipelines.live.sources import Source, make_source


class Stream(Background):
    """A source that is being captured, as `stream` returns it. ``folder``: the folder of the capture.

    A source that can wait delivers more only when its previous readings are written. Other sources have a bounded
    queue; readings beyond it are ``lost``. ``refused``: reason -> number of invalid readings.
    After a stop the capture contains everything that the source has delivered.
    """

    def __init__(self, source: Source, capture: Capture) -> None:
        self.folder = capture.folder
        self.refused = capture.refused
        self._source, self._capture = source, capture
        self._unwritten = (
            0  # readings taken from the source and not written yet; the source does not deliver them again
        )
        super().__init__("bridge")
        self._thread.start()

    def _work(self) -> None:
        if not self._capture.is_over:
            for chunk in self._source.chunks(self._is_stopping.is_set):
                self._unwritten = 0 if self._source.replays else len(chunk)
                self._capture.append(chunk)
                self._unwritten = 0
            self._capture.end(is_whole=not self._is_stopping.is_set())

    def _clean_up(self) -> None:
        self._capture.close()

    @property
    def rows(self) -> int:
        """The number of readings in the capture."""
        return self._capture.rows

    @property
    def lost(self) -> int:
        """The number of readings lost because the source's queue was full or the stream ended with an error."""
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
    """Capture the readings of a source in the folder ``out``, in the background; return a `Stream`.

    source    a scenario, which is simulated meanwhile; a run, which is replayed; a run on motes, while it is running;
              an `Inbox`; a subscription of a node on this machine's network, or a mesh of such nodes
    pace      seconds of a scenario or a run played in one second; None: as fast as possible
    regions   (columns, rows) of a grid over the network, 2 x 2 by default, or a mapping from nodes to regions
    most_MB   largest size of the capture; the stream ends with an error when it is exceeded

    If ``out`` has an unfinished capture of the same source, it is continued. A scenario or a run continues after its
    last captured reading. An Inbox, a subscription or a mesh continues with new readings. A complete capture is left
    unchanged. Raises ParameterError for an unsuitable source, and DataError for a folder that cannot be written, has a
    capture of another source, or one that was stopped.
    """
    live_source = make_source(source, pace, regions)
    capture = Capture(out, live_source.name, live_source.replays, None if most_MB is None else most_MB * 1e6)
    return Stream(live_source, capture)
