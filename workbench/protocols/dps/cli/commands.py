"""What the commands of ``workbench dps`` do: each is a coroutine that is given a node."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shlex
import signal
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from threading import Thread
from typing import Any

from workbench.errors import LinkError, ParameterError, WorkbenchError
from workbench.protocols.dps import DPS
from workbench.protocols.dps.cli.keys import make_security
from workbench.protocols.dps.cli.options import add_publication
from workbench.protocols.dps.cli.output import Output, data_of_json
from workbench.protocols.dps.udp import dps_node
from workbench.protocols.dps.udp.multicast import PORT, Multicast, loopback_interfaces

INTERRUPTED = 130  # as a shell has it: 128 and the signal's number
MILLISECONDS = 1000
_WAIT_FOR_ANSWERS_S = 2.0
_MOST_LINES = 100  # of standard input that were read ahead

Command = Callable[[Any, argparse.Namespace, Output], Awaitable[int]]


def run(options: argparse.Namespace, command: Command) -> int:
    """Run a command with a node, until it ends or is interrupted; links are ended in any case."""
    return asyncio.run(_run(options, command))


async def _run(options: argparse.Namespace, command: Command) -> int:
    stop = asyncio.Event()
    output = Output(options, stop)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with make_node(options, output) as node:
        output.node = node
        output.say("listening", f"listening on {node}", address=str(node))
        work = asyncio.ensure_future(command(node, options, output))
        waits = {work, asyncio.ensure_future(stop.wait())}
        done, rest = await asyncio.wait(waits, timeout=options.for_s, return_when=asyncio.FIRST_COMPLETED)
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        if work in done:
            code = work.result()
        else:
            code = INTERRUPTED if done and command is publish else 0
    output.end()
    return code


def make_node(options: argparse.Namespace, output: Output) -> Any:
    """The node that the options describe, not opened yet."""
    settings = {
        "separators": options.separators,
        "filter_bits": options.filter_bits,
        "hashes": options.hashes,
        "update_s": options.update_ms and options.update_ms / MILLISECONDS,
        "link_loss_s": options.link_loss,
        "relink_s": options.relink,
    }
    node = dps_node(
        options.listen,
        DPS(**{name: value for name, value in settings.items() if value is not None}),
        security=make_security(options) if hasattr(options, "key") else None,
        multicast=_multicast(options),
        tell=output.tell,
        discover=getattr(options, "discover", None),
        announce=getattr(options, "announce", ""),
    )
    node.core.tells_all = options.debug
    return node


def _multicast(options: argparse.Namespace) -> Any:
    is_asked, finds = getattr(options, "multicast", False), getattr(options, "discover", None) is not None
    if not (is_asked or finds):
        if options.interface or options.multicast_port:
            raise ParameterError("--interface and --multicast-port say how to multicast; add --multicast to do it")
        return None
    publishes = is_asked and options.dps_command == "publish"
    interfaces = options.interface or (None if is_asked else loopback_interfaces())
    return Multicast(finds or publishes, finds or not publishes, interfaces, options.multicast_port or PORT, publishes)


async def subscribe(node: Any, options: argparse.Namespace, output: Output) -> int:
    """Print publications until there were enough."""
    sets = ([options.topics] if options.topics else []) + options.sets
    if not sets:
        raise ParameterError("name a topic to subscribe to, as in: workbench dps subscribe a/+/c")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        subscriptions = [await node.subscribe(*topics, expired=options.expired) for topics in sets]
    for warning in caught:
        output.complain(str(warning.message))
    await asyncio.sleep(options.wait)
    for address in options.link:
        await node.keep_linked(address)
    await _join(node, options, output)
    left = [options.count]
    enough = asyncio.Event()

    async def show(subscription: Any) -> None:
        async for publication in subscription:
            output.publication(publication, subscription)
            if publication.wants_answer and not options.no_ack and not publication.is_expiry:
                _acknowledge(publication, options, output)
            if left[0] is not None:
                left[0] -= 1
                if left[0] <= 0:
                    enough.set()
                    return

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(show(subscription)) for subscription in subscriptions]
        await enough.wait()
        for task in tasks:
            task.cancel()
    return 0


def _acknowledge(publication: Any, options: argparse.Namespace, output: Output) -> None:
    text = f"This is an ACK from {output.node}" if options.ack is None else options.ack
    payload = data_of_json(json.dumps({"msg": "ACK Message", "address": str(output.node)})) if options.cbor else text
    try:
        publication.acknowledge(payload)
    except WorkbenchError as error:
        output.complain(str(error))


async def publish(node: Any, options: argparse.Namespace, output: Output) -> int:
    """Publish on the command line's topics, or what the lines of standard input say."""
    for address in options.link:
        await node.link(address)
    if options.discover is not None and options.topics:
        node.will_publish(*options.topics, wildcards=not options.no_wildcards)
    await _join(node, options, output)
    await asyncio.sleep(options.wait)
    if not options.topics:
        return await _publish_lines(node, output)
    series = await _publish(node, options, output, {})
    stay_s = (_WAIT_FOR_ANSWERS_S if options.ack else 0.0) if options.stay is None else options.stay
    loop = asyncio.get_running_loop()
    end_s = loop.time() + stay_s
    answers = 0
    while (left_s := end_s - loop.time()) > 0 and (options.count is None or answers < options.count):
        answer = await series.next(left_s)
        if answer is not None:
            answers += 1
            output.answer(answer, series)
    return 0 if options.count is None or answers >= options.count else 1


async def _publish(node: Any, options: argparse.Namespace, output: Output, known: dict[Any, Any]) -> Any:
    """Publish once; on the topics of one that is known, as the next of its series."""
    payload = options.message if options.json_message is None else data_of_json(options.json_message)
    kind = (tuple(options.topics), options.ack, options.no_wildcards)
    series = known.get(kind)
    if options.ttl < 0:
        if series is None:
            raise ParameterError(
                "-t -1 ends a publication that was retained before on the same topics, in the same run"
            )
        await series.expire()
    elif series is None:
        series = await node.publish(options.topics, payload, options.ttl, options.ack, not options.no_wildcards)
        known[kind] = series
    else:
        node.publish_next(series, payload, options.ttl)
    output.published(series)
    await node.drained()
    return series


async def _publish_lines(node: Any, output: Output) -> int:
    parser = _LineParser(prog="", add_help=False)
    parser.add_argument("topics", nargs="+", metavar="TOPIC")
    add_publication(parser)
    known: dict[Any, Any] = {}
    readers: set[asyncio.Task[None]] = set()

    async def show(series: Any) -> None:
        async for answer in series:
            output.answer(answer, series)

    async for line in _lines():
        try:
            options = parser.parse_args(shlex.split(line))
            before = len(known)
            series = await _publish(node, options, output, known)
            if options.ack and len(known) > before:
                readers.add(asyncio.ensure_future(show(series)))
        except ValueError as error:  # All errors of ours are, and what shlex says of quotes.
            output.complain(str(error))
    for task in readers:
        task.cancel()
    return 0


class _LineParser(argparse.ArgumentParser):
    """For a line of standard input: what is wrong with it ends nothing."""

    def error(self, message: str) -> Any:
        raise ParameterError(f"{message}; a line is: TOPIC ... [-t S] [-a] [-m TEXT | -j JSON]")


async def _lines() -> AsyncIterator[str]:
    """The lines of standard input that are not empty.

    A thread reads them, as the event loop can watch neither files nor, without side effects, terminals.
    """
    queue: asyncio.Queue[str | None] = asyncio.Queue(_MOST_LINES)
    loop = asyncio.get_running_loop()
    Thread(target=_read_lines, args=(lambda line: _put(queue, line, loop),), daemon=True).start()
    while (line := await queue.get()) is not None:
        if line:
            yield line


def _put(queue: asyncio.Queue[str | None], line: str | None, loop: asyncio.AbstractEventLoop) -> None:
    asyncio.run_coroutine_threadsafe(queue.put(line), loop).result()


def _read_lines(put: Callable[[str | None], None]) -> None:
    rest = b""
    with suppress(RuntimeError, CancelledError):  # The event loop is closed.
        # Not by sys.stdin, whose lock this thread would hold while the interpreter ends.
        while data := os.read(0, 65_536):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                put(line.decode("utf-8", "surrogateescape").strip())
        put(rest.decode("utf-8", "surrogateescape").strip())
        put(None)


async def bridge(node: Any, options: argparse.Namespace, output: Output) -> int:
    """Pass on, until interrupted."""
    for address in options.link:
        await node.keep_linked(address)
    await _join(node, options, output)
    await asyncio.Event().wait()
    raise LinkError("a bridge ends only when it is interrupted")


async def discover(node: Any, options: argparse.Namespace, output: Output) -> int:
    """Print who is there, who comes, changes or goes, until there were enough."""
    for address in options.link:
        await node.keep_linked(address)
    seen = set()
    async for found in node.discover():
        output.found(found, [topic for topic in options.topic if not found.is_gone and found.may_want(topic)])
        seen.add(found.address)
        if options.count is not None and len(seen) >= options.count:
            break
    return 0


async def register(node: Any, options: argparse.Namespace, output: Output) -> int:
    """Register addresses."""
    for address in await node.register(options.registry, options.tenant, options.addresses):
        output.say("registered", f"registered {address}", address=address)
    return 0


async def lookup(node: Any, options: argparse.Namespace, output: Output) -> int:
    """Print the addresses that are registered; 1 if there are none."""
    registered = await node.lookup(options.registry, options.tenant, options.count, options.wait)
    for address in registered:
        output.say("address", address, address=address)
    return 0 if registered else 1


async def _join(node: Any, options: argparse.Namespace, output: Output) -> None:
    """Register, and link to one of those who have, as the examples of the C implementation do."""
    if options.registry is None:
        return
    await node.register(options.registry, options.tenant)
    registered = await node.lookup(options.registry, options.tenant)
    while registered:
        address = registered.pop(node.core.random.below(len(registered)))
        try:
            await node.link(address)
            return
        except LinkError as error:
            output.complain(str(error))
    output.complain(f"there is no other node of {options.tenant} that answers; going on without a link")
