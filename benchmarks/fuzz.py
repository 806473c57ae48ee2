"""All protocols' nodes with mutated frames: ``benchmarks/fuzz.py [--frames 1000000] [--protocol NAME] [--socket]``.

The program prints the numbers of `wb.fuzz`: frames that were refused or dropped, the most frames and bytes that one
call of the node sent, the node's memory, and its growth. ``--socket`` sends the frames to a node of DPS on UDP.
"""

import argparse
import asyncio
import random
import socket
import time
from typing import Any

from dps_fuzz import own_messages
from tables import table

import workbench as wb
from workbench.fuzzing import state_B
from workbench.fuzzing.corpus import Frame, MutatedCorpus
from workbench.protocols.protocol import Protocol

PROTOCOLS: dict[str, Protocol] = {
    "flooding": wb.Flooding(),
    "gossip": wb.Gossip(),
    "gossip of pieces": wb.Gossip(pieces=3),
    "diffusion": wb.Diffusion(),
    "coded diffusion": wb.CodedDiffusion(),
    "coded, m = 8": wb.CodedDiffusion(generation_size=8, bootstrap_factor=8),
    "tinymq": wb.TinyMQ(roots=(0, 8)),
    "tinymq, a root": wb.TinyMQ(roots=(4,)),
    "pub2sub": wb.Pub2Sub(roots=(0, 8)),
    "printed": wb.PrintedTinyMQ(roots=(0,)),
    "dps": wb.DPS(filter_bits=1024),
    "dps, retaining": wb.DPS(filter_bits=1024, ttl_s=30, acknowledge=True),
}
HEADER = ["protocol", "frames", "us a frame", "dropped", "most frames", "most B", "memory KB", "growth"]
PACE = 20  # datagrams before the node runs again


def main() -> None:
    """Test the nodes, and print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--protocol", choices=tuple(PROTOCOLS), action="append")
    parser.add_argument("--socket", action="store_true", help="a node of DPS on UDP, on loopback")
    options = parser.parse_args()
    if options.socket:
        print(asyncio.run(fuzz_socket(options.frames, options.seed)))
        return
    rows = []
    for name in options.protocol or PROTOCOLS:
        started = time.process_time()
        report = wb.fuzz(PROTOCOLS[name], options.frames, options.seed)
        taken = time.process_time() - started
        dropped = sum(report.drops.values()) / options.frames
        cells = f"{options.frames:,}", f"{1e6 * taken / options.frames:.0f}", f"{dropped:.0%}", str(report.most_frames)
        memory = f"{max(report.memory_B) / 1000:,.0f}", f"{report.growth:.2f}"
        rows.append([name, *cells, f"{report.most_sent_B:,}", *memory])
        print(rows[-1], flush=True)
    print(table(HEADER, rows))


async def fuzz_socket(frames: int, seed: int) -> str:
    """Send ``frames`` mutated datagrams to a DPS node on loopback; return a sentence on the node's state afterwards."""
    choose = random.Random(seed)
    failures: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
    senders = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(8)]
    async with wb.dps_node(protocol=wb.DPS(update_s=0.05, link_loss_s=0.5, recheck_s=1.0)) as node:
        await node.subscribe("a/+/c")
        corpora = []
        for sender in senders:
            sender.bind(("127.0.0.1", 0))
            harvest = [Frame(data, 0, False) for data in messages_from(sender.getsockname()[1])]
            corpora.append(MutatedCorpus(wb.DPS(), harvest, range(9), choose))
        sizes = []
        for number in range(frames):
            index = choose.randrange(len(senders))
            senders[index].sendto(corpora[index].draw().data, node.address)
            if number % PACE == 0:
                await asyncio.sleep(0)
            if number % (frames // 20) == 0:
                sizes.append(state_B(node.core))
        await asyncio.sleep(2)
        drops, left = node.drops, len(node.links)
    for sender in senders:
        sender.close()
    assert not failures, failures[0]
    return f"{frames:,} datagrams: 0 exceptions, {left} links left, most memory {max(sizes):,} B; dropped: {drops}"


def messages_from(port: int) -> list[bytes]:
    """Return a DPS message of each kind, as a node that listens at ``port`` would send it."""
    return own_messages(port)[1]


if __name__ == "__main__":
    main()
