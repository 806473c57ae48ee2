"""What costs more than the picture is done later, in a thread of its own, and given up for whatever is newer."""

from __future__ import annotations

import threading
from collections.abc import Callable

AFTER_S = 0.25  # a slider that moves wishes something new in less


class GivenUp(Exception):
    """Nobody wants any more what is being done."""


class Later:
    """Does the newest of what it is asked for, once nothing else was asked for during a moment.

    ``want(act)`` calls ``act(look)`` in a thread. What takes long calls ``look()`` now and then, which raises `GivenUp`
    when something newer is wanted, or nothing any more (`drop`).
    """

    def __init__(self, after_s: float = AFTER_S) -> None:
        self._after_s = after_s
        self._condition = threading.Condition()
        self._newest = self._done = 0
        self._timer: threading.Timer | None = None

    def want(self, act: Callable[[Callable[[], None]], None], at_once: bool = False) -> None:
        """Do this in place of what was wanted before; ``at_once``: somebody has asked for it and waits."""
        with self._condition:
            number = self._forget()
            self._timer = threading.Timer(0.0 if at_once else self._after_s, self._do, (act, number))
            self._timer.name, self._timer.daemon = "lab-later", True
            self._timer.start()

    def drop(self) -> None:
        """What was wanted is not wanted any more."""
        with self._condition:
            self._done = self._forget()
            self._condition.notify_all()

    def wait(self, timeout_s: float = 60.0) -> bool:
        """Wait until what is wanted is done; False if that took too long."""
        with self._condition:
            return self._condition.wait_for(lambda: self._done == self._newest, timeout_s)

    def _forget(self) -> int:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._newest += 1
        return self._newest

    def _do(self, act: Callable[[Callable[[], None]], None], number: int) -> None:
        def look() -> None:
            if number != self._newest:
                raise GivenUp

        try:
            look()
            act(look)
        except GivenUp:
            return
        finally:
            with self._condition:
                self._done = max(self._done, number)
                self._condition.notify_all()
