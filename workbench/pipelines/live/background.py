"""The base class of work in a background thread, with `wait` and `stop`."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Self


class Background:
    """The base class of work in a background thread; subclasses define `_work`.

    ``folder`` is the folder into which the work writes. ``error`` is the exception that ended the work, or None.
    """

    folder: Path

    def __init__(self, name: str) -> None:
        self.error: BaseException | None = None
        self._is_stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def _work(self) -> None:
        """Do the work until it is finished or `stop` is called."""
        raise NotImplementedError

    def _clean_up(self) -> None:
        """Release resources when the work has ended or failed."""

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # `wait` raises it again.
            self.error = error
        finally:
            self._clean_up()

    @property
    def is_running(self) -> bool:
        """True if the work is still running."""
        return self._thread.is_alive()

    @property
    def state(self) -> str:
        """The state of the work in words: "running", "has ended", or "ended early: ..." with the text of the error."""
        if self.error is not None:
            return f"ended early: {self.error}"
        return "running" if self.is_running else "has ended"

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the end of the work. Return True, or False if it still runs after ``timeout_s`` seconds.

        Without ``timeout_s`` the wait has no limit. Raises the error that ended the work. An interrupt (Ctrl-C) stops
        the work.
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
        """Stop the work and wait until the thread has ended; files written so far remain."""
        self._is_stopping.set()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
