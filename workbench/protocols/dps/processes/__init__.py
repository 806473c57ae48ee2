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

    A process ends when its standard input is closed. Leaving the ``with`` closes the input of all processes, and kills
    those that have not ended soon after. If the process that started them is killed, the operating system closes their
    input, so they end too.

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

    wanted   live nodes that should receive the publication. Neighbors get no subscription to ``+`` or ``#`` alone, so a
             node that has only such subscriptions is listed only if it is the publisher itself
    answers  {node: milliseconds from the publication until the node's acknowledgement arrived}
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
    """A process that runs one node (`node.py`), as its `DPSMesh` sees it.

    `DPSMesh` writes commands to the standard input of the process. The process replies to the commands in their order.
    A thread reads and stores the output of the process: replies, received publications and acknowledgements.
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
        """True if the process is running."""
        return self.process.poll() is None

    def _read_output(self) -> None:
        """Read the process's output until it ends, and store its publications, acknowledgements and replies.

        A thread runs this method.
        """
        assert self.process.stdout is not None
        for line_text in self.process.stdout:
            output_message = json.loads(line_text)
            event_name = output_message.get("event")
            if event_name == "publication":
                self.publications.append({**output_message, "at_s": now_s()})
            elif event_name == "answer":
                self.answers.setdefault(output_message["to"], []).append(
                    (time.perf_counter(), output_message["sender"])
                )
            else:
                self._replies.put(output_message)
        self._replies.put({"event": "ended"})

    def await_start(self) -> None:
        """Wait until the process's node listens on its address. Raises LinkError if it does not start."""
        first_message = self._await_reply(_START_S)
        if first_message.get("event") != "listening":
            raise LinkError(f"a node of the mesh did not start: {first_message.get('error', 'its process has ended')}")
        self.address = first_message["address"]

    def send_command(self, action: str, **arguments: Any) -> int:
        """Send the process a command without waiting for its reply; return the command's number.

        ``action``: a command of `node.py`, such as "subscribe"; ``arguments``: the fields of the command.
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
        reply = self._await_reply(_ANSWER_S)
        if "error" in reply:
            raise LinkError(f"the node at {self.address} reports an error: {reply['error']}")
        if reply.get("event") == "ended":
            raise LinkError(f"the node at {self.address} ended without a reply; restart it first")
        return reply

    def _await_reply(self, within_s: float) -> dict[str, Any]:
        """Return the process's next message as a dict: a reply to a command, or the event "listening" or "ended".

        Raises LinkError if no such message comes within ``within_s`` seconds.
        """
        try:
            return self._replies.get(timeout=within_s)
        except Empty:
            address = self.address or "a new address"
            raise LinkError(
                f"the node at {address} has not answered within {within_s:g} s; try again with fewer nodes or when the "
                "machine is less busy"
            ) from None

    def kill(self) -> None:
        """Kill the process with SIGKILL."""
        self.process.kill()
        self._close()

    def end(self, within_s: float) -> None:
        """Close the input of the process; if the process does not end within ``within_s`` seconds, kill it."""
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
            self._send_commands(
                [(requester, "link", {"to": self._addresses[neighbor]}) for requester, neighbor in self.pairs()]
            )
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all processes. Do nothing if they have ended."""
        processes, self.nodes = self.nodes, {}
        for process in processes.values():
            if process.process.stdin is not None:
                with suppress(OSError):
                    process.process.stdin.close()  # of all processes first, so that they end in parallel
        end_s = time.perf_counter() + _END_S
        for process in processes.values():
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
        """Publish a text on a topic from a node, and return the outcome.

        The call returns when all live subscribers have acknowledged the publication, or after ``within_s`` seconds. For
        each node that has acknowledged it, ``nodes[node].publications`` then contains the publication.
        """
        process = self._live_process(node)
        expected_subscribers = tuple(
            subscriber for subscriber in self.alive if self._subscribes(topic, subscriber, subscriber == node)
        )
        begin_s = time.perf_counter()
        command_number = process.send_command("publish", topics=[topic], text=text, ttl_s=ttl_s, acknowledge=True)
        process.receive_reply()
        while time.perf_counter() < begin_s + within_s:
            if set(expected_subscribers) <= self._answer_times_ms(process, command_number, begin_s).keys():
                break
            time.sleep(0.002)
        answer_times_ms = self._answer_times_ms(process, command_number, begin_s)
        # Each process has its own reader thread; a subscriber's thread may be slower than the publisher's thread.
        self._send_commands(
            [(subscriber, "catch_up", {}) for subscriber in answer_times_ms if self.nodes[subscriber].is_alive]
        )
        return Outcome(node, topic, expected_subscribers, answer_times_ms)

    # For `wb.pipelines.stream`: the publications that subscriptions received, until the mesh is closed

    lost = 0  # number of lost readings: always 0, as all publications are stored

    @property
    def is_over(self) -> bool:
        """True if the mesh is closed."""
        return not self.nodes

    def next_reading(self, timeout_s: float) -> dict[str, Any] | None:
        """Return the next received publication as a reading, or None if no publication arrives within ``timeout_s``.

        The reading is a dict with the fields of `dps.udp.application.reading_of`, and ``sink``, the node that received
        the publication.
        """
        end_s = time.perf_counter() + timeout_s
        while True:
            for receiving_node, process in list(self.nodes.items()):
                if process.read_count < len(process.publications):
                    process.read_count += 1
                    received_publication = process.publications[process.read_count - 1]
                    field_values = [
                        received_publication[field_name]
                        for field_name in ("topics", "text", "series", "sequence", "at_s")
                    ]
                    return {**reading_of(*field_values), "sink": receiving_node}
            if time.perf_counter() >= end_s:
                return None
            time.sleep(_READING_POLL_S)

    def _subscribes(self, topic: str, node: int, is_publisher: bool) -> bool:
        """Return whether a node has a subscription that should receive publications on a topic.

        ``is_publisher``: whether ``node`` itself publishes on the topic. A subscription to ``+`` or ``#`` alone is not
        sent to neighbors, so it receives only publications of its own node.
        """
        separators = self.settings.get("separators", topic_strings.SEPARATORS)
        return any(
            topic_strings.matches([topic], topics, separators)
            and (
                is_publisher
                or any(topic_strings.subscription_items(subscribed_topic, separators) for subscribed_topic in topics)
            )
            for topics in self._subscriptions_of(node)
        )

    def _subscriptions_of(self, node: int) -> list[tuple[str, ...]]:
        return self.subscriptions.get(node, [])

    def _answer_times_ms(self, process: MeshProcess, command_number: int, begin_s: float) -> dict[int, float]:
        """Return {node: milliseconds from ``begin_s`` to the node's first acknowledgement} of a publication.

        ``process``: the publisher's process. ``command_number``: number of the "publish" command. ``begin_s``: time at
        which the command was sent, on the clock `time.perf_counter`.
        """
        nodes_by_address = {address: node for node, address in self._addresses.items()}
        answer_times_ms: dict[int, float] = {}
        for at_s, sender_address in list(process.answers.get(command_number, ())):
            if sender_address in nodes_by_address:
                answer_times_ms.setdefault(nodes_by_address[sender_address], round((at_s - begin_s) * 1000, 2))
        return answer_times_ms

    def kill(self, node: int) -> None:
        """Kill a node's process with SIGKILL, so that it cannot end its links."""
        self._live_process(node).kill()

    def restart(self, node: int) -> None:
        """Start a new process for a node that has ended, with the same address, links and subscriptions."""
        if node not in self.nodes:
            raise ParameterError(f"node {node!r} is not in this mesh, which has {self._nodes_text()}")
        if self.nodes[node].is_alive:
            raise ParameterError(f"node {node} is running; kill it first")
        process = self.nodes[node] = MeshProcess(self._addresses[node], self.settings)
        process.await_start()
        commands: list[tuple[int, str, dict[str, Any]]] = [
            (requester, "link", {"to": self._addresses[neighbor]})
            for requester, neighbor in self.pairs()
            if requester == node
        ]
        commands += [(node, "subscribe", {"topics": list(topics)}) for topics in self._subscriptions_of(node)]
        self._send_commands(commands)

    def find_critical_node(self, publisher: int) -> int:
        """Return the live node whose failure would disconnect the most subscribers from a publisher.

        Nodes with a subscription are excluded. Among equals, the node with the most active links is returned. Raises
        ParameterError if all live nodes have a subscription or are the publisher, or if the publisher is not alive.
        """
        import networkx as nx

        active_graph = nx.Graph([node_pair for node_pair, link_state in self.links().items() if link_state == "active"])
        active_graph.add_nodes_from(self.alive)
        candidates = [node for node in self.alive if node != publisher and not self._subscriptions_of(node)]
        if publisher not in active_graph:
            raise ParameterError(f"the publisher, node {publisher}, is not alive; restart it first")
        if not candidates:
            raise ParameterError(
                f"every live node except the publisher, node {publisher}, has a subscription; use a mesh in which "
                "another live node has no subscription"
            )
        subscriber_nodes = {node for node in self.alive if self._subscriptions_of(node)}

        def measure_damage(node: int) -> tuple[int, int, int]:
            remaining_graph = active_graph.subgraph(set(active_graph) - {node})
            return (
                len(subscriber_nodes - nx.node_connected_component(remaining_graph, publisher)),
                active_graph.degree(node),
                node,
            )

        return max(candidates, key=measure_damage)

    # State

    def state(self) -> dict[int, dict[str, Any]]:
        """Return {node: state} for all live nodes; a state is a dict with these keys:

        links           {neighbor: state of the link, such as "active"}
        told            {neighbor: number of bits set in the filter received from the neighbor}
        bits            number of bits set in the union of these filters and those of the node's own subscriptions
        sent, received  number of datagrams that the node sent, and that it received
        drops           {reason: number of dropped messages and datagrams}
        """
        replies = self._send_commands([(node, "state", {}) for node in self.alive])
        nodes_by_address = {address: node for node, address in self._addresses.items()}
        states = {}
        for node, reply in replies:
            for reply_key in ("links", "told"):
                reply[reply_key] = {
                    nodes_by_address[address]: neighbor_value
                    for address, neighbor_value in reply[reply_key].items()
                    if address in nodes_by_address
                }
            states[node] = reply
        return states

    def links(self) -> dict[tuple[int, int], str]:
        """Return {(node, node): state of their link}, lower node number first; `links_of` lists the possible states."""
        return links_of(self.state())

    def settle(self, within_s: float = 60.0) -> float:
        """Wait until all links between live nodes are established and stay unchanged; return the seconds waited.

        Raises LinkError if the mesh has not settled after ``within_s`` seconds.
        """
        begin_s = changed_s = time.perf_counter()
        last_summary: Any = None
        while time.perf_counter() < begin_s + within_s:
            node_states = self.state()
            now_s = time.perf_counter()
            summary = {node: (self._stable_links(reply["links"]), reply["bits"]) for node, reply in node_states.items()}
            if summary != last_summary:
                last_summary, changed_s = summary, now_s
            elif now_s - changed_s > _QUIET_S and self._is_fully_linked(node_states):
                return changed_s - begin_s
            time.sleep(_POLL_S)
        raise LinkError(
            f"the mesh has not settled in {within_s:g} s: {self._describe_unsettled()}; "
            "on a busy machine pass a larger `within_s`"
        )

    def _is_fully_linked(self, state: dict[int, dict[str, Any]]) -> bool:
        """Return whether each link of the topology between live nodes is active or muted, and no other link is in use.

        Another link is in use if, for example, a live node still considers its link to a dead node active. ``state``:
        result of the method `state`.
        """
        link_states = links_of(state)
        expected_links = [pair for pair in self.pairs() if pair[0] in state and pair[1] in state]
        # Muted links carry no keep-alives, so their end to a dead node is not noticed and does not count.
        stale_links = [
            pair for pair in link_states if pair not in expected_links and self._carries_publications(pair, state)
        ]
        return not stale_links and all(link_states.get(pair) in ("active", "muted") for pair in expected_links)

    def _describe_unsettled(self) -> str:
        """Return the reason why the mesh has not settled (see `settle`), as a clause for an error message."""
        unsettled_links = [
            f"{a}-{b} ({link_state})"
            for (a, b), link_state in self.links().items()
            if link_state not in ("active", "muted")
        ]
        return (
            f"some links are neither active nor muted, such as {', '.join(unsettled_links[:4])}"
            if unsettled_links
            else "filters or links keep changing"
        )

    def _carries_publications(self, pair: tuple[int, int], state: dict[int, dict[str, Any]]) -> bool:
        """Return whether at least one live end of the link ``pair`` reports the state "active" or "unmuting".

        Such an end sends publications over the link, or will do so after the next answer. ``state``: result of the
        method `state`, which has no entry for dead nodes.
        """
        link_states = [state[a]["links"].get(b) for a, b in (pair, pair[::-1]) if a in state]
        return any(link_state in ("active", "unmuting") for link_state in link_states)

    def _stable_links(self, links: dict[int, str]) -> dict[int, str]:
        """Return ``links``, a node's {neighbor: state}, without the links that this node requests from dead nodes.

        The node repeats these requests forever, so the state of these links keeps changing.
        """
        return {
            neighbor: link_state
            for neighbor, link_state in links.items()
            if link_state != "linking" or self.nodes[neighbor].is_alive
        }

    def _live_process(self, node: int) -> MeshProcess:
        """Return the process of a node; raise ParameterError if the process is not running."""
        process = self.nodes.get(node)
        if process is None or not process.is_alive:
            raise ParameterError(f"node {node!r} is not alive; this mesh has {self._nodes_text()}")
        return process

    def _nodes_text(self) -> str:
        range_text = f"nodes {min(self.nodes)} to {max(self.nodes)}" if self.nodes else "no nodes"
        return f"{range_text}, {len(self.alive)} of them alive"

    def _send_commands(self, commands: Sequence[tuple[int, str, dict[str, Any]]]) -> list[tuple[int, dict[str, Any]]]:
        """Send all commands (node, action, arguments), then wait for the replies.

        Return [(node, reply), ...], in the order of the commands.
        """
        for node, action, arguments in commands:
            self.nodes[node].send_command(action, **arguments)
        return [(node, self.nodes[node].receive_reply()) for node, _, _ in commands]


def links_of(state: dict[int, dict[str, Any]]) -> dict[tuple[int, int], str]:
    """Return {(node, neighbor): state of the link}, the lower node first; ``state`` is the result of `DPSMesh.state`.

    A link is "muted" (closes a loop) if an end reports "muted", and "active" if both ends report "active". It is "half
    open" if one end reports "active" and the other end does not report the link. Otherwise the result is a state that
    one end reports, but not "active"; if the ends report two such states, that of the node that comes first in
    ``state``.
    """
    end_states: dict[tuple[int, int], list[str]] = {}
    for node, reply in state.items():
        for neighbor, link_state in reply["links"].items():
            end_states.setdefault((min(node, neighbor), max(node, neighbor)), []).append(link_state)
    return {pair: _combine_end_states(states_of_link) for pair, states_of_link in sorted(end_states.items())}


def _combine_end_states(end_states: list[str]) -> str:
    if "muted" in end_states:
        return "muted"
    if end_states == ["active", "active"]:
        return "active"
    return next((end_state for end_state in end_states if end_state != "active"), "half open")


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
        raise ParameterError(f"`nodes` gives {node_count} nodes; 1 to {MOST_NODES} are allowed (each is a process)")
    return DPSMesh(_square_grid(nodes) if isinstance(nodes, int) else nodes, settings)


def _square_grid(nodes: int) -> nx.Graph:
    from workbench import topology

    columns = math.ceil(math.sqrt(nodes))
    graph = topology.grid(math.ceil(nodes / columns), columns)
    graph.remove_nodes_from([grid_node for grid_node in list(graph) if grid_node >= nodes])
    return graph
