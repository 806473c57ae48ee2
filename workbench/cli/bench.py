"""The commands ``workbench motes list``, ``name``, ``provision`` and ``flash``: prepare the boards of a bench.

A bench is the boards on a desk; its file records which node each board is. Each board is treated alone: an error is one
line on standard error, and the other boards continue.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Callable
from getpass import getpass
from pathlib import Path
from typing import Any

from workbench.errors import LinkError, ScenarioError
from workbench.public_names import PROTOCOLS
from workbench.suggestion import meant

FAILED = 1
DEFAULT_BENCH = Path("bench.json")
PATIENCE_S = 60.0


def add_parsers(subcommands: Any) -> None:
    """Add the sub-commands of this module to the parser of ``workbench motes``."""
    listing = subcommands.add_parser(
        "list", help="list serial ports and what answers there, bootloader drives, and the kinds of virtual motes"
    )
    listing.add_argument(
        "--probe",
        action="append",
        default=[],
        metavar="PORT",
        help="probe this port even if its USB vendor is not one of boards; may be repeated",
    )
    listing.add_argument("--no-probe", action="store_true", help="send nothing to any port")
    add_bench(listing)
    listing.set_defaults(command=show_ports)

    name = subcommands.add_parser("name", help="give boards node numbers, in a bench file")
    name.add_argument(
        "ports", nargs="*", metavar="PORT", help="ports of the boards (default: all boards that have no node yet)"
    )
    name.add_argument("--node", type=int, help="number of the node, for a single board (default: the smallest free)")
    name.add_argument("--board", help="driver: esp32-espnow, esp32-udp, pico-udp or serial-radio (default: detected)")
    name.add_argument(
        "--set",
        action="append",
        default=[],
        type=parse_setting,
        metavar="KEY=VALUE",
        help="a setting of the boards, such as wifi.name=desk, channel=6, pins.adc=26 or sensor.kind=chip",
    )
    add_bench(name)
    name.set_defaults(command=name_boards)

    provision = subcommands.add_parser("provision", help="copy the program and the settings onto boards")
    _add_node_option(provision)
    provision.add_argument("--protocol", help="copy the files of this protocol alone (default: of all protocols)")
    provision.add_argument("--source", action="store_true", help="copy Python source, not compiled with mpy-cross")
    _add_wait_option(provision)
    add_bench(provision)
    provision.set_defaults(command=provision_boards)

    flash = subcommands.add_parser("flash", help="write a firmware file, which you have downloaded, onto a board")
    flash.add_argument("file", type=Path, metavar="FILE", help="MicroPython: a .bin file for an ESP32, .uf2 for a Pico")
    place = flash.add_mutually_exclusive_group()
    place.add_argument("--node", type=int, help="flash the board of this node, and record the file's digest")
    place.add_argument("--port", help="flash the ESP32 at this port")
    place.add_argument("--drive", type=Path, help="folder of the bootloader drive (default: the only one)")
    _add_wait_option(flash)
    add_bench(flash)
    flash.set_defaults(command=flash_board)


def add_bench(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--bench FILE``, the path of the bench file, to a parser."""
    parser.add_argument(
        "--bench", type=Path, default=DEFAULT_BENCH, metavar="FILE", help=f"the bench file (default: {DEFAULT_BENCH})"
    )


def _add_node_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--node", type=int, action="append", default=[], help="only this node; may be repeated (default: all)"
    )


def _add_wait_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--wait",
        type=float,
        default=PATIENCE_S,
        metavar="S",
        help=f"time to wait for a board that was disconnected (default: {PATIENCE_S:g} s)",
    )


def show_ports(options: argparse.Namespace) -> int:
    """Print a list of the serial ports, with their USB identity, their node, and the program that answers.

    Print the bootloader drives and the kinds of virtual motes too. Return 0.
    """
    from workbench import motes
    from workbench.motes import program
    from workbench.motes.bench import answers, drives, flash, repl
    from workbench.motes.bench.bench_file import read_bench
    from workbench.motes.bench.devices import Device, list_devices, match_boards

    bench = read_bench(options.bench, is_new=True)
    devices = list_devices()
    match = match_boards(bench.boards, devices)
    nodes_by_port = {device.port: node for node, device in match.devices.items()}
    listed_ports = {device.port for device in devices}
    devices += [Device(port, product="named by --probe") for port in options.probe if port not in listed_ports]
    for device in devices:
        node_text = f"node {nodes_by_port[device.port]}, " if device.port in nodes_by_port else ""
        print(f"{device.port:30} {node_text}{device}", flush=True)
        is_probed = device.is_known_vendor or device.port in options.probe
        if is_probed and not options.no_probe:
            print(f"{'':30} {answers.probe(device.port).text}", flush=True)
        elif not options.no_probe and device.vid is not None:
            print(f"{'':30} not probed, as no board of its USB vendor is known; to probe it: --probe {device.port}")
    for drive in drives.find_drives():
        print(f"{drive.folder!s:30} bootloader drive of {drive.model} ({drive.board_id}): workbench motes flash FILE")
    for note in (*match.problems.values(), *match.notes):
        print(f"{options.bench}: {note}")
    for kind in (motes.MICROPYTHON, motes.C, motes.CORTEX_M3):
        print(f"{f'virtual, {kind}':30} {motes.missing(kind) or 'as many as a scenario has nodes'}")
    for sentence in (repl.missing(), flash.missing(), program.missing()):
        if sentence:
            print(f"{'boards':30} {sentence}")
    return 0


def parse_setting(text: str) -> tuple[str, Any]:
    """Parse an option "KEY=VALUE": return the key, and the value as JSON or, if it is not JSON, as text."""
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE, such as channel=6")
    if key == "wifi.key":
        raise argparse.ArgumentTypeError(
            "the Wi-Fi key must not be in a bench file; set the environment variable WORKBENCH_WIFI_KEY and provision"
        )
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def make_settings(board: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the settings of a board from (key, value) pairs.

    ``board`` is the name of the board's driver. A key "wifi.name" sets the key "name" of the object "wifi". Raises
    LinkError if "wifi" already has a value that is not an object.
    """
    settings: dict[str, Any] = {"board": board}
    for key, value in pairs:
        outer, dot, inner = key.partition(".")
        if not dot:
            settings[outer] = value
        elif isinstance(settings.setdefault(outer, {}), dict):
            settings[outer][inner] = value
        else:
            raise LinkError(f"--set {key}: {outer} has a value already; give either {outer} or {key}")
    return settings


def name_boards(options: argparse.Namespace) -> int:
    """Give boards node numbers and write them into the bench file; return 1 if a board failed, else 0."""
    from workbench.motes.bench import provision
    from workbench.motes.bench.answers import MICROPYTHON, probe
    from workbench.motes.bench.bench_file import read_bench
    from workbench.motes.bench.devices import list_devices, match_boards, select_distinct

    bench = read_bench(options.bench, is_new=True)
    devices = list_devices()
    distinct_devices = select_distinct(devices)
    if options.ports:
        devices_by_port = {device.port: device for device in devices}
        for port in options.ports:
            if port not in devices_by_port:
                ports = ", ".join(devices_by_port) or "none"
                raise LinkError(f"{port} is not a serial port of this machine; ports are {ports}")
        chosen = [devices_by_port[port] for port in options.ports]
    else:
        named = set(match_boards(bench.boards, devices).devices.values())
        chosen = [device for device in distinct_devices if device.is_known_vendor and device not in named]
    if not chosen:
        raise LinkError("no board without a node is connected; `workbench motes list` shows the ports")
    if options.node is not None and len(chosen) != 1:
        raise LinkError(
            f"--node is for a single board, and {len(chosen)} boards are chosen; give the port of one board"
        )
    exit_code = 0
    for device in chosen:
        twins = [other for other in distinct_devices if other.identity == device.identity]
        answer = probe(device.port)
        chip_id = answer.interpreter.chip_id if answer.interpreter is not None else None
        try:
            board = options.board
            if board is None:
                if answer.kind != MICROPYTHON or answer.interpreter is None:
                    raise LinkError(
                        f"{device.port}: the kind of board is not detected ({answer.text}); flash MicroPython, or give "
                        "--board"
                    )
                board = provision.suggest_board(answer.interpreter)
            settings = make_settings(board, options.set)
            provision.settings_file(settings, 0, "a key only for the check")
            node = bench.assign(device, options.node, settings, chip_id, len(twins) == 1)
        except LinkError as error:
            exit_code = _report_error("name", error)
            continue
        bench.save()
        print(f"node {node}: {device.port}, {device}, board {board}", flush=True)
        if chip_id is None and (not device.serial_number or len(twins) > 1):
            print(
                f"workbench motes name: node {node} is recognized by its USB socket alone, because its board has no "
                "serial number of its own and its chip id was not read; keep such boards in their sockets",
                file=sys.stderr,
            )
    return exit_code


def provision_boards(options: argparse.Namespace) -> int:
    """Copy the program and the settings onto the boards of a bench; return 1 if a board failed, else 0."""
    from workbench.motes import program
    from workbench.motes.bench import ports, provision, repl
    from workbench.motes.bench.bench_file import read_bench

    if sentence := repl.missing():
        raise LinkError(sentence)
    if not options.source and (sentence := program.missing()):
        print(f"workbench motes provision: {sentence}", file=sys.stderr)
    bench = read_bench(options.bench)
    nodes = options.node or [entry["node"] for entry in bench.boards]
    protocol = _find_protocol(options.protocol)
    ask = getpass if sys.stdin.isatty() else None
    wifi_key = None
    if any("wifi" in bench.entry(node)["settings"] for node in nodes):
        wifi_key = provision.wifi_key(ask)
    exit_code = 0
    for node in nodes:
        entry = bench.entry(node)
        try:
            settings_json = provision.settings_file(entry["settings"], node, wifi_key)
            board = entry["settings"]["board"]
            files = provision.make_files(board, protocol, settings_json, False if options.source else None)
            copied = provision.provision(
                ports.make_finder(bench, node),
                board,
                files,
                _make_reporter(node),
                _make_progress(f"node {node}"),
                options.wait,
                entry.get("chip_id"),
            )
        except LinkError as error:
            exit_code = _report_error("provision", f"node {node}: {error}")
            continue
        entry["program"] = {"protocol": options.protocol, "sha256": provision.digest_program(files)}
        bench.save()
        print(
            f"node {node}: {copied.written} files written ({copied.size_B:,} bytes), {copied.deleted} deleted, "
            f"{copied.unchanged} unchanged; all {len(files)} verified",
            flush=True,
        )
    return exit_code


def _find_protocol(name: str | None) -> Any:
    """Return the public protocol class called ``name``; None if ``name`` is None.

    Raises ScenarioError if it is unknown.
    """
    import workbench

    if name is None:
        return None
    if name not in PROTOCOLS:
        raise ScenarioError(
            f"unknown protocol {name}{meant(name, PROTOCOLS)}; the protocols are {', '.join(PROTOCOLS)}"
        )
    return getattr(workbench, name)


def flash_board(options: argparse.Namespace) -> int:
    """Write a firmware file onto a board; if a node was given, record the file's digest in the bench file. Return 0."""
    from workbench.motes.bench import flash, ports
    from workbench.motes.bench.bench_file import read_bench

    firmware = flash.read_firmware(options.file)
    bench = read_bench(options.bench) if options.node is not None else None
    entry = bench.entry(options.node) if bench is not None else None
    progress = _make_progress(firmware.name)
    report = _make_reporter(None)
    if firmware.is_uf2:
        if options.port:
            raise LinkError(
                f"{firmware.name} is a UF2 file, which is copied onto a bootloader drive; give --drive "
                "instead of --port"
            )
        folder = flash.flash_drive(firmware, options.drive, report, progress, options.wait)
        print(f"copied {firmware.name} onto {folder}; the board restarts with it")
    else:
        if options.drive:
            raise LinkError(
                f"{firmware.name} is for an ESP32, which is flashed through a serial port; give --port "
                "instead of --drive"
            )
        if bench is not None:
            find_port = ports.make_finder(bench, options.node)
        elif options.port:
            find_port = _make_fixed_finder(options.port)
        else:
            raise LinkError(f"{firmware.name} is for an ESP32; give its port by --port, or its node by --node")
        chip = flash.flash_esp32(find_port, firmware, report, progress, options.wait)
        print(f"wrote {firmware.name} into the flash of the {chip}, and verified it")
    print(f"SHA-256 {firmware.digest}")
    if bench is not None and entry is not None:
        entry["firmware"] = {"file": firmware.name, "sha256": firmware.digest}
        bench.save()
    return 0


def _make_fixed_finder(port: str) -> Callable[[], str | None]:
    """Return a function that returns ``port``, or None if the port does not exist.

    Its first call returns ``port`` in any case, so that a mistyped port leads to an error when it is opened. The URL of
    a socket is always returned.
    """
    calls = itertools.count()

    def find() -> str | None:
        if next(calls) == 0 or "://" in port:
            return port  # so that a mistyped port ends in the error of opening it
        from workbench.motes.bench.devices import list_devices

        return port if port in [device.port for device in list_devices()] else None

    return find


def _report_error(command: str, error: object) -> int:
    print(f"workbench motes {command}: {error}", file=sys.stderr, flush=True)
    return FAILED


def _make_reporter(node: int | None) -> Callable[[str], None]:
    """Return a function that prints a sentence on a board to standard error.

    ``node`` is the number that precedes the sentence; None: no number.
    """
    prefix = "" if node is None else f"node {node}: "
    return lambda text: print(f"{prefix}{text}", file=sys.stderr, flush=True)


def _make_progress(name: str) -> Callable[[int, int], None] | None:
    """Return a function that prints how many bytes of the file ``name`` are written, on one line of the terminal.

    Returns None if standard error is not a terminal.
    """
    if not sys.stderr.isatty():
        return None

    def progress(done_B: int, total_B: int) -> None:
        end = "\n" if done_B >= total_B else ""
        print(f"\r{name}: {done_B:,} of {total_B:,} bytes", end=end, file=sys.stderr, flush=True)

    return progress
