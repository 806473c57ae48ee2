"""The decisions of filters in a run, with each message before and after the filter, recorded during a replay.

Theory of operation
    The trace shows which messages filters replaced or dropped. It shows neither the messages that filters passed
    unchanged nor the attributes in messages. A run is a function of its scenario, so the reference engine replays it,
    with a watch on each node that has filters: the watch records decisions. The protocol's class attribute
    ``catalogue`` names the module that attaches the watch.

Cost
    The time of the run on the reference engine; memory for each stored decision.

Limits
    A live run on motes cannot be replayed. A run does not store the code of the filters that were registered when it
    ran. If the code has changed, the replay differs, which raises ScenarioError.
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

MOST = 2000  # limit of the decisions whose data are stored


class Decision(NamedTuple):
    """The decision of one filter on one message at one node.

    ``messages``: name of the message type, "data" or "interest". ``origin``, ``sequence``: the message's identity.
    ``key``: the filter's key. ``did``: the decision, "pass", "replace" or "drop". ``before``, ``after``: the message's
    attributes as text before and after the filter; ``after`` is "" for "drop".
    """

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
    """The decisions of filters in a run: the earliest ones with their data (``first``), and counts of all decisions.

    ``counts`` is {(message name, filter's key, did): number}; ``did`` is "pass", "replace" or "drop".
    """

    first: tuple[Decision, ...]
    counts: Counter[tuple[str, int, str]]


def count_changes(run: Any) -> Counter[tuple[str, int, str]]:
    """Count the decisions of filters to replace or drop a message, as the trace of a run reports them.

    The result is {(message name, filter's key, "replace" or "drop"): count}.
    """
    change_rows = Columns(run.trace).of(*run.scenario.protocol.changes[:1])
    return Counter((row.message, row.value, row.detail) for row in change_rows)


def decisions(run: Any, most: int = MOST, progress: Callable[[float], Any] | None = None) -> Decisions:
    """Replay a run with a trace, and return the decisions of its filters.

    ``most``: the first ``most`` decisions are stored with their data; later ones are only counted. ``progress`` is
    called regularly with the fraction of the replay that is done, 0 to 1; an error that it raises ends the replay.
    Raises ScenarioError if the run cannot be replayed, or the replay differs.
    """
    if run.engine == LIVE:
        raise ScenarioError(
            "a live run on motes cannot be replayed, so the data of its filters are not available; "
            "run the scenario in the simulator"
        )
    protocol = run.scenario.protocol
    if not protocol.catalogue:
        return Decisions((), Counter())
    watch = _Watch(most)
    with engine.without_collector():
        kernel = engine.begin(run.scenario, watch)
        for node in kernel.nodes:
            importlib.import_module(protocol.catalogue).watch(node, watch.record)
        kernel.play(engine.duration_us(run.scenario), progress)
    if watch.changes != count_changes(run):
        raise ScenarioError(
            "the replay differs from this run, as the code of its filters has changed; run the scenario again"
        )
    return Decisions(tuple(watch.first), watch.counts)


class _Watch(Recorder):
    """A recorder for the replay of a run: it stores the decisions of filters and discards the trace."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.append = self._discard
        self.most = most
        self.first: list[Decision] = []
        self.counts: Counter[tuple[str, int, str]] = Counter()

    def record(
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
        """Count a decision of a filter, and store it if fewer than ``most`` decisions are stored.

        The parameters are the fields of `Decision`, with ``now`` in µs, but ``before`` and ``after`` are tuples of
        attributes.
        """
        self.counts[messages, key, did] += 1
        if len(self.first) < self.most:
            text_after = "" if did == "drop" else to_text(after)
            self.first.append(Decision(now, node, messages, origin, sequence, key, did, to_text(before), text_after))

    @property
    def changes(self) -> Counter[tuple[str, int, str]]:
        """{(message name, filter's key, "replace" or "drop"): number of such decisions}."""
        return Counter({key: count for key, count in self.counts.items() if key[2] != "pass"})

    def _discard(self, row: tuple[Any, ...]) -> None:
        """Discard a row of the trace: this recorder stores decisions only."""

    def protocol_events(self, time_us: int, node: int, events: list[Any]) -> None:
        """Discard the events that nodes report: this recorder stores decisions only."""

    def flush_if_large(self) -> None:
        """Do nothing: this recorder stores no rows of the trace."""
