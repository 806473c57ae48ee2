"""Why a reading did not arrive: the last node that had it, and what became of it there.

    for end in ends(run):
        print(end)

Theory of operation
    A reading is followed by the messages that carry it (``originated``). It ended at the last node that came to hold
    one of them or, where a protocol sends copies to all, at the one of those that is nearest to the sink. The reason is
    the last thing the trace tells of it there: a drop under a reason, a frame that the radio lost or gave up, or
    nothing, which means that the node had nobody to send it to.

Limits
    Where copies go several ways, one of them is told, not each. What a protocol makes of a reading under another origin
    and number is not followed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import networkx as nx
import numpy as np

from workbench.protocols.contract import NOBODY
from workbench.sim.metrics.rows import Rows
from workbench.sim.missing import accounts

MOST = 200  # readings that are looked at, the last ones: each takes a look at the whole trace
_LOST = {
    "link": "the link lost it",
    "collision": "it collided",
    "half_duplex": "that node was sending itself",
    "down": "that node was down",
}


class End(NamedTuple):
    """Where a reading ended that ``sink`` was owed: at ``node``, with a ``reason`` in words; times in s."""

    publisher: int
    number: int
    sink: int
    published_s: float
    node: int
    time_s: float
    reason: str

    def __str__(self) -> str:
        return (
            f"Reading {self.number} of node {self.publisher}, of {self.published_s:g} s, did not come to node "
            f"{self.sink}: node {self.node} had it last, at {self.time_s:g} s; {self.reason}."
        )


def ends(run: Any, most: int = MOST, look: Callable[[], Any] = bool) -> list[End]:
    """Where the readings ended that did not arrive, the last published first; at most ``most`` of them.

    ``look()`` is called before each: what it raises ends it. ScenarioError if the run kept no trace.
    """
    rows = Rows(run.trace)
    missing = accounts(run.scenario, rows).missing
    order = np.argsort(-missing.published_us, kind="stable")[:most]
    found = _Messages(run.scenario, rows)
    told = []
    for index in order.tolist():
        look()
        names = "publisher", "number", "sink", "published_us"
        publisher, number, sink, published_us = (int(getattr(missing, name)[index]) for name in names)
        node, time_us, reason = found.end(publisher, number, sink, published_us)
        told.append(End(publisher, number, sink, published_us / 1e6, node, time_us / 1e6, reason))
    return told


class _Messages:
    """The rows of messages, to be looked up by the reading that they carry."""

    def __init__(self, scenario: Any, rows: Rows) -> None:
        self._graph = scenario.topology if scenario.protocol.disseminates else None
        self._harmless = frozenset(scenario.protocol.harmless_drops)
        self._hops: dict[int, dict[int, int]] = {}
        self._originated = rows.columns("originated", "node", "value", "origin", "sequence")
        names = "node", "peer", "origin", "sequence", "time_us", "detail"
        self._rows = {event: rows.columns(event, *names) for event in ("held", "lost", "given_up", "dropped")}
        self._texts = rows.texts("detail")

    def end(self, publisher: int, number: int, sink: int, published_us: int) -> tuple[int, int, str]:
        """(the last node that had it, when, what became of it there)."""
        node, value, origin, sequence = self._originated
        mine = (node == publisher) & (value == number)
        if not mine.any():
            return publisher, published_us, self._kept(publisher, published_us)
        messages = origin[mine], sequence[mine]
        held = self._of("held", *messages)
        holders = list(zip(held[0].tolist(), held[4].tolist(), strict=True)) or [(publisher, published_us)]
        last, time_us = holders[-1] if self._graph is None else min(holders, key=lambda one: self._from(one[0], sink))
        return last, time_us, self._became(last, sink, *messages)

    def _from(self, node: int, sink: int) -> float:
        """The hops from a node to a sink."""
        if sink not in self._hops:
            self._hops[sink] = dict(nx.single_target_shortest_path_length(self._graph, sink))
        return self._hops[sink].get(node, float("inf"))

    def _of(self, event: str, origin: np.ndarray, sequence: np.ndarray) -> list[np.ndarray]:
        columns = self._rows[event]
        is_one = np.zeros(len(columns[0]), np.bool_)
        for one, number in zip(origin.tolist(), sequence.tolist(), strict=True):
            is_one |= (columns[2] == one) & (columns[3] == number)
        return [column[is_one] for column in columns]

    def _kept(self, publisher: int, published_us: int) -> str:
        """Why a publisher sent nothing: the first drop of its own after it published."""
        node, peer, _, _, time_us, detail = self._rows["dropped"]
        own = np.flatnonzero((node == publisher) & (peer == NOBODY) & (time_us >= published_us))
        if len(own):
            return f"it sent nothing, and dropped it later: {self._texts[detail[own[0]]]}"
        return "it sent nothing: nobody it knew of had asked for it"

    def _became(self, last: int, sink: int, origin: np.ndarray, sequence: np.ndarray) -> str:
        dropped = self._of("dropped", origin, sequence)
        reasons = [
            self._texts[code] for at, code in zip(dropped[0].tolist(), dropped[5].tolist(), strict=True) if at == last
        ]
        grave = [reason for reason in reasons if reason not in self._harmless]
        if grave:
            return f"it dropped it: {grave[-1]}"
        lost = self._of("lost", origin, sequence)
        towards = np.flatnonzero(lost[1] == last)
        if len(towards):
            index = towards[-1]
            if self._graph is not None:
                index = min(towards.tolist(), key=lambda row: self._from(int(lost[0][row]), sink))
            reason = self._texts[lost[5][index]]
            return f"it sent it to node {int(lost[0][index])}, and {_LOST.get(reason, reason)}"
        given_up = self._of("given_up", origin, sequence)
        gave = np.flatnonzero(given_up[0] == last)
        if len(gave):
            return f"it gave the frame up: {self._texts[given_up[5][gave[-1]]]}"
        if reasons:
            return f"it dropped it: {reasons[-1]}"
        return "it sent it on to nobody"
