"""Dealing out the points of a sweep: shares of them that are worth some time each, from all over the plan.

Theory of operation
    Neighbors in a plan cost about the same, so points are taken in strides of the golden section: any stretch of the
    walk is a fair sample of the whole, and what points have taken so far says what the rest will take. The walk is
    computed, so a plan of millions costs nothing here. The first shares are single points, to find out what a point
    takes; shares then grow to the time they are meant to take, and shrink again where the end comes near.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

_GOLDEN = (math.sqrt(5) - 1) / 2
_GROWTH = 8
_MEMORY = 0.8  # What a share adds to the mean fades by this with each later one.
_SHORTEST_S = 1e-5


class Shares:
    """Cuts points into shares of about ``goal_s`` seconds; points whose worker was lost are taken back in.

    Towards the end shares are smaller, so that all workers end at about the same time, but not below ``least_s``. A
    share has at most ``growth`` times the points that were measured.
    """

    def __init__(self, numbers: Sequence[int], goal_s: float, least_s: float = 0.0, growth: int = _GROWTH) -> None:
        self._numbers = numbers
        self._step = _stride(len(numbers))
        self._taken = 0
        self._again: deque[list[int]] = deque()
        self._goal_s, self._least_s, self._growth = goal_s, least_s, growth
        self._points, self._seconds = 0.0, 0.0
        self._measured = 0

    def take(self, workers: int) -> list[int]:
        """The points of the next share, for one of so many workers. Empty if there is none at this time."""
        if self._again:
            return self._again.popleft()
        left = len(self._numbers) - self._taken
        size = min(left, self._size(self._goal_s), max(self._size(self._least_s), left // (2 * workers)))
        walk = range(self._taken, self._taken + size)
        self._taken += size
        return [int(self._numbers[i * self._step % len(self._numbers)]) for i in walk]

    def took(self, points: int, seconds: float) -> None:
        """So many points have taken so long on their worker."""
        self._points = self._points * _MEMORY + points
        self._seconds = self._seconds * _MEMORY + seconds
        self._measured += points

    def again(self, numbers: list[int]) -> None:
        """Have these points run next, as one share."""
        if numbers:
            self._again.append(numbers)

    def halve(self, numbers: list[int]) -> None:
        """Have these points run next, as two shares: one of them may be what ended their worker."""
        middle = (len(numbers) + 1) // 2
        self.again(numbers[:middle])
        self.again(numbers[middle:])

    def _size(self, seconds: float) -> int:
        if not self._measured:
            return 1
        point_s = max(self._seconds / self._points, _SHORTEST_S)
        return max(1, min(round(seconds / point_s), self._growth * self._measured))


def _stride(points: int) -> int:
    """A step of about the golden section that visits all points: it has no divisor in common with their number."""
    step = max(1, round(points * _GOLDEN))
    while math.gcd(step, points) > 1:
        step += 1
    return step
