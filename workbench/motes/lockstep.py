"""Runs of motes in the simulator's time: the reference engine runs as usual, but its nodes are on motes.

Theory of operation
    The motes' clocks are stopped. For every call of a node's method, the host sets the mote's clock to the simulator's
    time and sends the call as a command. The frames and events that arrive before the answer are the results of the
    call. Everything else (kernel, channel, application, draws) is the reference engine itself:
    `workbench.sim.engine.play` receives instances of `LockstepNode`. So the trace equals the simulator's, row by row,
    if and only if the nodes behave on motes as in the simulator.

Cost
    One round trip for every call: about 0.2 ms on a socket, 5 ms on a serial line.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from workbench.attributes.model import with_payload
from workbench.errors import LinkError, ScenarioError
from workbench.motes import messages
from workbench.motes.events import event_types
from workbench.motes.line import Answer
from workbench.motes.mote import Mote
from workbench.motes.session import MoteSession
from workbench.protocols.contract import Node
from workbench.sim import engine
from workbench.sim.trace import Recorder

_REPORT_NUMBER = messages.FIRST_OWN_EVENT + messages.OWN_EVENTS.index("told")


class RemoteSubscription(NamedTuple):
    """A subscription on a mote: its number on the mote, and the time in µs at which it expires (None: never)."""

    number: int
    expires_us: int | None


class LockstepNode(Node):
    """A node on a mote whose clock is stopped. Each call waits for the mote's answer.

    A call raises LinkError if the mote refuses the command or does not answer. ``configuration`` has the arguments of
    `Mote.configure`. ``reports`` has the problems that the mote reported, for example an event too long for a frame.
    """

    def __init__(self, address: int, protocol: Any, mote: Mote, configuration: dict[str, Any]) -> None:
        super().__init__(address, protocol, None)
        self._mote = mote
        self._configuration = configuration
        self._event_types = event_types(protocol.kind_of_node().EVENTS)
        self._time_us: int | None = None
        self.reports: list[str] = []

    def take(self, kind: str, value: Any) -> None:
        """Store a message from the mote while a method waits for the mote's answer.

        ``kind`` is "send" for a frame to transmit, or "event" for an event to record. ``value`` is the frame or the
        event's fields. The thread that reads the mote's line calls this method.
        """
        if kind == "send":
            self.outbox.append(value)
        elif kind == "event":
            _, event_number, peer, message, origin, sequence, _, number_value, detail = value
            event: Any = self._event_types.get(event_number)
            if event is not None:
                self.events.append(event(peer, message, origin, sequence, number_value, detail))
            elif event_number == _REPORT_NUMBER and detail not in self.reports:
                self.reports.append(detail)

    def _call_mote(self, now: int, kind: int, *fields: Any, rest: bytes = b"") -> Answer:
        self._set_time(now)
        answer = self._mote.command(kind, *fields, rest=rest)
        self.next_wake = answer.next_wake
        return answer

    def _set_time(self, now: int) -> None:
        if now != self._time_us:
            self._mote.post(messages.SET_TIME, now, messages.HELD)
            self._time_us = now

    def start(self, now: int, boot: int = 0) -> None:
        """Configure the mote to run this node, at ``now`` µs.

        ``boot`` is ignored, because the configuration already has the number of earlier starts.
        """
        self._set_time(now)
        self.next_wake = self._mote.configure(**self._configuration).next_wake

    def subscribe(self, attributes: Any, now: int, expires_s: float | None = None, match_all: bool = False) -> Any:
        """Subscribe to ``attributes`` on the mote, at ``now`` µs; return a `RemoteSubscription`.

        ``expires_s`` is the duration of the subscription in s; None: until `unsubscribe`. ``match_all`` permits a
        subscription that matches every publication.
        """
        attribute_bytes = messages.encode_attribute_list(tuple(attributes))
        duration_s = -1.0 if expires_s is None else float(expires_s)
        subscription_number = self._call_mote(
            now, messages.SUBSCRIBE, duration_s, match_all, rest=attribute_bytes
        ).number
        return RemoteSubscription(subscription_number, None if expires_s is None else now + int(expires_s * 1_000_000))

    def unsubscribe(self, subscription: Any, now: int) -> None:
        """End ``subscription``, a `RemoteSubscription`, on the mote at ``now`` µs."""
        self._call_mote(now, messages.UNSUBSCRIBE, subscription.number)

    def publish(self, attributes: Any, now: int, payload: bytes = b"") -> int:
        """Let the mote's node publish a reading, at ``now`` µs; return the reading's sequence number.

        ``payload`` is sent as one more attribute of the reading.
        """
        attribute_bytes = messages.encode_attribute_list(with_payload(attributes, payload))
        return self._call_mote(now, messages.PUBLISH, rest=attribute_bytes).number

    def receive(self, frame: bytes, previous_hop: int, now: int, broadcast: bool = True) -> None:
        """Pass a received frame to the mote, with the simulator's time ``now`` in µs.

        ``previous_hop`` is the neighbor that transmitted the frame, and ``broadcast`` whether it was a broadcast.
        """
        self._call_mote(now, messages.HEARD, previous_hop, broadcast, rest=frame)

    def wake(self, now: int) -> None:
        """Make the mote fire its timers that are due at ``now`` µs."""
        self._call_mote(now, messages.WAKE)

    def link_quality(self, neighbor: int, inbound: float, outbound: float, now: int) -> None:
        """Send the mote the delivery ratios of two arcs: from a neighbor (``inbound``) and to it (``outbound``).

        ``now`` is the simulator's time in µs.
        """
        self._call_mote(now, messages.LINK_QUALITY, neighbor, inbound, outbound)

    def sent(self, destination: int, frame: bytes, ok: bool, now: int) -> None:
        """Report to the mote whether its unicast ``frame`` to ``destination`` was acknowledged (``ok``)."""
        self._call_mote(now, messages.OUTCOME, destination, ok, rest=frame)


def play(scenario: Any, urls: dict[int, str], progress: Callable[[float], None] | None = None) -> Recorder:
    """Run a scenario on motes in the simulator's time (lockstep); return the recorder with the run's trace.

    ``urls`` is {node: URL of its mote}; other nodes are simulated. Each problem that a mote reports is issued as a
    RuntimeWarning. Raises LinkError if a mote fails, or if the motes have radios, which lockstep cannot control.
    """
    nodes: dict[int, LockstepNode] = {}

    def take(node: int, kind: str, value: Any) -> None:
        if node in nodes:
            nodes[node].take(kind, value)

    session = MoteSession(scenario, urls, lambda: 0.0, take)
    try:
        session.open()
        if session.has_radios:
            raise LinkError("these motes have radios, which lockstep cannot control; run them without lockstep")
        for address in sorted(urls):
            mote, configuration = session.motes[address], session.configuration(address)
            nodes[address] = LockstepNode(address, scenario.protocol, mote, configuration)
        recorder = Recorder()
        all_nodes = [nodes.get(node.address, node) for node in engine.make_nodes(scenario)]

        def make_again(i: int, boot: int) -> Node:
            """Return a new object for node ``i``, which starts after a crash; ``boot`` is the number of earlier starts.

            If the node is on a mote, the start configures the mote again, which erases the mote's memory.
            """
            address = all_nodes[i].address
            if address not in urls:
                return engine.make_node(scenario, i, boot)
            key = engine.boot_key(scenario.seed, address, boot)
            configuration = session.configuration(address, boot) | {"key": key}
            nodes[address] = LockstepNode(address, scenario.protocol, session.motes[address], configuration)
            return nodes[address]

        engine.play(scenario, recorder, progress, all_nodes, make_again)
    except ScenarioError as error:
        raise LinkError(str(error)) if isinstance(error.__cause__, LinkError) else error from error
    finally:
        session.close()
        for address, node in nodes.items():
            for report_text in node.reports:
                warnings.warn(f"node {address}: the mote reports: {report_text}", RuntimeWarning, stacklevel=2)
    return recorder
