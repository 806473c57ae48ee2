"""A mesh of DPS nodes as processes on this machine's loopback interface, for notebooks and scripts.

    with wb.dps_mesh(25) as mesh:                      a grid of 5 x 5
        mesh.settle()
        mesh.subscribe(24, "house/+/temp")
        mesh.settle()
        mesh.publish(0, "house/kitchen/temp", "21.5")  returns an Outcome: subscribers, answers and latencies
        mesh.kill(12)                                  kill -9
        mesh.restart(12)

Theory of operation
    Each node is a separate process (`node.py`), bound to 127.0.0.1 and a free port, which reads commands from its
    standard input. Links are those of a topology; the node with the lower number requests a link. Timers are shorter
    than in the C implementation, so that a lost link is noticed within seconds. With even shorter timers a busy
    machine would lose working links.

    Leaving the ``with`` always ends all processes. Their input is closed, which makes them end; processes that do not
    end are killed. If the process that started them is killed, their input is closed too.

Cost
    A process takes some 0.2 s of processor time to start and 30 MB.

Limits
    A publication is sent over a link once, so it may not arrive while a link is lost; the `Outcome` lists subscribers
    that have not answered. `settle` waits until the state stops changing, which takes longer on a loaded machine.
"""

from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from queue import Empty, Queue
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.errors import LinkError, ParameterError
from workbench.keywords import refuse_unknown
from workbench.protocols.dps import topics as topic_strings
from workbench.protocols.dps.bloom import LENGTH
from workbench.protocols.dps.udp.application import now_s, reading_of

if TYPE_CHECKING:
    import networkx as nx

TIMERS = {"update_s": 0.3, "link_loss_s": 1.5, "relink_s": 0.5}
MOST_NODES = 200
_END_S = 3.0
_START_S = 60.0
_ANSWER_S = 30.0
_JOIN_S = 3.0
_POLL_S = 0.25
_READING_POLL_S = 0.02
_QUIET_S = 1.2  # four update periods without a change


class Outcome(NamedTuple):
    """The result of a publication in a mesh of processes.

    wanted   live nodes that should receive the publication; a node whose subscription is only a wildcard is among them
             only if it is the publisher, as such a subscription is not sent to neighbors
    answers  {node: milliseconds from publishing until its acknowledgement}
    """

    publisher: int
    topic: str
    wanted: tuple[int, ...]
    answers: dict[int, float]

    @property
    def missing(self) -> tuple[int, ...]:
        """Nodes that should have acknowledged the publication, but did not."""
        return tuple(node for node in self.wanted if node not in self.answers)


class MeshProcess:
    """The process of one node, which runs `node.py`.

    Commands are written to its standard input; the process replies to each, in the same order. A thread reads its
    output and stores received publications and answers.
    """

    def __init__(self, listen: str, settings: dict[str, Any]) -> None:
        command = [sys.executable, "-m", "workbench.protocols.dps.processes.node", listen, json.dumps(settings)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.address = ""
        self.publications: list[dict[str, Any]] = []
        self.read_count = 0  # publications that `DPSMesh.next_reading` has returned
        self.answers: dict[int, list[tuple[float, str]]] = {}  # number of the command -> [(time in s, address)]
        self._replies: Queue[dict[str, Any]] = Queue()
        self._command_numbers = itertools.count(1)
        self._reader = Thread(target=self._read_output, daemon=True)
        self._reader.start()

    @property
    def is_alive(self) -> bool:
        """Whether the process is running."""
        return self.process.poll() is None

    def _read_output(self) -> None:
        """Store the publications, answers and replies in the process's output until it ends; run in a thread."""
        assert self.process.stdout is not None
        for text in self.process.stdout:
            line = json.loads(text)
            event = line.get("event")
            if event == "publication":
                self.publications.append({**line, "at_s": now_s()})
            elif event == "answer":
                self.answers.setdefault(line["to"], []).append((time.perf_counter(), line["sender"]))
            else:
                self._replies.put(line)
        self._replies.put({"event": "ended"})

    def await_start(self) -> None:
        """Wait until the process's node listens on its address. Raises LinkError if it does not start."""
        line = self._await_reply(_START_S)
        if line.get("event") != "listening":
            raise LinkError(f"a node of the mesh did not start: {line.get('error', 'its process has ended')}")
        self.address = line["address"]

    def send_command(self, action: str, **arguments: Any) -> int:
        """Send the process a command without waiting for its reply; return the command's number.

        ``action``: a command of `node.py`, such as "subscribe"; ``arguments``: its fields.
        """
        command_number = next(self._command_numbers)
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps({"id": command_number, "do": action, **arguments}) + "\n")
            self.process.stdin.flush()
        except OSError:
            raise LinkError(f"the node at {self.address} has ended, so it cannot {action}; restart it first") from None
        return command_number

    def receive_reply(self) -> dict[str, Any]:
        """Return the reply to the oldest unanswered command. Raises LinkError if the command failed."""
        line = self._await_reply(_ANSWER_S)
        if "error" in line:
            raise LinkError(f"the node at {self.address}: {line['error']}")
        if line.get("event") == "ended":
            raise LinkError(f"the node at {self.address} has ended before its reply; restart it first")
        return line

    def _await_reply(self, within_s: float) -> dict[str, Any]:
        """Return the next line of the process that is neither a publication nor an answer.

        Raises LinkError if no such line comes within ``within_s``.
        """
        try:
            return self._replies.get(timeout=within_s)
        except Empty:
            address = self.address or "a new address"
            raise LinkError(
                f"the node at {address} has not answered in {within_s:g} s; the machine may be busy"
            ) from None

    def kill(self) -> None:
        """Kill the process with SIGKILL."""
        self.process.kill()
        self._close()

    def end(self, within_s: float) -> None:
        """Close the input of the process; if it does not end within ``within_s``, kill it."""
        if self.process.stdin is not None and not self.process.stdin.closed:
            with suppress(OSError):  # Buffered commands cannot be written after the process has ended.
                self.process.stdin.close()
        try:
            self.process.wait(max(within_s, 0.0))
        except subprocess.TimeoutExpired:
            self.process.kill()
        self._close()

    def _close(self) -> None:
        self.process.wait()
        self._reader.join(_JOIN_S)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()


class DPSMesh:
    """A mesh of processes, as `dps_mesh` returns it; ``with`` starts and ends the processes.

    graph          the topology, whose edges are the links
    settings       parameters of `workbench.DPS` for all nodes
    nodes          {node number: its process}
    subscriptions  {node number: list of the topics of each subscription}
    """

    def __init__(self, graph: nx.Graph, settings: dict[str, Any]) -> None:
        self.graph = graph
        self.settings = {**TIMERS, **settings}
        self.nodes: dict[int, MeshProcess] = {}
        self.subscriptions: dict[int, list[tuple[str, ...]]] = {}
        self._addresses: dict[int, str] = {}

    __getattr__ = refuse_unknown

    # Beginning and end

    def __enter__(self) -> DPSMesh:
        try:
            for node in sorted(self.graph):
                self.nodes[node] = MeshProcess("127.0.0.1:0", self.settings)
            for node, process in self.nodes.items():
                process.await_start()
                self._addresses[node] = process.address
            self._send_commands([(a, "link", {"to": self._addresses[b]}) for a, b in self.pairs()])
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all processes. Do nothing if they have ended."""
        nodes, self.nodes = self.nodes, {}
        for process in nodes.values():
            if process.process.stdin is not None:
                with suppress(OSError):
                    process.process.stdin.close()  # of all processes first, so that they end in parallel
        end_s = time.perf_counter() + _END_S
        for process in nodes.values():
            process.end(end_s - time.perf_counter())

    def pairs(self) -> list[tuple[int, int]]:
        """Return the links of the topology as sorted pairs, the lower node first."""
        return sorted({(min(a, b), max(a, b)) for a, b in self.graph.edges if a != b})

    @property
    def filter_bits(self) -> int:
        """Length of the filters in this mesh, in bits."""
        return int(self.settings.get("filter_bits", LENGTH))

    @property
    def alive(self) -> list[int]:
        """Nodes whose processes are running, in ascending order."""
        return [node for node, process in sorted(self.nodes.items()) if process.is_alive]

    # Actions of nodes

    def subscribe(self, node: int, *topics: str) -> None:
        """Subscribe a node to publications that match all these topics. Raises LinkError if the node refuses."""
        process = self._live_process(node)
        process.send_command("subscribe", topics=list(topics))
        process.receive_reply()
        self.subscriptions.setdefault(node, []).append(topics)

    def publish(self, node: int, topic: str, text: str = "", ttl_s: int = 0, within_s: float = 5.0) -> Outcome:
        """Publish at a node, and return the outcome.

        The call returns when all live subscribers have acknowledged the publication, or after ``within_s``. The
        ``publications`` of the nodes that have acknowledged then contain this publication.
        """
        process = self._live_process(node)
        wanted = tuple(
            subscriber for subscriber in self.alive if self._subscribes(topic, subscriber, subscriber == node)
        )
        begin_s = time.perf_counter()
        command_number = process.send_command("publish", topics=[topic], text=text, ttl_s=ttl_s, acknowledge=True)
        process.receive_reply()
        while time.perf_counter() < begin_s + within_s:
            if set(wanted) <= self._answer_times(process, command_number, begin_s).keys():
                break
            time.sleep(0.002)
        answers = self._answer_times(process, command_number, begin_s)
        # Each process has its own reader thread; a subscriber's thread may be slower than the publisher's thread.
        self._send_commands([(subscriber, "catch_up", {}) for subscriber in answers if self.nodes[subscriber].is_alive])
        return Outcome(node, topic, wanted, answers)

    # For `wb.pipelines.stream`: the publications that subscriptions received, until the mesh is closed

    lost = 0  # number of lost readings: always 0, as all publications are stored

    @property
    def is_over(self) -> bool:
        """Whether the mesh is closed."""
        return not self.nodes

    def next_reading(self, timeout_s: float) -> dict[str, Any] | None:
        """Return the next received publication as a reading, or None if no publication arrives within ``timeout_s``.

        The reading has the fields of `application.reading_of`, and ``sink``, the node that received the publication.
        """
        end_s = time.perf_counter() + timeout_s
        while True:
            for node, process in list(self.nodes.items()):
                if process.read_count < len(process.publications):
                    process.read_count += 1
                    line = process.publications[process.read_count - 1]
                    fields = [line[name] for name in ("topics", "text", "series", "sequence", "at_s")]
                    return {**reading_of(*fields), "sink": node}
            if time.perf_counter() >= end_s:
                return None
            time.sleep(_READING_POLL_S)

    def _subscribes(self, topic: str, node: int, is_publisher: bool) -> bool:
        """Return whether a node should receive publications on a topic.

        ``is_publisher``: whether the node publishes them itself. A subscription to a wildcard alone matches only
        publications of its own node.
        """
        separators = self.settings.get("separators", topic_strings.SEPARATORS)
        return any(
            topic_strings.matches([topic], topics, separators)
            and (is_publisher or any(topic_strings.subscription_items(subscribed, separators) for subscribed in topics))
            for topics in self._subscriptions_of(node)
        )

    def _subscriptions_of(self, node: int) -> list[tuple[str, ...]]:
        return self.subscriptions.get(node, [])

    def _answer_times(self, process: MeshProcess, command_number: int, begin_s: float) -> dict[int, float]:
        """Return {node: milliseconds from ``begin_s`` to its first acknowledgement} of a publication.

        ``command_number``: number of the command to ``process`` that published it.
        """
        nodes = {address: node for node, address in self._addresses.items()}
        answers: dict[int, float] = {}
        for at_s, sender in list(process.answers.get(command_number, ())):
            if sender in nodes:
                answers.setdefault(nodes[sender], round((at_s - begin_s) * 1000, 2))
        return answers

    def kill(self, node: int) -> None:
        """Kill a node's process with SIGKILL, so that it cannot end its links."""
        self._live_process(node).kill()

    def restart(self, node: int) -> None:
        """Restart an ended node at its former address, with its links and subscriptions."""
        if node not in self.nodes:
            raise ParameterError(f"node {node!r} is not in this mesh, which has {self._nodes_text()}")
        if self.nodes[node].is_alive:
            raise ParameterError(f"node {node} is running; kill it first")
        process = self.nodes[node] = MeshProcess(self._addresses[node], self.settings)
        process.await_start()
        commands: list[tuple[int, str, dict[str, Any]]] = [
            (a, "link", {"to": self._addresses[b]}) for a, b in self.pairs() if a == node
        ]
        commands += [(node, "subscribe", {"topics": list(topics)}) for topics in self._subscriptions_of(node)]
        self._send_commands(commands)

    def find_critical_node(self, publisher: int) -> int:
        """Return the live node whose end would disconnect the most subscribers from a publisher.

        Nodes with a subscription are excluded. Among equals, the node with the most active links is returned. Raises
        ParameterError if all live nodes have a subscription or are the publisher, or if the publisher is not alive.
        """
        import networkx as nx

        active = nx.Graph([pair for pair, link in self.links().items() if link == "active"])
        active.add_nodes_from(self.alive)
        candidates = [node for node in self.alive if node != publisher and not self._subscriptions_of(node)]
        if not candidates or publisher not in active:
            raise ParameterError(
                f"the publisher, node {publisher}, is not alive, or each other live node has a subscription; "
                "restart the publisher, or end the subscriptions of a node"
            )
        sinks = {node for node in self.alive if self._subscriptions_of(node)}

        def measure_damage(node: int) -> tuple[int, int, int]:
            remaining = active.subgraph(set(active) - {node})
            return len(sinks - nx.node_connected_component(remaining, publisher)), active.degree(node), node

        return max(candidates, key=measure_damage)

    # State

    def state(self) -> dict[int, dict[str, Any]]:
        """Return {node: state} for all live nodes; a state is a dict with these keys:

        links           {neighbor: state of the link}
        told            {neighbor: number of bits set in the filter received from the neighbor}
        bits            number of bits set in the union of the filters of all subscriptions known to the node
        sent, received  numbers of datagrams
        drops           {reason: number of dropped messages and datagrams}
        """
        replies = self._send_commands([(node, "state", {}) for node in self.alive])
        nodes = {address: node for node, address in self._addresses.items()}
        states = {}
        for node, reply in replies:
            for name in ("links", "told"):
                reply[name] = {nodes[address]: value for address, value in reply[name].items() if address in nodes}
            states[node] = reply
        return states

    def links(self) -> dict[tuple[int, int], str]:
        """Return {(node, neighbor): state of the link}, the lower node first; `links_of` lists the states."""
        return links_of(self.state())

    def settle(self, within_s: float = 60.0) -> float:
        """Wait until all links between live nodes are established and nothing changes; return the seconds this took.

        Raises LinkError if this does not happen within ``within_s``.
        """
        begin_s = changed_s = time.perf_counter()
        last_summary: Any = None
        while time.perf_counter() < begin_s + within_s:
            state = self.state()
            now_s = time.perf_counter()
            summary = {node: (self._stable_links(reply["links"]), reply["bits"]) for node, reply in state.items()}
            if summary != last_summary:
                last_summary, changed_s = summary, now_s
            elif now_s - changed_s > _QUIET_S and self._is_linked(state):
                return changed_s - begin_s
            time.sleep(_POLL_S)
        raise LinkError(
            f"the mesh has not settled in {within_s:g} s: {self._describe_unsettled()}; "
            "on a busy machine pass a larger within_s"
        )

    def _is_linked(self, state: dict[int, dict[str, Any]]) -> bool:
        """Return whether all links between live nodes are active or muted, and no other link carries publications.

        ``state``: result of `state`.
        """
        links = links_of(state)
        expected = [pair for pair in self.pairs() if pair[0] in state and pair[1] in state]
        # Muted links carry no keep-alives, so their end to a dead node is not noticed and does not count.
        stale = [pair for pair in links if pair not in expected and self._carries_publications(pair, state)]
        return not stale and all(links.get(pair) in ("active", "muted") for pair in expected)

    def _describe_unsettled(self) -> str:
        """Return the reason why the mesh has not settled, as part of a sentence."""
        unfinished = [f"{a}-{b} {link}" for (a, b), link in self.links().items() if link not in ("active", "muted")]
        return f"its links include {', '.join(unfinished[:4])}" if unfinished else "filters or links keep changing"

    def _carries_publications(self, pair: tuple[int, int], state: dict[int, dict[str, Any]]) -> bool:
        """Return whether at least one end of a link sends publications over it, or will soon."""
        link_states = [state[a]["links"].get(b) for a, b in (pair, pair[::-1]) if a in state]
        return any(link in ("active", "unmuting") for link in link_states)

    def _stable_links(self, links: dict[int, str]) -> dict[int, str]:
        """Return {neighbor: state} of a node's ``links`` without requests to dead nodes, which are repeated forever."""
        return {peer: link for peer, link in links.items() if link != "linking" or self.nodes[peer].is_alive}

    def _live_process(self, node: int) -> MeshProcess:
        """Return the process of a node. Raises ParameterError if the node is not alive."""
        process = self.nodes.get(node)
        if process is None or not process.is_alive:
            raise ParameterError(f"node {node!r} is not alive; this mesh has {self._nodes_text()}")
        return process

    def _nodes_text(self) -> str:
        numbers = f"nodes {min(self.nodes)} to {max(self.nodes)}" if self.nodes else "no nodes"
        return f"{numbers}, {len(self.alive)} of them alive"

    def _send_commands(self, commands: Sequence[tuple[int, str, dict[str, Any]]]) -> list[tuple[int, dict[str, Any]]]:
        """Send commands (node, action, arguments) to nodes at once; return (node, reply) for each, in this order."""
        for node, action, arguments in commands:
            self.nodes[node].send_command(action, **arguments)
        return [(node, self.nodes[node].receive_reply()) for node, _, _ in commands]


def links_of(state: dict[int, dict[str, Any]]) -> dict[tuple[int, int], str]:
    """Return {(node, neighbor): state of the link}, the lower node first; ``state`` is the result of `DPSMesh.state`.

    A link is "muted" if at least one end reports "muted", and "active" if both ends report "active". It is "half open"
    if one end reports "active" and the other end does not report the link. Otherwise its state is the first state
    except "active" that an end reports.
    """
    end_states: dict[tuple[int, int], list[str]] = {}
    for node, reply in state.items():
        for peer, link in reply["links"].items():
            end_states.setdefault((min(node, peer), max(node, peer)), []).append(link)
    return {pair: _link_state(states) for pair, states in sorted(end_states.items())}


def _link_state(end_states: list[str]) -> str:
    if "muted" in end_states:
        return "muted"
    if end_states == ["active", "active"]:
        return "active"
    return next((link for link in end_states if link != "active"), "half open")


def dps_mesh(nodes: int | nx.Graph = 25, **settings: Any) -> DPSMesh:
    """Create a mesh of DPS processes on loopback; ``with`` starts and ends them.

    ``nodes`` is the number of nodes, for a grid that is as square as possible, or a topology with its links.
    ``settings`` are parameters of `workbench.DPS`, with the timers `TIMERS` as defaults. Raises ParameterError for more
    than 200 nodes.
    """
    from workbench.protocols.dps import DPS

    DPS(**{**TIMERS, **settings})  # Raises an error for a wrong setting before any process starts.
    node_count = nodes if isinstance(nodes, int) else len(nodes)
    if not 1 <= node_count <= MOST_NODES:
        raise ParameterError(f"dps_mesh: {node_count} nodes; 1 to {MOST_NODES} are allowed, since each is a process")
    return DPSMesh(_square_grid(nodes) if isinstance(nodes, int) else nodes, settings)


def _square_grid(nodes: int) -> nx.Graph:
    from workbench import topology

    columns = math.ceil(math.sqrt(nodes))
    graph = topology.grid(math.ceil(nodes / columns), columns)
    graph.remove_nodes_from([node for node in list(graph) if node >= nodes])
    return graph
