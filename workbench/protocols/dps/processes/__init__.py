"""A mesh of DPS nodes as processes on this machine's loopback interface, from a notebook or a script.

    with wb.dps_mesh(25) as mesh:                      a grid of 5 x 5
        mesh.settle()
        mesh.subscribe(24, "house/+/temp")
        mesh.settle()
        mesh.publish(0, "house/kitchen/temp", "21.5")  -> Outcome: who was to get it, who has answered, how fast
        mesh.kill(12)                                  kill -9
        mesh.restart(12)

Theory of operation
    Each node is a process of its own (`node.py`), bound to 127.0.0.1 and a free port, which is told over its standard
    input what to do. Links are those of a topology; the lower node asks. Timers are shorter than the reference's, as
    nobody wants to wait half a minute for a lost link; were they shorter still, a busy machine would lose links that
    are alive.

    Leaving the ``with`` ends all processes, whatever happened: their input is closed, which they take for the end, and
    who has not ended then is killed. If the process that started them is itself killed, their input ends too.

Cost
    A process takes some 0.2 s of processor time to start and 30 MB.

Limits
    A publication goes over a link once: one that is published while a link is lost may not arrive, and `publish` says
    whom it has not heard of. `settle` waits until nothing changes any more, which on a loaded machine takes longer.
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
_LOOK_S = 0.02
_QUIET_S = 1.2  # four update periods without a change


class Outcome(NamedTuple):
    """What came of a publication. wanted: nodes with a matching subscription; answers: node -> ms until its answer.

    A subscription to a wildcard alone, of which no neighbor is told, is only wanted at the publisher's own node.
    """

    publisher: int
    topic: str
    wanted: tuple[int, ...]
    answers: dict[int, float]

    @property
    def missing(self) -> tuple[int, ...]:
        """Nodes that should have answered and have not."""
        return tuple(node for node in self.wanted if node not in self.answers)


class MeshProcess:
    """The process of one node, which runs `node.py`.

    Orders go to its standard input; each gets a reply, in order. A thread keeps its other lines as they come.
    """

    def __init__(self, listen: str, settings: dict[str, Any]) -> None:
        command = [sys.executable, "-m", "workbench.protocols.dps.processes.node", listen, json.dumps(settings)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.address = ""
        self.publications: list[dict[str, Any]] = []
        self.read = 0  # of the publications, by who follows the mesh
        self.answers: dict[int, list[tuple[float, str]]] = {}  # to which order: (when, of whom)
        self._replies: Queue[dict[str, Any]] = Queue()
        self._ids = itertools.count(1)
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self.process.poll() is None

    def _read(self) -> None:
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
        """Wait until it listens; LinkError if it does not."""
        line = self._reply(_START_S)
        if line.get("event") != "listening":
            raise LinkError(f"a node of the mesh has not started: {line.get('error', 'its process has ended')}")
        self.address = line["address"]

    def give(self, do: str, **order: Any) -> int:
        """Give an order, without waiting for its reply; returns its number."""
        number = next(self._ids)
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps({"id": number, "do": do, **order}) + "\n")
            self.process.stdin.flush()
        except OSError:
            raise LinkError(f"the node at {self.address} has ended, and cannot be told to {do}") from None
        return number

    def take(self) -> dict[str, Any]:
        """The reply to the oldest order that has had none; LinkError if it says that it could not."""
        line = self._reply(_ANSWER_S)
        if "error" in line:
            raise LinkError(f"the node at {self.address}: {line['error']}")
        if line.get("event") == "ended":
            raise LinkError(f"the node at {self.address} has ended")
        return line

    def _reply(self, within_s: float) -> dict[str, Any]:
        try:
            return self._replies.get(timeout=within_s)
        except Empty:
            where = self.address or "a new address"
            raise LinkError(f"the node at {where} has not answered in {within_s:g} s; is the machine busy?") from None

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self._close()

    def end(self, within_s: float) -> None:
        """Close its input and let it end; kill it if it does not."""
        if self.process.stdin is not None and not self.process.stdin.closed:
            with suppress(OSError):  # what is not written yet has nowhere to go
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
    """Processes by node number; made by `dps_mesh`, entered with ``with``. graph: the topology that it is linked by."""

    def __init__(self, graph: nx.Graph, settings: dict[str, Any]) -> None:
        self.graph = graph
        self.settings = {**TIMERS, **settings}
        self.nodes: dict[int, MeshProcess] = {}
        self.subscriptions: dict[int, list[tuple[str, ...]]] = {}
        self._addresses: dict[int, str] = {}

    # Beginning and end

    def __enter__(self) -> DPSMesh:
        try:
            for node in sorted(self.graph):
                self.nodes[node] = MeshProcess("127.0.0.1:0", self.settings)
            for node, process in self.nodes.items():
                process.await_start()
                self._addresses[node] = process.address
            self._each([(a, "link", {"to": self._addresses[b]}) for a, b in self.pairs()])
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all processes; nothing if they have ended."""
        nodes, self.nodes = self.nodes, {}
        for process in nodes.values():
            if process.process.stdin is not None:
                with suppress(OSError):
                    process.process.stdin.close()  # to all first: they end at the same time
        end_s = time.perf_counter() + _END_S
        for process in nodes.values():
            process.end(end_s - time.perf_counter())

    def pairs(self) -> list[tuple[int, int]]:
        """The links of the topology, the lower node first."""
        return sorted({(min(a, b), max(a, b)) for a, b in self.graph.edges if a != b})

    @property
    def filter_bits(self) -> int:
        """The length of filters in this mesh."""
        return int(self.settings.get("filter_bits", LENGTH))

    @property
    def alive(self) -> list[int]:
        """The nodes whose processes run, ascending."""
        return [node for node, process in sorted(self.nodes.items()) if process.is_alive]

    # What nodes do

    def subscribe(self, node: int, *topics: str) -> None:
        """Have a node ask for what matches all these topics. LinkError if it refuses, or has ended."""
        process = self._process(node)
        process.give("subscribe", topics=list(topics))
        process.take()
        self.subscriptions.setdefault(node, []).append(topics)

    def publish(self, node: int, topic: str, text: str = "", ttl_s: int = 0, within_s: float = 5.0) -> Outcome:
        """Publish at a node, and wait until all live nodes that asked for it have acknowledged, or ``within_s``.

        What those that have acknowledged were given is then among their ``publications``.
        """
        process = self._process(node)
        wanted = tuple(one for one in self.alive if self._is_sent(topic, one, one == node))
        begin_s = time.perf_counter()
        number = process.give("publish", topics=[topic], text=text, ttl_s=ttl_s, acknowledge=True)
        process.take()
        while time.perf_counter() < begin_s + within_s:
            if set(wanted) <= self._answered(process, number, begin_s).keys():
                break
            time.sleep(0.002)
        answers = self._answered(process, number, begin_s)
        # Each process has a reader of its own: the publisher's may be ahead of the subscribers'.
        self._each([(one, "catch_up", {}) for one in answers if self.nodes[one].is_alive])
        return Outcome(node, topic, wanted, answers)

    # For `wb.pipelines.stream`: what the subscriptions were given, until the mesh is closed

    lost = 0  # all publications are kept

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come: the mesh is closed."""
        return not self.nodes

    def next_reading(self, timeout_s: float) -> dict[str, Any] | None:
        """A publication that a node was given as `application.reading_of` has it, with that node as the sink.

        None if none has come within ``timeout_s``.
        """
        end_s = time.perf_counter() + timeout_s
        while True:
            for node, process in list(self.nodes.items()):
                if process.read < len(process.publications):
                    process.read += 1
                    line = process.publications[process.read - 1]
                    fields = [line[name] for name in ("topics", "text", "series", "sequence", "at_s")]
                    return {**reading_of(*fields), "sink": node}
            if time.perf_counter() >= end_s:
                return None
            time.sleep(_LOOK_S)

    def _is_sent(self, topic: str, node: int, is_here: bool) -> bool:
        """Whether a node has asked for a topic, and its neighbors for it: a wildcard alone asks them for nothing."""
        separators = self.settings.get("separators", topic_strings.SEPARATORS)
        return any(
            topic_strings.matches([topic], asked, separators)
            and (is_here or any(topic_strings.subscription_items(one, separators) for one in asked))
            for asked in self._asked(node)
        )

    def _asked(self, node: int) -> list[tuple[str, ...]]:
        return self.subscriptions.get(node, [])

    def _answered(self, process: MeshProcess, number: int, begin_s: float) -> dict[int, float]:
        nodes = {address: node for node, address in self._addresses.items()}
        answers: dict[int, float] = {}
        for at_s, sender in list(process.answers.get(number, ())):
            if sender in nodes:
                answers.setdefault(nodes[sender], round((at_s - begin_s) * 1000, 2))
        return answers

    def kill(self, node: int) -> None:
        """Kill a node's process with SIGKILL: it tells nobody."""
        self._process(node).kill()

    def restart(self, node: int) -> None:
        """Start a node again that has ended, at its old address; its links and subscriptions are made anew."""
        if node not in self.nodes:
            raise ParameterError(f"there is no node {node!r} in this mesh")
        if self.nodes[node].is_alive:
            raise ParameterError(f"node {node} runs; kill it first")
        process = self.nodes[node] = MeshProcess(self._addresses[node], self.settings)
        process.await_start()
        orders: list[tuple[int, str, dict[str, Any]]] = [
            (a, "link", {"to": self._addresses[b]}) for a, b in self.pairs() if a == node
        ]
        orders += [(node, "subscribe", {"topics": list(topics)}) for topics in self._asked(node)]
        self._each(orders)

    def needed_most(self, publisher: int) -> int:
        """The live node without a subscription whose end would cut most subscribers off a publisher, for a while.

        Of those that cut off as many, the one with most active links. ParameterError if there is no such node.
        """
        import networkx as nx

        active = nx.Graph([pair for pair, link in self.links().items() if link == "active"])
        active.add_nodes_from(self.alive)
        others = [node for node in self.alive if node != publisher and not self._asked(node)]
        if not others or publisher not in active:
            raise ParameterError(f"there is no live node between node {publisher} and others that could be spared")
        sinks = {node for node in self.alive if self._asked(node)}

        def harm(node: int) -> tuple[int, int, int]:
            rest = active.subgraph(set(active) - {node})
            return len(sinks - nx.node_connected_component(rest, publisher)), active.degree(node), node

        return max(others, key=harm)

    # How it stands

    def state(self) -> dict[int, dict[str, Any]]:
        """Live nodes -> what they say.

        links (neighbor -> state), told (neighbor -> bits set in its filter), bits (of all that is asked for), sent and
        received (datagrams), drops (reason -> number).
        """
        replies = self._each([(node, "state", {}) for node in self.alive])
        nodes = {address: node for node, address in self._addresses.items()}
        states = {}
        for node, reply in replies:
            for name in ("links", "told"):
                reply[name] = {nodes[address]: said for address, said in reply[name].items() if address in nodes}
            states[node] = reply
        return states

    def links(self) -> dict[tuple[int, int], str]:
        """(node, neighbor), the lower first -> active, muted, or what the link is on its way from."""
        return links_of(self.state())

    def settle(self, within_s: float = 60.0) -> float:
        """Wait until all links between live nodes stand and nothing changes; returns the seconds it took.

        LinkError if that does not come about.
        """
        begin_s = changed_s = time.perf_counter()
        last: Any = None
        while time.perf_counter() < begin_s + within_s:
            state = self.state()
            now_s = time.perf_counter()
            picture = {node: (self._standing(one["links"]), one["bits"]) for node, one in state.items()}
            if picture != last:
                last, changed_s = picture, now_s
            elif now_s - changed_s > _QUIET_S and self._stands(state):
                return changed_s - begin_s
            time.sleep(_POLL_S)
        raise LinkError(f"the mesh has not settled in {within_s:g} s: {self._unsettled()}; is the machine busy?")

    def _stands(self, state: dict[int, dict[str, Any]]) -> bool:
        links = links_of(state)
        due = [pair for pair in self.pairs() if pair[0] in state and pair[1] in state]
        # That a node is dead is noticed where it counts: over a muted link nobody gives signs of life.
        left_behind = [pair for pair in links if pair not in due and self._carries(pair, state)]
        return not left_behind and all(links.get(pair) in ("active", "muted") for pair in due)

    def _unsettled(self) -> str:
        """What keeps the mesh from having settled, in some words."""
        unfinished = [f"{a}-{b} {link}" for (a, b), link in self.links().items() if link not in ("active", "muted")]
        return f"of its links {', '.join(unfinished[:4])}" if unfinished else "filters or links go on changing"

    def _carries(self, pair: tuple[int, int], state: dict[int, dict[str, Any]]) -> bool:
        """Whether one end of a link takes it for one that carries publications, or will."""
        said = [state[a]["links"].get(b) for a, b in (pair, pair[::-1]) if a in state]
        return any(link in ("active", "unmuting") for link in said)

    def _standing(self, links: dict[int, str]) -> dict[int, str]:
        """Links but those to dead nodes that are asked for in vain, again and again."""
        return {peer: link for peer, link in links.items() if link != "linking" or self.nodes[peer].is_alive}

    def _process(self, node: int) -> MeshProcess:
        process = self.nodes.get(node)
        if process is None or not process.is_alive:
            here = f"nodes {min(self.nodes)} to {max(self.nodes)}" if self.nodes else "no nodes"
            raise ParameterError(f"node {node!r} is not alive; this mesh has {here}, of which {len(self.alive)} live")
        return process

    def _each(self, orders: Sequence[tuple[int, str, dict[str, Any]]]) -> list[tuple[int, dict[str, Any]]]:
        """Give orders to many nodes at once, then take their replies in the same order."""
        for node, do, order in orders:
            self.nodes[node].give(do, **order)
        return [(node, self.nodes[node].take()) for node, _, _ in orders]


def links_of(state: dict[int, dict[str, Any]]) -> dict[tuple[int, int], str]:
    """(node, neighbor) -> what both ends say, out of `DPSMesh.state`.

    Muted if one says so, active if both do; a link of which one end alone has an idea is as that says, or half open.
    """
    seen: dict[tuple[int, int], list[str]] = {}
    for node, one in state.items():
        for peer, link in one["links"].items():
            seen.setdefault((min(node, peer), max(node, peer)), []).append(link)
    return {pair: _both_ends(said) for pair, said in sorted(seen.items())}


def _both_ends(said: list[str]) -> str:
    if "muted" in said:
        return "muted"
    if said == ["active", "active"]:
        return "active"
    return next((link for link in said if link != "active"), "half open")


def dps_mesh(nodes: int | nx.Graph = 25, **settings: Any) -> DPSMesh:
    """A mesh of processes on loopback, to be entered with ``with``.

    ``nodes``: how many, in a grid that is as square as can be, or a topology with its links. ``settings``: parameters
    of `workbench.DPS`; timers are `TIMERS` unless they are given. ParameterError for more than 200 nodes.
    """
    from workbench.protocols.dps import DPS

    DPS(**{**TIMERS, **settings})  # It says what is wrong with a setting, before anything starts.
    number = nodes if isinstance(nodes, int) else len(nodes)
    if not 1 <= number <= MOST_NODES:
        raise ParameterError(f"dps_mesh: {number} nodes; there may be 1 to {MOST_NODES}, each is a process")
    return DPSMesh(_square(nodes) if isinstance(nodes, int) else nodes, settings)


def _square(nodes: int) -> nx.Graph:
    from workbench import topology

    columns = math.ceil(math.sqrt(nodes))
    graph = topology.grid(math.ceil(nodes / columns), columns)
    graph.remove_nodes_from([node for node in list(graph) if node >= nodes])
    return graph
