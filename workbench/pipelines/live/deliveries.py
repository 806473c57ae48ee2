"""Readings out of the rows of a trace: what was delivered, and when it was published.

Theory of operation
    A row "published" says when a node had a reading, "originated" which message carries it, "delivered" that a sink
    received a sample of a message. A delivered sample stands for the message's first reading with that text; if there
    is none (the protocol changed it on the way), for the message's first. Each number of a sample is one `Reading`;
    blobs and the application type are none.

Limits
    The last `MOST` messages and publications are remembered. The sample of an older one, and one that the trace has
    before its publication (rows of motes may come so), counts as measured when it arrived.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from workbench.attributes.keys import key_of
from workbench.attributes.model import APP, is_blob
from workbench.attributes.text import parse
from workbench.pipelines.live.readings import Reading

EVENTS = ("published", "originated", "delivered")
MOST = 100_000


class Deliveries:
    """Takes rows of a trace in their order, and gives the readings that were delivered.

    ``regions``: node -> region.
    """

    def __init__(self, regions: Mapping[int, str]) -> None:
        self._regions = regions
        self._published: OrderedDict[tuple[int, int], tuple[int, str]] = OrderedDict()
        self._carried: OrderedDict[tuple[int, int], list[tuple[int, int, str]]] = OrderedDict()

    def of(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[Reading]:
        """The readings of rows; tuples in the order of the trace's columns. Rows of other events are passed over."""
        for time_us, node, event, _, _, origin, sequence, _, value, detail in rows:
            if event == "published":
                _remember(self._published, (node, sequence), (time_us, detail))
            elif event == "originated":
                if (node, value) in self._published:
                    carried = self._carried.get((origin, sequence)) or []
                    _remember(self._carried, (origin, sequence), [*carried, (value, *self._published[node, value])])
            elif event == "delivered":
                yield from self._readings(time_us, node, origin, sequence, detail)

    def _readings(self, time_us: int, sink: int, origin: int, sequence: int, detail: str) -> Iterator[Reading]:
        carried = self._carried.get((origin, sequence)) or [(sequence, time_us, detail)]
        number, published_us, _ = next((one for one in carried if one[2] == detail), carried[0])
        region = self._regions.get(origin, "")
        for key, value in _numbers(detail):
            yield Reading(published_us / 1e6, origin, key, value, region, sink, number, time_us / 1e6)


def _remember(known: OrderedDict[Any, Any], name: tuple[int, int], what: Any) -> None:
    known[name] = what
    if len(known) > MOST:
        known.popitem(last=False)


@lru_cache(maxsize=4096)
def _numbers(sample: str) -> tuple[tuple[str, float], ...]:
    """The keys and values, in their units, of a sample's numbers."""
    numbers = [one for one in parse(sample) if one.key != APP and not is_blob(one.key)]
    return tuple((key_of(one.key).name, one.value / key_of(one.key).steps) for one in numbers)
