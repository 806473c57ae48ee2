"""A mesh on a busy machine: processes stand still for seconds, datagrams wait or overtake each other, one node dies.

When that is over the mesh is one tree again, and whoever subscribes hears what is published: nothing of what was
mistaken meanwhile stays. An id that nobody has may go round a loop for ever, and a link whose ends take different
interests for what was told is silent for ever; both did.
"""

import heapq
import itertools
import random

import pytest

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
LONGEST_WAIT_US = 3000  # of a datagram


class Machine:
    """A grid of nodes, each a process of its own. ``in_order``: datagrams of one node to another do not overtake."""

    def __init__(self, seed, in_order):
        self.draw = random.Random(seed)
        self.in_order = in_order
        self.now = 0
        self.stalls = 0.0  # how often a process stands still when it is its turn
        self.longest_stall_s = 2.5
        self.agenda, self.numbers = [], itertools.count()
        self.nodes, self.subscriptions, self.busy_until, self.last_us = {}, {}, {}, {}
        for address in range(SIDE * SIDE):
            self.start(address)

    def start(self, address):
        """A process without memory, which asks the nodes above it and to the left of it for links, again and again."""
        protocol = DPS(update_s=0.2, link_loss_s=1.0)
        node = protocol.make_node(address, draws.Stream(draws.make_key(self.draw.randrange(1 << 30))))
        self.nodes[address], self.busy_until[address] = node, 0
        node.start(self.now, self.now)
        if address in SUBSCRIBERS:
            self.subscriptions[address] = node.subscribe_topics("news/+", self.now)
        for other in self.asked(address):
            node.link(other, self.now)
        self.collect(address)

    @staticmethod
    def asked(address):
        row, column = divmod(address, SIDE)
        return [address - SIDE] * (row > 0) + [address - 1] * (column > 0)

    def at(self, time_us, *what):
        heapq.heappush(self.agenda, (time_us, next(self.numbers), what))

    def collect(self, address):
        """What a node sends, and when it is to be called again."""
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
            due_us, _, what = heapq.heappop(self.agenda)
            self.now = max(self.now, due_us)
            address = what[0]
            if address not in self.nodes:
                continue
            if self.busy_until[address] <= self.now and self.draw.random() < self.stalls:
                self.busy_until[address] = self.now + int(self.draw.random() ** 2 * self.longest_stall_s * SECOND)
            if self.busy_until[address] > self.now:
                self.at(self.busy_until[address], *what)
            elif self.act(*what):
                self.collect(address)
        self.now = end

    def act(self, address, what, about, peer):
        """Do what is due, if it is not of a life that has ended."""
        node = self.nodes[address]
        if what == "receive":
            node.receive(about, peer, self.now, False)
        elif about is not node:
            return False
        elif what == "link":
            node.link(peer, self.now)
        elif node.next_wake is None or node.next_wake > self.now:
            return False
        else:
            node.wake(self.now)
        return True

    def deaf(self):
        """The subscribers that do not hear what is published now."""
        for subscription in self.subscriptions.values():
            list(subscription)
        self.nodes[PUBLISHER].publish_topics("news/now", b"", self.now)
        self.collect(PUBLISHER)
        self.run(0.5)
        return [address for address, subscription in self.subscriptions.items() if len(list(subscription)) != 1]

    def active(self):
        """The links that carry publications, from each end."""
        return {
            (address, other)
            for address, node in self.nodes.items()
            for other, remote in node.links.remotes.items()
            if remote.state == ACTIVE
        }


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_what_a_busy_machine_breaks_is_whole_again_soon_after(seed, in_order):
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
    assert {(other, one) for one, other in active} == active
    assert len(active) == 2 * (SIDE * SIDE - 1)
