"""A bounded queue between a source that cannot wait and the bridge."""

from __future__ import annotations

import threading
from collections import deque

from workbench.errors import DataError
from workbench.pipelines.live.readings import Reading

MOST = 10_000


class Inbox:
    """Put readings in from any thread: ``inbox.put(Reading(...))`` never waits; `wb.pipelines.stream` takes them out.

    Beyond ``most`` readings the oldest is lost, and counted in ``lost``. ``close`` says that nothing more will come.
    """

    def __init__(self, most: int = MOST) -> None:
        self.lost = 0
        self._most = most
        self._readings: deque[Reading] = deque()
        self._condition = threading.Condition()
        self._is_closed = False

    def put(self, reading: Reading) -> None:
        """Add a reading; DataError once the inbox is closed."""
        with self._condition:
            if self._is_closed:
                raise DataError("the inbox is closed: nothing more was to come")
            self._readings.append(reading)
            if len(self._readings) > self._most:
                self._readings.popleft()
                self.lost += 1
            self._condition.notify()

    def close(self) -> None:
        """Nothing more will come; what is in it is still taken."""
        with self._condition:
            self._is_closed = True
            self._condition.notify()

    @property
    def is_over(self) -> bool:
        """Whether it is closed and empty."""
        with self._condition:
            return self._is_closed and not self._readings

    def next_reading(self, timeout_s: float) -> Reading | None:
        """Take the oldest; None if none has come within that time, or none will come."""
        with self._condition:
            self._condition.wait_for(lambda: self._readings or self._is_closed, timeout_s)
            return self._readings.popleft() if self._readings else None
