"""The ports at which the boards of a bench file are connected now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from workbench.errors import LinkError
from workbench.motes.bench import devices as usb
from workbench.motes.bench.answers import read_chip
from workbench.motes.bench.bench_file import Bench, read_bench


def match_connected(bench: Bench, nodes: Sequence[int] | None = None) -> usb.Match:
    """Match the bench's boards with the devices that are connected now.

    ``nodes`` are the nodes whose boards are wanted; None: all. Boards that USB serial numbers do not distinguish are
    queried for their chips, if the bench file has these; the query restarts their programs.
    """
    entries = [entry for entry in bench.boards if nodes is None or entry["node"] in nodes]
    # An identical board that is not of interest must not be taken for one that is.
    identities = [usb.identity_of(entry) for entry in entries]
    entries += [entry for entry in bench.boards if entry not in entries and usb.identity_of(entry) in identities]
    return usb.match_boards(entries, usb.list_devices(), lambda device: read_chip(device.port))


def find_ports(path: Path, nodes: Sequence[int]) -> dict[int, str]:
    """Return {node: port} for ``nodes``, whose boards are in the bench file at ``path``.

    Raises LinkError if the file lacks a node, or a node's board is not connected.
    """
    bench = read_bench(path)
    for node in nodes:
        bench.entry(node)
    match = match_connected(bench, nodes)
    for node in nodes:
        if node in match.problems:
            raise LinkError(f"{path}: {match.problems[node]}")
    return {node: match.devices[node].port for node in nodes}


def make_finder(bench: Bench, node: int) -> Callable[[], str | None]:
    """Return a function that returns the port of a node's board, or None while the board is not connected.

    The function's first call may query chips to recognize the board, and raises LinkError if the board is not
    connected. Later calls use only the USB serial number or the USB socket of the first call, because the chip cannot
    be queried while files are copied.
    """
    is_first = True
    last_location: str | None = None
    entry = bench.entry(node)

    def find() -> str | None:
        nonlocal is_first, last_location
        if is_first:
            match = match_connected(bench, [node])
            is_first = False
            device = match.devices.get(node)
            if device is None:
                raise LinkError(match.problems[node])
            last_location = device.location
            return device.port
        devices = usb.select_distinct(usb.list_devices())
        candidates = [device for device in devices if device.identity == usb.identity_of(entry)]
        same_socket = [device for device in candidates if device.location == last_location]
        if len(candidates) == 1 and candidates[0].serial_number:
            return candidates[0].port
        return same_socket[0].port if same_socket else None

    return find
