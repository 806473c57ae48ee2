"""Division of a sweep's points into shares: lists of points that take about the same time.

Theory of operation
    Consecutive points of a plan take about the same time, and distant points may take much more or less. So points are
    not taken in the order of the plan: with n points, the next number is the last one plus about 0.618 n (the golden
    section), modulo n. Points that follow each other in this order are a fair sample of the plan, so the time of
    finished points predicts the time of the rest. The order is computed and not stored, so a plan of millions of points
    needs no memory. The first shares are single points, to measure their time. Shares then grow to their intended
    duration, and shrink again towards the end.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

_GOLDEN = (math.sqrt(5) - 1) / 2
_GROWTH = 8  # largest size of a share, as a multiple of the points measured so far
_MEMORY = 0.8  # weight of earlier shares in the mean, multiplied with each new share
_SHORTEST_S = 1e-5  # least time that is assumed for a point


class Shares:
    """A queue that divides the points ``numbers`` into shares (lists of points) of about ``goal_s`` seconds each.

    The points of a lost worker can be put back into the queue. Towards the end shares are shorter, but not below
    ``least_s`` seconds, so that all workers end at about the same time. A share has at most ``growth`` times as
    many points as the number of points whose time is known (`record_time`).
    """

    def __init__(self, numbers: Sequence[int], goal_s: float, least_s: float = 0.0, growth: int = _GROWTH) -> None:
        self._numbers = numbers
        self._step = _choose_stride(len(numbers))
        self._taken = 0
        self._returned: deque[list[int]] = deque()
        self._goal_s, self._least_s, self._growth = goal_s, least_s, growth
        self._points, self._seconds = 0.0, 0.0
        self._measured = 0

    def take(self, workers: int) -> list[int]:
        """Return the points of the next share for one of ``workers`` workers.

        The list is empty while the queue is empty; points that are put back fill the queue again.
        """
        if self._returned:
            return self._returned.popleft()
        points_left = len(self._numbers) - self._taken
        share_size = min(
            points_left,
            self._choose_size(self._goal_s),
            max(self._choose_size(self._least_s), points_left // (2 * workers)),
        )
        positions = range(self._taken, self._taken + share_size)
        self._taken += share_size
        return [int(self._numbers[position * self._step % len(self._numbers)]) for position in positions]

    def record_time(self, points: int, seconds: float) -> None:
        """Record that ``points`` finished points took ``seconds`` on their worker.

        The time of later points is estimated from these records.
        """
        self._points = self._points * _MEMORY + points
        self._seconds = self._seconds * _MEMORY + seconds
        self._measured += points

    def put_back(self, numbers: list[int]) -> None:
        """Put the points ``numbers`` back into the queue as one share (list), which is taken before new points."""
        if numbers:
            self._returned.append(numbers)

    def halve(self, numbers: list[int]) -> None:
        """Put the points of a lost worker back into the queue as two shares, to isolate the point that killed it."""
        middle = (len(numbers) + 1) // 2
        self.put_back(numbers[:middle])
        self.put_back(numbers[middle:])

    def _choose_size(self, seconds: float) -> int:
        if not self._measured:
            return 1
        point_s = max(self._seconds / self._points, _SHORTEST_S)
        return max(1, min(round(seconds / point_s), self._growth * self._measured))


def _choose_stride(points: int) -> int:
    """Return the step from the number of a point to the number of the point that is run next, modulo ``points``.

    ``points`` is the number of all points. The step is about 0.618 ``points`` (the golden section) and coprime to
    ``points``, so that steps of this size visit each point once.
    """
    step = max(1, round(points * _GOLDEN))
    while math.gcd(step, points) > 1:
        step += 1
    return step
