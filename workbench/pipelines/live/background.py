"""Work in a thread of its own, that can be waited for and stopped, and whose error is raised where it is waited for."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Self


class Background:
    """Work that goes on beside the caller. ``folder``: what it writes into. ``error``: what ended it early."""

    folder: Path

    def __init__(self, name: str) -> None:
        self.error: BaseException | None = None
        self._is_stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def _work(self) -> None:
        """What is done, until it is done or is to stop."""
        raise NotImplementedError

    def _let_go(self) -> None:
        """What is done in the end, however it ended."""

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # Raised again where it is waited for.
            self.error = error
        finally:
            self._let_go()

    @property
    def is_running(self) -> bool:
        """Whether it still goes on."""
        return self._thread.is_alive()

    @property
    def state(self) -> str:
        """In words whether it goes on, or how it ended."""
        if self.error is not None:
            return f"ended early: {self.error}"
        return "goes on" if self.is_running else "has ended"

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until it is over; returns whether it is, and raises what ended it early.

        An interrupt (Ctrl-C) stops it.
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
        """Stop it; what is done stays."""
        self._is_stopping.set()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
