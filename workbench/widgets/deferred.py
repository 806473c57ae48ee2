"""A background thread for slow functions; a newly submitted function cancels the previous one."""

from __future__ import annotations

import threading
from collections.abc import Callable

AFTER_S = 0.25  # delay; a moving slider submits functions at shorter intervals, so that only the last one runs


class Cancelled(Exception):
    """Raised inside a background function that was cancelled or replaced by a newer function."""


class Deferred:
    """A background thread for functions. It runs only the last function submitted, after a short delay.

    ``submit(work)`` calls ``work(check)`` in a thread. The function must call ``check()`` repeatedly.
    ``check()`` raises `Cancelled` once another function was submitted, or after `cancel`.
    """

    def __init__(self, after_s: float = AFTER_S) -> None:
        self._after_s = after_s
        self._condition = threading.Condition()
        self._last_submitted = self._last_finished = 0
        self._timer: threading.Timer | None = None

    def submit(self, work: Callable[[Callable[[], None]], None], at_once: bool = False) -> None:
        """Run ``work(check)`` after a short delay, instead of the function that was submitted before.

        ``check()`` raises `Cancelled` after a newer `submit` or a `cancel`. ``at_once``: run the function without
        delay, because the user is waiting for the result.
        """
        with self._condition:
            submission = self._cancel_timer()
            self._timer = threading.Timer(0.0 if at_once else self._after_s, self._run, (work, submission))
            self._timer.name, self._timer.daemon = "lab-later", True
            self._timer.start()

    def cancel(self) -> None:
        """Cancel the function that is running or waiting to run."""
        with self._condition:
            self._last_finished = self._cancel_timer()
            self._condition.notify_all()

    def wait(self, timeout_s: float = 60.0) -> bool:
        """Wait until no function is running or waiting to run; return False on timeout."""
        with self._condition:
            return self._condition.wait_for(lambda: self._last_finished == self._last_submitted, timeout_s)

    def _cancel_timer(self) -> int:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._last_submitted += 1
        return self._last_submitted

    def _run(self, work: Callable[[Callable[[], None]], None], submission: int) -> None:
        def check() -> None:
            if submission != self._last_submitted:
                raise Cancelled

        try:
            check()
            work(check)
        except Cancelled:
            return
        finally:
            with self._condition:
                self._last_finished = max(self._last_finished, submission)
                self._condition.notify_all()
