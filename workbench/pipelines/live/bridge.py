"""The bridge: a thread between a source and a capture."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from workbench.pipelines.live.capture import Capture
from workbench.pipelines.live.sources import Source, source_of


class Stream:
    """What `stream` returns: a source that is being captured. ``folder``: of the capture.

    A source that can wait is asked for more only when what it gave is written; one that cannot keeps so many readings,
    and those beyond are ``lost``. ``refused``: why -> readings that cannot be captured. ``error``: what ended it early.
    """

    def __init__(self, source: Source, capture: Capture) -> None:
        self.folder = capture.folder
        self.refused = capture.refused
        self.error: BaseException | None = None
        self._source, self._capture = source, capture
        self._is_stopping = threading.Event()
        self._thread = threading.Thread(target=self._carry, name="bridge", daemon=True)
        self._thread.start()

    def _carry(self) -> None:
        try:
            if not self._capture.is_over:
                for chunk in self._source.chunks(self._is_stopping.is_set):
                    self._capture.append(chunk)
                self._capture.end(is_whole=not self._is_stopping.is_set())
        except BaseException as error:  # Raised again where the stream is waited for.
            self.error = error
        finally:
            self._capture.close()

    @property
    def rows(self) -> int:
        """How many readings the capture has."""
        return self._capture.rows

    @property
    def lost(self) -> int:
        """How many readings the source could not keep, as more came than could be written."""
        return self._source.lost()

    @property
    def is_running(self) -> bool:
        """Whether it still goes on."""
        return self._thread.is_alive()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the source is over; returns whether it is, and raises what ended it early.

        An interrupt (Ctrl-C) stops the stream.
        """
        try:
            self._thread.join(timeout_s)
        except KeyboardInterrupt:
            self.stop()
            raise
        if self.is_running:
            return False
        if self.error is not None:
            raise self.error
        return True

    def stop(self) -> None:
        """Stop the source: what it has delivered is the whole capture."""
        self._is_stopping.set()
        self._thread.join()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        lost = f", {self.lost:,} lost" if self.lost else ""
        refused = f", {self.refused.total():,} refused" if self.refused else ""
        state = "goes on" if self.is_running else "has ended"
        if self.error is not None:
            state = f"ended early: {self.error}"
        return f"<stream into {str(self.folder)!r}: {self.rows:,} readings{lost}{refused}, {state}>"


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
    with no reading twice, and if it is whole there is nothing to do; another source with what comes from now on.
    ParameterError for no source, DataError for a folder that cannot be written, or has another capture or one that was
    stopped.
    """
    found = source_of(source, pace, regions)
    capture = Capture(out, found.name, found.replays, None if most_MB is None else most_MB * 1e6)
    return Stream(found, capture)
