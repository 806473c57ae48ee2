"""DPS nodes that die and return, among strangers: ``benchmarks/dps_chaos.py [--rounds 20] [--nodes 25] [--seed 1]``.

The nodes use UDP on the loopback interface, each with its own socket, in one process. In each round some nodes are
killed: their sockets close without a message. Some return at once on the same port, some on another port, some after a
round. Strangers link to a node, use up its links and disappear. The program prints the time until no node stores an
interest of a dead node and each node receives the publications of all others, in units of ``link_loss_s``.
"""

import argparse
import asyncio
import random
import socket
import statistics
import time
from collections import deque

import workbench as wb
from workbench.protocols.dps import wire
from workbench.protocols.dps.bloom import BitVector
from workbench.protocols.dps.series import subscription_filter
from workbench.protocols.dps.udp import UDPNode

# In the proportions of the C implementation's; with shorter times a busy machine loses live links.
TIMERS = {"update_s": 0.1, "link_loss_s": 1.5, "relink_s": 0.5}
MOST_LINKS = 12
WITHIN_LOSSES = 3.0
_LINKS_AT_START = 3
_POLL_S = 0.1


class Chaos:
    """The nodes of a mesh, by address; ``seed`` determines which nodes fail and return, and when strangers link."""

    def __init__(self, seed: int, nodes: int) -> None:
        self.draw = random.Random(seed)
        self.count = nodes
        self.nodes: dict[str, UDPNode] = {}
        self.requested: dict[str, set[str]] = {}
        self.heard: dict[str, set[str]] = {}
        self.off = 0
        self.lives = 0
        self.filters: dict[str, BitVector] = {}

    async def begin(self) -> None:
        """Start all nodes."""
        for _ in range(self.count):
            await self.start()
        await self.connect()

    async def end(self) -> None:
        """Stop all nodes."""
        for address in list(self.nodes):
            self.kill(address)

    async def start(self, listen: str = "127.0.0.1:0") -> None:
        """Start a new node on the address ``listen``, with requests of links to some other nodes.

        It subscribes to the publications of all nodes, and to a topic that no earlier node had.
        """
        self.lives += 1
        node = wb.dps_node(listen, wb.DPS(max_links=MOST_LINKS, **TIMERS))
        await node.open()
        address, heard = str(node), set[str]()
        topics = ("all/+", f"life/{self.lives}")
        await node.subscribe(topics[0], handler=lambda publication: heard.add(publication.text))
        await node.subscribe(topics[1])
        others = self.draw.sample(list(self.nodes), min(_LINKS_AT_START, len(self.nodes)))
        self.nodes[address], self.heard[address], self.requested[address] = node, heard, set()
        self.filters[address] = BitVector(node.protocol.filter_bits)
        for topic in topics:
            self.filters[address] |= subscription_filter([topic], node.protocol)
        for other in others:
            await self.request_link(address, other)

    async def request_link(self, address: str, other: str) -> None:
        """Let a node request a link to another node, now and whenever the link is lost.

        Has no effect if the node already has MOST_LINKS links.
        """
        if len(self.nodes[address].links) < MOST_LINKS:
            self.requested[address].add(other)
            await self.nodes[address].keep_linked(other)

    def kill(self, address: str) -> None:
        """Close a node's socket without a message to its neighbors."""
        self.nodes.pop(address)._release_resources()
        del self.requested[address], self.heard[address], self.filters[address]

    async def connect(self) -> None:
        """Request enough links to join all live nodes to one mesh, as applications do when they join a network."""
        parts = self._find_parts()
        for part in parts[1:]:
            await self.request_link(self.draw.choice(sorted(part)), self.draw.choice(sorted(parts[0])))

    def _find_parts(self) -> list[set[str]]:
        linked: dict[str, set[str]] = {address: set() for address in self.nodes}
        for address, others in self.requested.items():
            for other in others & self.nodes.keys():
                linked[address].add(other)
                linked[other].add(address)
        parts, left = [], set(linked)
        while left:
            part, reached = set[str](), deque([min(left)])
            while reached:
                address = reached.popleft()
                if address not in part:
                    part.add(address)
                    reached.extend(linked[address])
            parts.append(part)
            left -= part
        return parts

    async def play_round(self) -> None:
        """Kill some nodes, restart some, and let strangers link."""
        for _ in range(self.off):
            await self.start()
        self.off = 0
        for _ in range(self.draw.randint(1, 5)):
            address = self.draw.choice(list(self.nodes))
            self.kill(address)
            fate = self.draw.choice(["same", "other", "off"])
            if fate == "off":
                self.off += 1
            else:
                await self.start(address if fate == "same" else "127.0.0.1:0")
        for _ in range(self.draw.randint(0, 4)):
            self.let_strangers_link()
        await self.connect()

    def let_strangers_link(self) -> None:
        """Let strangers link to a random node, subscribe and disappear: one of them or MOST_LINKS."""
        victim = self.draw.choice(list(self.nodes.values()))
        for _ in range(self.draw.choice([1, 1, MOST_LINKS])):
            wanted = subscription_filter([f"strange/{self.draw.random()}"], victim.protocol)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
                stranger.bind(("127.0.0.1", 0))
                flags = wire.SAK_REQUESTED | self.draw.choice([0, 0, wire.UNMUTE])
                message = wire.Subscription(
                    stranger.getsockname()[1], None, 1, flags, self.draw.randbytes(16), wanted.fuzzy_hash(), wanted
                )
                stranger.sendto(wire.encode(message), victim.address)

    def find_ghosts(self) -> list[tuple[str, str]]:
        """Return (node, neighbor) of each link on which a node stores interests that no live node has."""
        living = BitVector(next(iter(self.nodes.values())).protocol.filter_bits)
        for interests in self.filters.values():
            living |= interests
        return [
            (address, str(remote.address))
            for address, node in self.nodes.items()
            for remote in node.core.links.remotes.values()
            if remote.inbound is not None and not living.includes(remote.inbound[0])
        ]

    async def find_unheard(self) -> list[tuple[str, str]]:
        """Let each node publish once; return (node, publisher) for each publication that a node has not received.

        Publications that are still missing after _POLL_S seconds count as not received.
        """
        for heard in self.heard.values():
            heard.clear()
        for number, (address, node) in enumerate(self.nodes.items()):
            await node.publish(f"all/{number}", address)
        await asyncio.sleep(_POLL_S)
        return [(address, other) for address, heard in self.heard.items() for other in self.nodes.keys() - heard]

    async def wait_until_healed(self, within_losses: float) -> float | None:
        """Wait until no node stores interests of dead nodes and each node receives publications of every other node.

        Return the time in units of ``link_loss_s``, or None if it exceeds ``within_losses``.
        """
        began_s = time.monotonic()
        while True:
            is_well = not self.find_ghosts() and not await self.find_unheard()
            losses = (time.monotonic() - began_s) / TIMERS["link_loss_s"]
            if is_well:
                return losses
            if losses > within_losses:
                return None
            await asyncio.sleep(_POLL_S)


async def play(seed: int, nodes: int, rounds: int, within_losses: float = WITHIN_LOSSES) -> list[float | None]:
    """Play a mesh that starts and then suffers ``rounds`` rounds of failures; return the times until it healed.

    The times are in units of ``link_loss_s``: of the start, then of each round; None if one exceeds ``within_losses``.
    """
    chaos = Chaos(seed, nodes)
    try:
        await chaos.begin()
        took = [await chaos.wait_until_healed(within_losses)]
        for _ in range(rounds):
            await chaos.play_round()
            took.append(await chaos.wait_until_healed(within_losses))
        return took
    finally:
        await chaos.end()


def main() -> None:
    """Play the rounds and print their times."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--nodes", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--within", type=float, default=20.0, help="link losses after which a round counts as not healed"
    )
    options = parser.parse_args()
    took = asyncio.run(play(options.seed, options.nodes, options.rounds, options.within))
    healed = sorted(losses for losses in took if losses is not None)
    loss_s = TIMERS["link_loss_s"]
    print(f"{options.nodes} nodes, {options.rounds} rounds, seed {options.seed}; a link loss is {loss_s} s")
    print(f"healed: {len(healed)} of {len(took)}; median {statistics.median(healed):.1f}, longest {healed[-1]:.1f}")
    print(f"within {WITHIN_LOSSES:g}: {sum(losses <= WITHIN_LOSSES for losses in healed)} of {len(took)}")


if __name__ == "__main__":
    main()
