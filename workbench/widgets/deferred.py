"""Run slow work in a background thread; newer work cancels it."""

from __future__ import annotations

import threading
from collections.abc import Callable

AFTER_S = 0.25  # a moving slider submits new work at shorter intervals


class Cancelled(Exception):
    """Raised in background work that is no longer needed."""


class Deferred:
    """Runs the most recently submitted function, after a short delay without newer submissions.

    ``submit(act)`` calls ``act(check)`` in a thread. Slow work calls ``check()`` repeatedly; it raises `Cancelled`
    after a
    newer submission or after `cancel`.
    """

    def __init__(self, after_s: float = AFTER_S) -> None:
        self._after_s = after_s
        self._condition = threading.Condition()
        self._newest = self._done = 0
        self._timer: threading.Timer | None = None

    def submit(self, act: Callable[[Callable[[], None]], None], at_once: bool = False) -> None:
        """Run this function instead of the previous one; ``at_once``: without delay, as the user is waiting."""
        with self._condition:
            number = self._forget()
            self._timer = threading.Timer(0.0 if at_once else self._after_s, self._do, (act, number))
            self._timer.name, self._timer.daemon = "lab-later", True
            self._timer.start()

    def cancel(self) -> None:
        """Cancel the work."""
        with self._condition:
            self._done = self._forget()
            self._condition.notify_all()

    def wait(self, timeout_s: float = 60.0) -> bool:
        """Wait for the end of the work; return False on timeout."""
        with self._condition:
            return self._condition.wait_for(lambda: self._done == self._newest, timeout_s)

    def _forget(self) -> int:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._newest += 1
        return self._newest

    def _do(self, act: Callable[[Callable[[], None]], None], number: int) -> None:
        def check() -> None:
            if number != self._newest:
                raise Cancelled

        try:
            check()
            act(check)
        except Cancelled:
            return
        finally:
            with self._condition:
                self._done = max(self._done, number)
                self._condition.notify_all()
