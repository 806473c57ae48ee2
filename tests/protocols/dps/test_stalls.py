"""A mesh on a busy machine: processes pause for seconds, datagrams are delayed or reordered, and one node dies.

Afterwards the mesh must be a single tree again, and every subscriber must get publications. Two errors that lasted for
ever are tested: a mesh id without an owner that circulated in a loop, and a silent link whose ends took different
interests as announced."""

import heapq
import itertools
import random

import pytest

from tests.families import family_except
from tests.network import SECOND
from workbench import draws
from workbench.protocols.dps import DPS
from workbench.protocols.dps.automaton import ACTIVE, GONE
from workbench.protocols.dps.events import LinkSet

SIDE = 5
MIDDLE = 12
SUBSCRIBERS = (4, 20, 24, 8, 17)
PUBLISHER = 0
RELINK_S = 0.3
ROUGH_S, CALM_S = 20, 8
LONGEST_WAIT_US = 3000  # longest delay of a datagram


class Machine:
    """A grid of nodes, each like a separate process. With `in_order`, datagrams of two nodes are not reordered."""

    def __init__(self, seed, in_order):
        self.draw = random.Random(seed)
        self.in_order = in_order
        self.now = 0
        self.stalls = 0.0  # probability that a process pauses when it is called
        self.longest_stall_s = 2.5
        self.agenda, self.numbers = [], itertools.count()
        self.nodes, self.subscriptions, self.busy_until, self.last_us = {}, {}, {}, {}
        for address in range(SIDE * SIDE):
            self.start(address)

    def start(self, address):
        """Start a node without memory, which requests links from the nodes above and to the left of it periodically."""
        protocol = DPS(update_s=0.2, link_loss_s=1.0)
        node = protocol.make_node(address, draws.Stream(draws.make_key(self.draw.randrange(1 << 30))))
        self.nodes[address], self.busy_until[address] = node, 0
        node.start(self.now, self.now)
        if address in SUBSCRIBERS:
            self.subscriptions[address] = node.subscribe_topics("news/+", self.now)
        for neighbor in self.asked(address):
            node.link(neighbor, self.now)
        self.collect(address)

    @staticmethod
    def asked(address):
        row, column = divmod(address, SIDE)
        return [address - SIDE] * (row > 0) + [address - 1] * (column > 0)

    def at(self, time_us, *action):
        heapq.heappush(self.agenda, (time_us, next(self.numbers), action))

    def collect(self, address):
        """Send the messages of a node, and schedule its next call."""
        node = self.nodes[address]
        for event in node.take_events():
            if isinstance(event, LinkSet) and event.value == GONE and event.peer in self.asked(address):
                after_us = int(RELINK_S * self.draw.uniform(0.5, 1.5) * SECOND)
                self.at(self.now + after_us, address, "link", node, event.peer)
        for to, frame in node.take_frames():
            due_us = self.now + self.draw.randint(100, LONGEST_WAIT_US)
            if self.in_order:
                due_us = self.last_us[address, to] = max(due_us, self.last_us.get((address, to), 0) + 1)
            self.at(due_us, to, "receive", frame, address)
        if node.next_wake is not None:
            self.at(max(node.next_wake, self.now), address, "wake", node, None)

    def run(self, seconds):
        """Let time pass."""
        end = self.now + int(seconds * SECOND)
        while self.agenda[0][0] <= end:
            due_us, _, action = heapq.heappop(self.agenda)
            self.now = max(self.now, due_us)
            address = action[0]
            if address not in self.nodes:
                continue
            if self.busy_until[address] <= self.now and self.draw.random() < self.stalls:
                self.busy_until[address] = self.now + int(self.draw.random() ** 2 * self.longest_stall_s * SECOND)
            if self.busy_until[address] > self.now:
                self.at(self.busy_until[address], *action)
            elif self.act(*action):
                self.collect(address)
        self.now = end

    def act(self, address, kind, about, peer):
        """Perform a due action, unless it belongs to an earlier life of the node."""
        node = self.nodes[address]
        if kind == "receive":
            node.receive(about, peer, self.now, False)
        elif about is not node:
            return False
        elif kind == "link":
            node.link(peer, self.now)
        elif node.next_wake is None or node.next_wake > self.now:
            return False
        else:
            node.wake(self.now)
        return True

    def deaf(self):
        """Return the subscribers that do not get a publication of this moment."""
        for subscription in self.subscriptions.values():
            list(subscription)
        self.nodes[PUBLISHER].publish_topics("news/now", b"", self.now)
        self.collect(PUBLISHER)
        self.run(0.5)
        return [address for address, subscription in self.subscriptions.items() if len(list(subscription)) != 1]

    def active(self):
        """Return the links that carry publications, as (node, neighbor) for each end."""
        return {
            (address, neighbor)
            for address, node in self.nodes.items()
            for neighbor, remote in node.links.remotes.items()
            if remote.state == ACTIVE
        }


# With these seeds an id without an owner remained, or a link was silent for ever, before the errors were corrected.
@pytest.mark.parametrize(
    ("seed", "in_order"), family_except([(12, False), (25, False), (45, False), (52, True)], (12, False))
)
def test_a_mesh_is_whole_soon_after_a_busy_period(seed, in_order):
    machine = Machine(seed, in_order)
    machine.stalls = 0.01
    machine.run(ROUGH_S)
    del machine.nodes[MIDDLE]
    machine.run(machine.draw.uniform(1, 4))
    machine.start(MIDDLE)
    machine.run(ROUGH_S)
    machine.stalls = 0.0
    machine.run(CALM_S)
    assert machine.deaf() == []
    active = machine.active()
    assert {(b, a) for a, b in active} == active
    assert len(active) == 2 * (SIDE * SIDE - 1)
