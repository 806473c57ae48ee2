"""A protocol for tests of the kernel and the radio: it sends frames as the workload requests, and forwards none.

``say(at=1, to=2, size=50)`` is a publication: a frame of 50 bytes from node 1 to node 2; without ``to``, to everybody.
``delay_s`` has the node wait so long before it sends.
"""

import struct

import networkx as nx

import workbench as wb
from workbench.attributes.text import parse
from workbench.protocols.contract import NOBODY, Held, Node
from workbench.protocols.protocol import Protocol
from workbench.protocols.subscriptions import Subscription

TARGET, INSTANCE, TIME = (parse(f"{key} IS 1")[0].key for key in ("TARGET", "INSTANCE", "TIME"))


def say(at, to=None, size=50, delay_s=0, count=1, **times):
    """Return a workload item that sends ``count`` frames at once."""
    target = "" if to is None else f", TARGET IS {to}"
    return wb.publish(at, f"INSTANCE IS {size}, TIME IS {delay_s}, INTENSITY IS {count}{target}", **times)


def describe(frame, broadcast=True):
    return "talk", *struct.unpack_from("<HI", frame)


class TalkerNode(Node):
    describe = staticmethod(describe)

    def __init__(self, address, settings, random):
        Node.__init__(self, address, settings, random)
        self.sent_count = 0
        self.later = []
        self.link_qualities = {}

    def subscribe(self, attributes, now, expires_s=None, match_all=False):
        return Subscription(self, attributes, now, expires_s, match_all)

    def unsubscribe(self, subscription, now):
        pass

    def publish(self, attributes, now, payload=b""):
        values = {attribute.key: attribute.value for attribute in attributes}
        size, delay_s, count = (attribute.value for attribute in attributes[:3])
        for _ in range(count):
            frame = struct.pack("<HI", self.address, self.sent_count).ljust(size, b"\0")
            self.sent_count += 1
            if delay_s:
                self.later.append((values.get(TARGET), frame))
                self.next_wake = now + delay_s * 1_000_000
            else:
                self.outbox.append((values.get(TARGET), frame))
        return self.sent_count - 1

    def wake(self, now):
        self.outbox += self.later
        self.later = []
        self.next_wake = None

    def receive(self, frame, previous_hop, now, broadcast=True):
        origin, sequence = struct.unpack_from("<HI", frame)
        self.events.append(Held(previous_hop, "talk", origin, sequence, 1 if broadcast else 0, ""))

    def link_quality(self, neighbor, inbound, outbound, now):
        self.link_qualities[neighbor] = (inbound, outbound)
        self.events.append(Held(neighbor, "quality", NOBODY, 0, round(1000 * inbound), str(outbound)))


class Talker(Protocol):
    node = TalkerNode


def network(*arcs):
    """Return a topology of directed arcs (transmitter, receiver) or (transmitter, receiver, pdr)."""
    graph = nx.DiGraph()
    graph.add_edges_from((arc[0], arc[1], {"pdr": arc[2] if len(arc) > 2 else 1.0}) for arc in arcs)
    nx.set_node_attributes(graph, {node: (10.0 * node, 0.0) for node in graph}, "pos")
    return graph


def both_directions(*links):
    """Return a topology as `network` does, with each link in both directions."""
    return network(*(arc for a, b, *pdr in links for arc in ((a, b, *pdr), (b, a, *pdr))))


def play(topology, workload, seed=1, duration_s=10, protocol=None, **radio):
    """Return the run of a workload of `say` and other items, without jitter by default."""
    radio = wb.Radio(**{"jitter_ms": 0, **radio})
    return wb.Scenario(topology, protocol or Talker(), workload, radio, duration_s, seed).run()


def rows(run, *events, **where):
    """Return the rows of a trace with this event and these values, as dictionaries."""
    return [
        row
        for row in run.trace.to_pylist()
        if (not events or row["event"] in events) and all(row[name] == value for name, value in where.items())
    ]


def starts_us(run, **where):
    """Return the start times of the frames that were sent."""
    return [row["time_us"] - row["value"] for row in rows(run, "sent", **where)]


def fates(run, node):
    """Return {(origin, sequence): "received" or the reason of the loss} of the frames within range of a node."""
    return {
        (row["origin"], row["sequence"]): row["detail"] or row["event"]
        for row in rows(run, "received", "lost", node=node)
    }
