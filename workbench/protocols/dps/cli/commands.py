"""The commands of ``workbench dps``: coroutines that use an open node, print output, and return the exit status."""

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

INTERRUPTED = 130  # the shell's exit status after Ctrl-C: 128 plus the number of SIGINT
MILLISECONDS = 1000
_WAIT_FOR_ANSWERS_S = 2.0
_MOST_LINES = 100  # read ahead from standard input at most

Command = Callable[[Any, argparse.Namespace, Output], Awaitable[int]]


def run(options: argparse.Namespace, command: Command) -> int:
    """Open a node and run a command of this module until it ends or is interrupted; return the exit status.

    All links are ended before this function returns.
    """
    return asyncio.run(_run(options, command))


async def _run(options: argparse.Namespace, command: Command) -> int:
    stop_event = asyncio.Event()
    output = Output(options, stop_event)
    loop = asyncio.get_running_loop()
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(signal_number, stop_event.set)
    async with make_node(options, output) as node:
        output.node = node
        output.write("listening", f"listening on {node}", address=str(node))
        command_task = asyncio.ensure_future(command(node, options, output))
        awaited_tasks = {command_task, asyncio.ensure_future(stop_event.wait())}
        done_tasks, pending_tasks = await asyncio.wait(
            awaited_tasks, timeout=options.for_s, return_when=asyncio.FIRST_COMPLETED
        )
        for task in pending_tasks:
            task.cancel()
        await asyncio.gather(*pending_tasks, return_exceptions=True)
        if command_task in done_tasks:
            exit_status = command_task.result()
        else:
            exit_status = INTERRUPTED if done_tasks and command is publish else 0
    output.end()
    return exit_status


def make_node(options: argparse.Namespace, output: Output) -> Any:
    """Return a new node with the settings in the options; the node is not open yet."""
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
        DPS(
            **{
                setting_name: setting_value
                for setting_name, setting_value in settings.items()
                if setting_value is not None
            }
        ),
        security=make_security(options) if hasattr(options, "key") else None,
        multicast=_make_multicast(options),
        on_event=output.event,
        discover=getattr(options, "discover", None),
        announce=getattr(options, "announce", ""),
    )
    node.core.tells_all = options.debug
    return node


def _make_multicast(options: argparse.Namespace) -> Any:
    """Return the `Multicast` that the options describe, or None if they do not require multicast."""
    is_requested, is_discovering = getattr(options, "multicast", False), getattr(options, "discover", None) is not None
    if not (is_requested or is_discovering):
        if options.interface or options.multicast_port:
            raise ParameterError(
                "--interface and --multicast-port have no effect without --multicast; add --multicast, or "
                "leave these two options out"
            )
        return None
    is_publishing = is_requested and options.dps_command == "publish"
    interfaces = options.interface or (None if is_requested else loopback_interfaces())
    return Multicast(
        is_discovering or is_publishing,
        is_discovering or not is_publishing,
        interfaces,
        options.multicast_port or PORT,
        is_publishing,
    )


async def subscribe(node: Any, options: argparse.Namespace, output: Output) -> int:
    """Print received publications, and end after ``--count`` of them if that is given; return the exit status, 0."""
    topic_sets = ([options.topics] if options.topics else []) + options.sets
    if not topic_sets:
        raise ParameterError("no topic is given; give at least one, as in: workbench dps subscribe a/+/c")
    with warnings.catch_warnings(record=True) as caught_warnings:
        warnings.simplefilter("always")
        subscriptions = [await node.subscribe(*topics, expired=options.expired) for topics in topic_sets]
    for warning in caught_warnings:
        output.error(str(warning.message))
    await asyncio.sleep(options.wait)
    for address in options.link:
        await node.keep_linked(address)
    await _register_and_link(node, options, output)
    remaining_count = [options.count]
    all_printed = asyncio.Event()

    async def print_publications(subscription: Any) -> None:
        async for publication in subscription:
            output.publication(publication, subscription)
            if publication.wants_answer and not options.no_ack and not publication.is_expiry:
                _acknowledge(publication, options, output)
            if remaining_count[0] is not None:
                remaining_count[0] -= 1
                if remaining_count[0] <= 0:
                    all_printed.set()
                    return

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(print_publications(subscription)) for subscription in subscriptions]
        await all_printed.wait()
        for task in tasks:
            task.cancel()
    return 0


def _acknowledge(publication: Any, options: argparse.Namespace, output: Output) -> None:
    """Acknowledge a publication with the text of ``--ack``, or with this node's address; if this fails, print why."""
    acknowledgement_text = f"This is an ACK from {output.node}" if options.ack is None else options.ack
    payload = (
        data_of_json(json.dumps({"msg": "ACK Message", "address": str(output.node)}))
        if options.cbor
        else acknowledgement_text
    )
    try:
        publication.acknowledge(payload)
    except WorkbenchError as error:
        output.error(str(error))


async def publish(node: Any, options: argparse.Namespace, output: Output) -> int:
    """Publish on the topics in the command line; without topics there, publish once for each line of standard input.

    Return the exit status: 1 if fewer acknowledgements than ``--count`` came, else 0.
    """
    for address in options.link:
        await node.link(address)
    if options.discover is not None and options.topics:
        node.will_publish(*options.topics, wildcards=not options.no_wildcards)
    await _register_and_link(node, options, output)
    await asyncio.sleep(options.wait)
    if not options.topics:
        return await _publish_lines(node, output)
    series = await _publish(node, options, output, {})
    stay_s = (_WAIT_FOR_ANSWERS_S if options.ack else 0.0) if options.stay is None else options.stay
    loop = asyncio.get_running_loop()
    end_s = loop.time() + stay_s
    answer_count = 0
    while (remaining_s := end_s - loop.time()) > 0 and (options.count is None or answer_count < options.count):
        acknowledgement = await series.next(remaining_s)
        if acknowledgement is not None:
            answer_count += 1
            output.answer(acknowledgement, series)
    return 0 if options.count is None or answer_count >= options.count else 1


async def _publish(node: Any, options: argparse.Namespace, output: Output, known_series: dict[Any, Any]) -> Any:
    """Publish once with these options, or end a retained publication if the option ``ttl`` is -1; return the series.

    ``known_series`` is {(topics, options): series} of earlier calls. A publication with the same topics and options
    continues the stored series; any other publication begins a new series, which is added.
    """
    payload = options.message if options.json_message is None else data_of_json(options.json_message)
    series_key = (tuple(options.topics), options.ack, options.no_wildcards)
    series = known_series.get(series_key)
    if options.ttl < 0:
        if series is None:
            raise ParameterError(
                "-t -1 ends a retained publication, but none was published "
                "on these topics in this run; publish it first"
            )
        await series.expire()
    elif series is None:
        series = await node.publish(options.topics, payload, options.ttl, options.ack, not options.no_wildcards)
        known_series[series_key] = series
    else:
        node.publish_next(series, payload, options.ttl)
    output.published(series)
    await node.drained()
    return series


async def _publish_lines(node: Any, output: Output) -> int:
    """Publish once for each line of standard input, and print acknowledgements; return the exit status, 0."""
    parser = _LineParser(prog="", add_help=False)
    parser.add_argument("topics", nargs="+", metavar="TOPIC")
    add_publication(parser)
    known_series: dict[Any, Any] = {}
    answer_tasks: set[asyncio.Task[None]] = set()

    async def print_answers(series: Any) -> None:
        async for answer in series:
            output.answer(answer, series)

    async for input_line in _stdin_lines():
        try:
            options = parser.parse_args(shlex.split(input_line))
            former_count = len(known_series)
            series = await _publish(node, options, output, known_series)
            if options.ack and len(known_series) > former_count:
                answer_tasks.add(asyncio.ensure_future(print_answers(series)))
        except ValueError as error:  # This package's errors are ValueErrors; shlex raises one for open quotes.
            output.error(str(error))
    for task in answer_tasks:
        task.cancel()
    return 0


class _LineParser(argparse.ArgumentParser):
    """A parser for the arguments in a line of standard input.

    For invalid arguments it raises ParameterError, and does not end the program as an ArgumentParser does.
    """

    def error(self, message: str) -> Any:
        raise ParameterError(f"{message}; a line has the form: TOPIC ... [-t S] [-a] [-m TEXT | -j JSON]")


async def _stdin_lines() -> AsyncIterator[str]:
    """Yield the lines of standard input that are not empty.

    A thread reads the lines, because asyncio cannot wait for a file, and waiting for a terminal has side effects.
    """
    queue: asyncio.Queue[str | None] = asyncio.Queue(_MOST_LINES)
    loop = asyncio.get_running_loop()
    Thread(target=_read_lines, args=(lambda line: _put_line(queue, line, loop),), daemon=True).start()
    while (line := await queue.get()) is not None:
        if line:
            yield line


def _put_line(queue: asyncio.Queue[str | None], line: str | None, loop: asyncio.AbstractEventLoop) -> None:
    asyncio.run_coroutine_threadsafe(queue.put(line), loop).result()


def _read_lines(put: Callable[[str | None], None]) -> None:
    """Call ``put`` with each line of standard input and then with None; run this function in a thread."""
    incomplete_line = b""
    with suppress(RuntimeError, CancelledError):  # The event loop is closed.
        # This thread would hold the lock of sys.stdin while the interpreter ends.
        while chunk := os.read(0, 65_536):
            *complete_lines, incomplete_line = (incomplete_line + chunk).split(b"\n")
            for complete_line in complete_lines:
                put(complete_line.decode("utf-8", "surrogateescape").strip())
        put(incomplete_line.decode("utf-8", "surrogateescape").strip())
        put(None)


async def bridge(node: Any, options: argparse.Namespace, output: Output) -> int:
    """Link to the nodes that ``--link`` names, so that their meshes are connected; wait until interrupted."""
    for address in options.link:
        await node.keep_linked(address)
    await _register_and_link(node, options, output)
    await asyncio.Event().wait()
    raise LinkError("the bridge has ended, although it was not interrupted; start it again")


async def discover(node: Any, options: argparse.Namespace, output: Output) -> int:
    """Print each node that is discovered, changes or is lost; return the exit status.

    The command ends when ``--count`` nodes were discovered, if that option is given.
    """
    for address in options.link:
        await node.keep_linked(address)
    known_addresses = set()
    async for discovered_node in node.discover():
        output.discovered(
            discovered_node,
            [topic for topic in options.topic if not discovered_node.is_gone and discovered_node.may_want(topic)],
        )
        known_addresses.add(discovered_node.address)
        if options.count is not None and len(known_addresses) >= options.count:
            break
    return 0


async def register(node: Any, options: argparse.Namespace, output: Output) -> int:
    """Register the command line's addresses at a registry and print them; return the exit status."""
    for address in await node.register(options.registry, options.tenant, options.addresses):
        output.write("registered", f"registered {address}", address=address)
    return 0


async def lookup(node: Any, options: argparse.Namespace, output: Output) -> int:
    """Print the addresses that a registry stores; return the exit status: 1 if the registry sends none, else 0."""
    addresses = await node.lookup(options.registry, options.tenant, options.count, options.wait)
    for address in addresses:
        output.write("address", address, address=address)
    return 0 if addresses else 1


async def _register_and_link(node: Any, options: argparse.Namespace, output: Output) -> None:
    """Register this node at the registry of ``--registry``, and link to a random registered node.

    The example programs of the C implementation do the same. Without ``--registry`` this function does nothing.
    """
    if options.registry is None:
        return
    await node.register(options.registry, options.tenant)
    addresses = await node.lookup(options.registry, options.tenant)
    while addresses:
        address = addresses.pop(node.core.random.below(len(addresses)))
        try:
            await node.link(address)
            return
        except LinkError as error:
            output.error(str(error))
    output.error(f"no other registered node of {options.tenant} answers; continuing without a link")
