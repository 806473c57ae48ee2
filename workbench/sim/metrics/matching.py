"""Matching of subscriptions with publications by the protocol's rule; the result of each pair is cached."""

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
    """The protocol's rule that matches subscriptions with publications, both given as texts; results are cached."""

    def __init__(self, matching_samples: Callable[[Any, Any], Any]) -> None:
        self._matching_samples = matching_samples
        self.samples = lru_cache(maxsize=1_000_000)(self._samples)
        self.is_match = lru_cache(maxsize=1_000_000)(self._is_match)

    def _samples(self, subscription: str, publication: str) -> tuple[str, ...]:
        samples = self._matching_samples(_parsed(subscription), _parsed(publication))
        return tuple(to_text(sample) for sample in samples)

    def _is_match(self, subscription: str, sample: str) -> bool:
        try:
            return bool(self._matching_samples(_parsed(subscription), _parsed(sample)))
        except AttributeFormatError:
            # A filter computed a number beyond its key's range, which text cannot express. The sink has compared it.
            return True

    def candidates(self, subscriptions: Iterable[str], publications: list[str]) -> list[np.ndarray]:
        """Return for each subscription the indices, ascending, of the publications that may match it.

        The base class returns the indices of all publications, because its rule can be any function.
        """
        return [np.arange(len(publications))] * len(list(subscriptions))


class _CommonMatching(Matching):
    """A matching rule by attributes, whose `candidates` compares each constraint with all publications at once."""

    def candidates(self, subscriptions: Iterable[str], publications: list[str]) -> list[np.ndarray]:
        candidate_indices = []
        numbers_of_key = _index_numbers(publications)
        for subscription in subscriptions:
            may_match = np.ones(len(publications), np.bool_)
            for key, operator, bound in _parsed(subscription):
                if operator in _COMPARED and isinstance(bound, int):
                    publication_indices, key_values = numbers_of_key.get(key, _NO_VALUES)
                    meets_constraint = np.zeros(len(publications), np.bool_)
                    meets_constraint[publication_indices[_COMPARED[operator](key_values, bound)]] = True
                    may_match &= meets_constraint
            candidate_indices.append(np.flatnonzero(may_match))
        return candidate_indices


_COMPARED: dict[int, np.ufunc] = {EQ: np.equal, GE: np.greater_equal, GT: np.greater, LE: np.less_equal, LT: np.less}
_NO_VALUES = np.zeros(0, np.int64), np.zeros(0, np.int64)


def _index_numbers(publications: list[str]) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Return {key: (indices of the publications with the key, the key's values in them)} for all numeric keys."""
    pairs_of: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for index, text in enumerate(publications):
        for key, value in read_numbers(text):
            pairs_of[key].append((index, value))
    columns_of_key = {key: np.array(pairs, np.int64) for key, pairs in pairs_of.items()}
    return {key: (pairs[:, 0], pairs[:, 1]) for key, pairs in columns_of_key.items()}


@lru_cache(maxsize=100_000)
def read_numbers(publication: str) -> tuple[tuple[int, int], ...]:
    """Return (key, value) of each attribute of a publication whose value is a number."""
    return tuple(
        (key, value) for key, operator, value in _parsed(publication) if operator == IS and isinstance(value, int)
    )


_COMMON = _CommonMatching(matching_samples)


@lru_cache(maxsize=64)
def _matching_by_rule(protocol: Protocol) -> Matching:
    return (_CommonMatching if protocol.narrows_matching else Matching)(protocol.matching_samples)


def matching_of(protocol: Protocol) -> Matching:
    """Return a protocol's rule for matching subscriptions with publications; results are cached by protocol."""
    if type(protocol).matching_samples is Protocol.matching_samples:
        return _COMMON
    return _matching_by_rule(protocol)
