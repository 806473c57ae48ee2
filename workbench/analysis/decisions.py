"""What the filters of nodes did in a run, with the data before and after: the run is played once more and watched.

Theory of operation
    The trace tells what filters replaced and dropped, and neither what they passed nor the data. A run is a function of
    its scenario, so the reference engine plays it again with a watch on each node that carries filters. How filters
    are watched says the module that the protocol's class names (``catalogue``).

Cost
    That of the run on the reference engine; memory for each decision that is kept.

Limits
    A live run on motes cannot be played again. A run does not know the code of the filters that were registered when it
    ran: with other code it comes out otherwise, which is an error.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from workbench.analysis.frames import LIVE
from workbench.attributes.text import to_text
from workbench.errors import ScenarioError
from workbench.sim import engine
from workbench.sim.rows import Columns
from workbench.sim.trace import Recorder

MOST = 2000  # decisions whose data are kept


class Decision(NamedTuple):
    """What one filter made of one message at one node. ``did``: "pass", "replace" or "drop"; ``after``: "" then."""

    time_us: int
    node: int
    messages: str
    origin: int
    sequence: int
    key: int
    did: str
    before: str
    after: str


class Decisions(NamedTuple):
    """The first decisions of a run, and how many of each there were: {(messages, filter's key, did): count}."""

    first: tuple[Decision, ...]
    counts: Counter[tuple[str, int, str]]


def told_by_trace(run: Any) -> Counter[tuple[str, int, str]]:
    """How many messages filters replaced and dropped, {(messages, filter's key, did): count}, as the trace tells."""
    rows = Columns(run.trace).of(*run.scenario.protocol.changes[:1])
    return Counter((row.message, row.value, row.detail) for row in rows)


def decisions(run: Any, most: int = MOST, progress: Callable[[float], Any] | None = None) -> Decisions:
    """Play a run with a trace again, and keep what filters did. ScenarioError if it comes out otherwise or cannot be.

    ``most``: the data of so many decisions are kept, and the others counted. ``progress``: is called now and then with
    the share of the run that is played; what it raises ends it.
    """
    if run.engine == LIVE:
        raise ScenarioError("a live run on motes cannot be played again, so what its filters were given is not known")
    protocol = run.scenario.protocol
    if not protocol.catalogue:
        return Decisions((), Counter())
    watch = _Watch(most)
    with engine.without_collector():
        kernel = engine.begin(run.scenario, watch)
        for node in kernel.nodes:
            importlib.import_module(protocol.catalogue).watch(node, watch.take)
        kernel.play(engine.duration_us(run.scenario), progress)
    if watch.changes != told_by_trace(run):
        raise ScenarioError("the scenario no longer gives this run, as its filters have other code; run it again")
    return Decisions(tuple(watch.first), watch.counts)


class _Watch(Recorder):
    """Keeps no rows, but what filters did."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.append = self._forget
        self.most = most
        self.first: list[Decision] = []
        self.counts: Counter[tuple[str, int, str]] = Counter()

    def take(
        self,
        now: int,
        node: int,
        messages: str,
        origin: int,
        sequence: int,
        key: int,
        did: str,
        before: tuple[Any, ...],
        after: tuple[Any, ...],
    ) -> None:
        """A filter has decided."""
        self.counts[messages, key, did] += 1
        if len(self.first) < self.most:
            left = "" if did == "drop" else to_text(after)
            self.first.append(Decision(now, node, messages, origin, sequence, key, did, to_text(before), left))

    @property
    def changes(self) -> Counter[tuple[str, int, str]]:
        """The counts of what the trace tells, too."""
        return Counter({what: count for what, count in self.counts.items() if what[2] != "pass"})

    def _forget(self, row: tuple[Any, ...]) -> None:
        """There are no rows."""

    def protocol_events(self, time_us: int, node: int, events: list[Any]) -> None:
        """Keep nothing of what nodes report."""

    def flush_if_large(self) -> None:
        """There are no rows."""
