"""DPS over loopback between two processes: the acknowledged round trip, acknowledged publications a second, memory.

    python benchmarks/dps_udp.py [--publications 5000] [--endurance 100000] [--late 80]

A process publishes, and another process subscribes and acknowledges, both with `wb.dps_node`. Round trips follow each
other. A round trip lasts from `publish` to the delivery of the acknowledgement: to a handler, which the event loop
calls, or to a coroutine that awaits it. For the rate, ``WINDOW`` publications are in flight at a time.

With ``--endurance`` the given number of publications is made, each in a new series, which a node must remember. The
resident sizes of both processes are printed meanwhile, and a line is fitted to the second half. With ``--late`` the
given number of pairs is linked. One node of a pair starts late, about when the other node gives it up. Each publishes
to the other 20 ``link_loss_s`` later.

The number of the C implementation is a constant, measured on a similar machine: the shortest of many round trips
between library calls of its own example programs on loopback, commit b92a83660427.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from statistics import median, quantiles
from typing import NamedTuple

import numpy as np
from tables import table

import workbench as wb
from workbench.protocols.dps.udp import UDPNode
from workbench.protocols.dps.udp.application import DPSSeries

C_LEAST_US = 11
TARGET_US = 300
WINDOW = 32
LOOKS = 20
FLAT = 0.02  # growth over the second half, as a share
WITHIN_S = 10.0
# Times so short that a neighbor is given up after a quarter of a second; the start of the late node of a pair.
FAST = {"update_s": 0.05, "link_loss_s": 0.2, "relink_s": 0.3}
LATE_S = 0.15, 0.27


class Size(NamedTuple):
    """The resident sizes in bytes of both processes after a number of publications."""

    publications: int
    publisher_B: int
    subscriber_B: int


def report(quick: bool) -> Iterator[str]:
    """Yield a table of round trips, and the rate."""
    yield asyncio.run(with_subscriber(round_trips, 1000 if quick else 5000))


async def with_subscriber(measure, publications: int):
    """Start a process that subscribes, link a node to it, and return ``measure(node, publications, process id)``."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, __file__, "--subscriber", stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        address = (await process.stdout.readline()).decode().strip()
        async with wb.dps_node() as node:
            await node.link(address)
            return await measure(node, publications, process.pid)
    finally:
        process.stdin.close()
        await process.wait()


async def round_trips(node: UDPNode, publications: int, _: int) -> str:
    """Return a table of round trips, and the rate."""
    rows = []
    for name, trip in (("to a handler", _time_handler_trips), ("to a coroutine", _time_coroutine_trips)):
        await trip(node, publications // 10)
        taken_us = await trip(node, publications)
        rows.append((name, f"{min(taken_us):.0f}", f"{median(taken_us):.0f}", f"{quantiles(taken_us, n=20)[-1]:.0f}"))
    rows.append(("the C implementation, on a similar machine", str(C_LEAST_US), "", ""))
    rate = await _measure_rate(node, publications)
    least = table(("acknowledged round trip", "least µs", "median µs", "95 % µs"), rows)
    return f"{least}\n\nAcknowledged publications, {WINDOW} under way: {rate:,.0f} a second.\n"


async def _time_handler_trips(node: UDPNode, count: int) -> list[float]:
    """Return the times in µs of ``count`` round trips whose acknowledgement is passed to a handler."""
    taken_us: list[float] = []
    done = asyncio.get_running_loop().create_future()
    began_s = 0.0

    def answered(_: object) -> None:
        nonlocal began_s
        taken_us.append((time.perf_counter() - began_s) * 1e6)
        if len(taken_us) == count:
            done.set_result(None)
            return
        began_s = time.perf_counter()
        node.publish_next(series, b"x", 0)

    began_s = time.perf_counter()
    series = await node.publish("bench/a/b", b"x", acknowledge=True, handler=answered)
    await asyncio.wait_for(done, WITHIN_S * 10)
    return taken_us


async def _time_coroutine_trips(node: UDPNode, count: int) -> list[float]:
    """Return the times in µs of ``count`` round trips whose acknowledgement a coroutine awaits."""
    series = await node.publish("bench/a/b", b"x", acknowledge=True)
    assert await series.next(WITHIN_S) is not None
    taken_us = []
    for _ in range(count):
        began_s = time.perf_counter()
        await series.publish(b"x")
        assert await series.next(WITHIN_S) is not None, "an acknowledgement did not come"
        taken_us.append((time.perf_counter() - began_s) * 1e6)
    return taken_us


async def _measure_rate(node: UDPNode, count: int) -> float:
    """Make ``count`` publications, WINDOW of them in flight, and return the acknowledged publications per second."""
    series = await node.publish("bench/a/b", b"x", acknowledge=True)
    assert await series.next(WITHIN_S) is not None
    began_s = time.perf_counter()
    in_flight = 0
    for _ in range(count):
        await series.publish(b"x")
        in_flight += 1
        while in_flight >= WINDOW or series.waiting:
            assert await series.next(WITHIN_S) is not None, "an acknowledgement did not come"
            in_flight -= 1
    for _ in range(in_flight):
        assert await series.next(WITHIN_S) is not None, "an acknowledgement did not come"
    return count / (time.perf_counter() - began_s)


# Endurance


async def measure_endurance(node: UDPNode, publications: int, subscriber: int) -> list[Size]:
    """Make acknowledged publications, each in a new series; return the sizes of both processes at regular intervals.

    ``subscriber`` is the process id of the subscriber. A line is printed for each measurement.
    """
    print("publications  publisher/MB  subscriber/MB", flush=True)
    sizes: list[Size] = []
    began_s = time.perf_counter()
    in_flight: list[DPSSeries] = []
    for number in range(1, publications + 1):
        in_flight.append(await node.publish(f"bench/{number}/b", b"x", acknowledge=True))
        if len(in_flight) >= WINDOW:
            assert await in_flight.pop(0).next(WITHIN_S) is not None, "an acknowledgement did not come"
        if number % max(1, publications // LOOKS) == 0:
            sizes.append(Size(number, rss_B(os.getpid()), rss_B(subscriber)))
            print(f"{number:12d} {sizes[-1][1] / 2**20:13.2f} {sizes[-1][2] / 2**20:14.2f}", flush=True)
    for series in in_flight:
        assert await series.next(WITHIN_S) is not None, "an acknowledgement did not come"
    print(f"{publications / (time.perf_counter() - began_s):,.0f} a second, all acknowledged")
    return sizes


def print_growth(sizes: list[Size]) -> None:
    """Print for each process whether its size grew during the second half of the measurements."""
    half = sizes[len(sizes) // 2 :]
    numbers = [size.publications for size in half]
    for name, values in (
        ("publisher", [size.publisher_B for size in half]),
        ("subscriber", [size.subscriber_B for size in half]),
    ):
        per_publication_B = float(np.polyfit(numbers, values, 1)[0])
        share = per_publication_B * (numbers[-1] - numbers[0]) / values[0]
        verdict = "flat" if share < FLAT else "grows"
        print(f"{name}: {per_publication_B:+.2f} B for each publication of the second half ({share:+.2%}): {verdict}")


def rss_B(pid: int) -> int:
    """Return the resident size of a process in bytes."""
    listing = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=True)
    return int(listing.stdout) * 1024


# Neighbors that start late


async def measure_late_neighbors(pairs: int) -> str:
    """Link ``pairs`` pairs of nodes, in which one node starts late.

    Return a sentence with the number of pairs that do not receive each other's publications in the end.
    """
    delays_s = [LATE_S[0] + (LATE_S[1] - LATE_S[0]) * number / pairs for number in range(pairs)]
    async with AsyncExitStack() as stack:
        early = [await stack.enter_async_context(wb.dps_node(protocol=wb.DPS(**FAST))) for _ in delays_s]
        async with AsyncExitStack() as reserved:
            nodes = [await reserved.enter_async_context(wb.dps_node()) for _ in delays_s]
            ports = [node.address[1] for node in nodes]
        heard = await asyncio.gather(*map(_hear_each_other, early, ports, delays_s))
    deaf = [f"{delay_s:.3f}" for delay_s, is_heard in zip(delays_s, heard, strict=True) if not is_heard]
    return f"{len(deaf)} of {pairs} pairs do not hear each other; late after {', '.join(deaf) or '-'} s"


async def _hear_each_other(early: UDPNode, port: int, delay_s: float) -> bool:
    to_early = await early.subscribe("to/early")
    await early.keep_linked(port)
    await asyncio.sleep(delay_s)
    async with wb.dps_node(port, wb.DPS(**FAST)) as late:
        await late.keep_linked(early.address[1])
        for number in range(6):
            await asyncio.sleep(FAST["update_s"])
            await late.subscribe(f"other/{number}")
        to_late = await late.subscribe("to/late")
        await asyncio.sleep(20 * FAST["link_loss_s"])
        await late.publish("to/early", b"x")
        await early.publish("to/late", b"y")
        return None not in (await to_early.next(1), await to_late.next(1))


# The other process


async def run_subscriber() -> None:
    """Subscribe and acknowledge every publication, until standard input ends."""
    async with wb.dps_node() as node:
        await node.subscribe("bench/+/b", handler=lambda publication: publication.acknowledge(b"y"))
        print(node, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


def main() -> None:
    """Run the measurement that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--publications", type=int, default=5000)
    parser.add_argument("--endurance", type=int, metavar="PUBLICATIONS")
    parser.add_argument("--late", type=int, metavar="PAIRS")
    parser.add_argument("--subscriber", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.subscriber:
        asyncio.run(run_subscriber())
    elif arguments.endurance:
        print_growth(asyncio.run(with_subscriber(measure_endurance, arguments.endurance)))
    elif arguments.late:
        print(asyncio.run(measure_late_neighbors(arguments.late)))
    else:
        print(asyncio.run(with_subscriber(round_trips, arguments.publications)))


if __name__ == "__main__":
    main()
