"""Which samples of a publication a subscription asks for, by the protocol's rule; each pair is worked out once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import numpy as np

from workbench.attributes.model import EQ, GE, GT, IS, LE, LT, matching_samples
from workbench.attributes.text import parse, to_text
from workbench.errors import AttributeFormatError
from workbench.protocols.protocol import Protocol

_parsed = lru_cache(maxsize=100_000)(parse)


class Matching:
    """What subscriptions ask for, by the protocol's rule: texts in, texts out, each pair worked out once."""

    def __init__(self, matching_samples: Callable[[Any, Any], Any]) -> None:
        self._matching_samples = matching_samples
        self.samples = lru_cache(maxsize=1_000_000)(self._samples)
        self.is_match = lru_cache(maxsize=1_000_000)(self._is_match)

    def _samples(self, subscription: str, publication: str) -> tuple[str, ...]:
        """The samples of a publication that match a subscription."""
        found = self._matching_samples(_parsed(subscription), _parsed(publication))
        return tuple(to_text(sample) for sample in found)

    def _is_match(self, subscription: str, sample: str) -> bool:
        """Whether a sample matches a subscription."""
        try:
            return bool(self._matching_samples(_parsed(subscription), _parsed(sample)))
        except AttributeFormatError:
            return True  # A filter has left its key's range, which no text can say; the sink has compared the number.

    def candidates(self, subscriptions: Iterable[str], publications: list[str]) -> list[np.ndarray]:
        """For each subscription the indices of the publications of which it may have samples, ascending.

        All of them, if nothing is known of the rule.
        """
        return [np.arange(len(publications))] * len(list(subscriptions))


class _CommonMatching(Matching):
    """The rule of attributes: numbers are compared for all publications at once, for most of them meet few bounds."""

    def candidates(self, subscriptions: Iterable[str], publications: list[str]) -> list[np.ndarray]:
        found = []
        values = _values(publications)
        for subscription in subscriptions:
            may_match = np.ones(len(publications), np.bool_)
            for key, operator, bound in _parsed(subscription):
                if operator in _COMPARED and isinstance(bound, int):
                    where, numbers = values.get(key, _NO_VALUES)
                    meets = np.zeros(len(publications), np.bool_)
                    meets[where[_COMPARED[operator](numbers, bound)]] = True
                    may_match &= meets
            found.append(np.flatnonzero(may_match))
        return found


_COMPARED: dict[int, np.ufunc] = {EQ: np.equal, GE: np.greater_equal, GT: np.greater, LE: np.less_equal, LT: np.less}
_NO_VALUES = np.zeros(0, np.int64), np.zeros(0, np.int64)


def _values(publications: list[str]) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """key -> (indices of publications, values that these have): of all numbers that publications state."""
    stated: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for index, text in enumerate(publications):
        for key, value in _numbers(text):
            stated[key].append((index, value))
    columns = {key: np.array(pairs, np.int64) for key, pairs in stated.items()}
    return {key: (pairs[:, 0], pairs[:, 1]) for key, pairs in columns.items()}


@lru_cache(maxsize=100_000)
def _numbers(publication: str) -> tuple[tuple[int, int], ...]:
    """(key, value) of each number that a publication states."""
    return tuple(
        (key, value) for key, operator, value in _parsed(publication) if operator == IS and isinstance(value, int)
    )


_COMMON = _CommonMatching(matching_samples)


@lru_cache(maxsize=64)
def _own_matching(protocol: Protocol) -> Matching:
    return Matching(protocol.matching_samples)


def matching_of(protocol: Protocol) -> Matching:
    """The protocol's rule: that of attributes, unless it has one of its own."""
    if type(protocol).matching_samples is Protocol.matching_samples:
        return _COMMON
    return _own_matching(protocol)
