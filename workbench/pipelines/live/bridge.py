"""The bridge: a thread that reads readings from a source and appends them to a capture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from workbench.keywords import checked
from workbench.pipelines.live.background import Background
from workbench.pipelines.live.capture import Capture
from workbench.pipelines.live.sources import Source, make_source


class Stream(Background):
    """The result of `stream`: a thread that captures the readings of a source in ``folder``.

    A source that can wait, such as a scenario, delivers more only when its previous readings are written. Other sources
    have a bounded queue; readings that do not fit in the queue are counted in ``lost``. ``refused`` is {reason: number
    of invalid readings}, which are not captured. After `stop` the capture contains everything that the source has
    delivered.
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
            for chunk in self._source.chunks(self._is_stopping.is_set, lambda: self._capture.is_repeating):
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
        lost_text = f", {self.lost:,} lost" if self.lost else ""
        refused_text = f", {self.refused.total():,} refused" if self.refused else ""
        return f"<stream into {str(self.folder)!r}: {self.rows:,} readings{lost_text}{refused_text}, {self.state}>"


@checked
def stream(
    source: Any,
    out: str | Path,
    pace: float | None = None,
    regions: Any = None,
    most_MB: float | None = None,
) -> Stream:
    """Capture the readings of a source in the folder ``out``, in the background; return a `Stream`.

    source    a scenario, which is simulated; a run, which is replayed; a run on motes, also while it is running;
              an `Inbox`; a subscription of a node on this machine's network, or a mesh of such nodes
    pace      seconds of the scenario or run that are played in one second; None: as fast as possible
    regions   (columns, rows) of a grid over the network, 2 x 2 by default, or a mapping from nodes to regions
    most_MB   largest size of the capture; the stream ends with an error when it is exceeded

    If ``out`` has a capture of the same source whose process was killed, the capture is continued. A scenario or run
    continues after the last captured reading; readings that are captured already are skipped as fast as possible,
    whatever the ``pace``. An Inbox, subscription or mesh adds new readings. If ``out`` has all readings of the same
    scenario or run, nothing is written. A capture that `Stream.stop` has ended cannot be continued, nor can a capture
    of an Inbox, subscription or mesh that has ended; both raise DataError. Raises DataError also if the folder cannot
    be written, or if it has a capture of another source. Raises ParameterError for an unsuitable source.
    """
    live_source = make_source(source, pace, regions)
    capture = Capture(out, live_source.name, live_source.replays, None if most_MB is None else most_MB * 1e6)
    return Stream(live_source, capture)
