"""DPS nodes that die and return, among strangers: ``benchmarks/dps_chaos.py [--rounds 20] [--nodes 25] [--seed 1]``.

The nodes are on UDP, on the loopback interface, each with a socket of its own, in one process. In each round some are
killed: their sockets close, and nobody is told. Some come back at once on the same port, some on another, some after a
round; and strangers link, fill a node up and are never heard of again. Then it takes some time until no node announces
an interest of one that has died, and each hears each. Printed are these times, in units of ``link_loss_s``.
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

# In the proportions of the reference's; shorter, and a busy machine loses links that are alive.
TIMERS = {"update_s": 0.1, "link_loss_s": 1.5, "relink_s": 0.5}
MOST_LINKS = 12
WITHIN_LOSSES = 3.0
_ASKED = 3
_POLL_S = 0.1


class Chaos:
    """The nodes of one mesh, by address; ``seed`` says what happens to them."""

    def __init__(self, seed: int, nodes: int) -> None:
        self.draw = random.Random(seed)
        self.count = nodes
        self.nodes: dict[str, UDPNode] = {}
        self.asked: dict[str, set[str]] = {}
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
        """A node without memory, which asks some others for links; a part of its interests is its own life's alone."""
        self.lives += 1
        node = wb.dps_node(listen, wb.DPS(max_links=MOST_LINKS, **TIMERS))
        await node.open()
        address, heard = str(node), set[str]()
        topics = ("all/+", f"life/{self.lives}")
        await node.subscribe(topics[0], handler=lambda publication: heard.add(publication.text))
        await node.subscribe(topics[1])
        others = self.draw.sample(list(self.nodes), min(_ASKED, len(self.nodes)))
        self.nodes[address], self.heard[address], self.asked[address] = node, heard, set()
        self.filters[address] = BitVector(node.protocol.filter_bits)
        for topic in topics:
            self.filters[address] |= subscription_filter([topic], node.protocol)
        for other in others:
            await self.ask(address, other)

    async def ask(self, address: str, other: str) -> None:
        """One asks another for a link, and again whenever there is none."""
        if len(self.nodes[address].links) < MOST_LINKS:
            self.asked[address].add(other)
            await self.nodes[address].keep_linked(other)

    def kill(self, address: str) -> None:
        """Its socket closes, and nobody is told."""
        self.nodes.pop(address)._shut()
        del self.asked[address], self.heard[address], self.filters[address]

    async def connect(self) -> None:
        """Were all asked links up, those that live would be one mesh: as applications do that look for a way in."""
        parts = self._parts()
        for part in parts[1:]:
            await self.ask(self.draw.choice(sorted(part)), self.draw.choice(sorted(parts[0])))

    def _parts(self) -> list[set[str]]:
        beside: dict[str, set[str]] = {address: set() for address in self.nodes}
        for address, others in self.asked.items():
            for other in others & self.nodes.keys():
                beside[address].add(other)
                beside[other].add(address)
        parts, left = [], set(beside)
        while left:
            part, reached = set[str](), deque([min(left)])
            while reached:
                address = reached.popleft()
                if address not in part:
                    part.add(address)
                    reached.extend(beside[address])
            parts.append(part)
            left -= part
        return parts

    async def round(self) -> None:
        """Some die, some return, and strangers come."""
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
            self.strange()
        await self.connect()

    def strange(self) -> None:
        """A stranger, or as many as a node has room for; each links, asks for something, and is gone."""
        victim = self.draw.choice(list(self.nodes.values()))
        for _ in range(self.draw.choice([1, 1, MOST_LINKS])):
            asked = subscription_filter([f"strange/{self.draw.random()}"], victim.protocol)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
                stranger.bind(("127.0.0.1", 0))
                flags = wire.SAK_REQUESTED | self.draw.choice([0, 0, wire.UNMUTE])
                message = wire.Subscription(
                    stranger.getsockname()[1], None, 1, flags, self.draw.randbytes(16), asked.fuzzy_hash(), asked
                )
                stranger.sendto(wire.encode(message), victim.address)

    def ghosts(self) -> list[tuple[str, str]]:
        """(node, neighbor) where what is asked for behind the neighbor is of nobody who lives."""
        living = BitVector(next(iter(self.nodes.values())).protocol.filter_bits)
        for asked in self.filters.values():
            living |= asked
        return [
            (address, str(remote.address))
            for address, node in self.nodes.items()
            for remote in node.core.links.remotes.values()
            if remote.inbound is not None and not living.includes(remote.inbound[0])
        ]

    async def unheard(self) -> list[tuple[str, str]]:
        """(who has not heard, whom), after each has published."""
        for heard in self.heard.values():
            heard.clear()
        for place, (address, node) in enumerate(self.nodes.items()):
            await node.publish(f"all/{place}", address)
        await asyncio.sleep(_POLL_S)
        return [(address, other) for address, heard in self.heard.items() for other in self.nodes.keys() - heard]

    async def healed(self, within_losses: float) -> float | None:
        """Link losses until no ghost is left and each hears each; None if it takes more than ``within_losses``."""
        began_s = time.monotonic()
        while True:
            is_well = not self.ghosts() and not await self.unheard()
            losses = (time.monotonic() - began_s) / TIMERS["link_loss_s"]
            if is_well:
                return losses
            if losses > within_losses:
                return None
            await asyncio.sleep(_POLL_S)


async def play(seed: int, nodes: int, rounds: int, within_losses: float = WITHIN_LOSSES) -> list[float | None]:
    """Link losses that it took in each round, the start being the first; None for more than ``within_losses``."""
    chaos = Chaos(seed, nodes)
    try:
        await chaos.begin()
        took = [await chaos.healed(within_losses)]
        for _ in range(rounds):
            await chaos.round()
            took.append(await chaos.healed(within_losses))
        return took
    finally:
        await chaos.end()


def main() -> None:
    """Play the rounds and print what they took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--nodes", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--within", type=float, default=20.0, help="link losses after which a round counts as not healed"
    )
    given = parser.parse_args()
    took = asyncio.run(play(given.seed, given.nodes, given.rounds, given.within))
    healed = sorted(losses for losses in took if losses is not None)
    print(f"{given.nodes} nodes, {given.rounds} rounds, seed {given.seed}; a link loss is {TIMERS['link_loss_s']} s")
    print(f"healed: {len(healed)} of {len(took)}; median {statistics.median(healed):.1f}, longest {healed[-1]:.1f}")
    print(f"within {WITHIN_LOSSES:g}: {sum(losses <= WITHIN_LOSSES for losses in healed)} of {len(took)}")


if __name__ == "__main__":
    main()
