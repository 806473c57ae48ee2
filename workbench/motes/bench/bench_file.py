"""The bench file: the node of each board, how the board is recognized, its settings without secrets, and digests.

    {"version": 1,
     "boards": [{"node": 0,
                 "usb": {"vid": "2E8A", "pid": "0005", "serial_number": "E6614103E7452A2F", "location": "1-1.2"},
                 "chip_id": "e6614103e7452a2f",
                 "settings": {"board": "pico-udp", "wifi": {"name": "desk"}},
                 "firmware": {"file": "RPI_PICO_W-v1.26.uf2", "sha256": "..."},
                 "program": {"protocol": "Diffusion", "sha256": "..."}}]}

``vid``, ``pid`` and ``serial_number`` identify the USB device. ``location`` is the USB socket of the board when
`workbench motes name` added it. ``chip_id`` is the identity of its chip, if MicroPython reported it. ``settings`` are
those of the board's settings.json (hardware/mote/settings.py) without ``node``. The Wi-Fi key is not stored: a file
that has it is refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.errors import LinkError
from workbench.motes.bench.devices import Device, identity_of

VERSION = 1
_TEXTS = ("serial_number", "location")
_MOST_NODE = 0xFFFFFFFF


class Bench:
    """The content of a bench file; ``boards`` is the list of its entries, each a dict, in ascending order of nodes."""

    def __init__(self, path: Path, boards: list[dict[str, Any]]) -> None:
        self.path = path
        self.boards = sorted(boards, key=lambda entry: entry["node"])

    def entry(self, node: int) -> dict[str, Any]:
        """Return the entry of a node. Raises LinkError if the bench has no board for the node."""
        for entry in self.boards:
            if entry["node"] == node:
                return entry
        nodes = ", ".join(str(entry["node"]) for entry in self.boards) or "none yet"
        raise LinkError(
            f"{self.path} has no board for node {node}, only for: {nodes}; add one by `workbench motes name`"
        )

    def assign(
        self,
        device: Device,
        node: int | None,
        settings: Mapping[str, Any],
        chip_id: str | None,
        is_unique: bool = True,
    ) -> int:
        """Add an entry that assigns a node to the board at ``device``, and return the node.

        ``node`` None: the smallest free number. ``settings`` are the board's, without the Wi-Fi key. ``chip_id`` is the
        identity of its chip, None if unknown. ``is_unique`` is whether no other connected device has the board's USB
        serial number. Raises LinkError if the node or the board is already assigned, or the settings are not valid.
        """
        usb = {name: value for name, value in device._asdict().items() if name not in ("port", "product")}
        for entry in self.boards:
            if chip_id and entry.get("chip_id"):
                is_same = entry["chip_id"] == chip_id
            elif device.serial_number and is_unique:
                is_same = identity_of(entry) == device.identity
            else:
                is_same = entry["usb"] == usb
            if is_same:
                raise LinkError(f"{device.port}: the board is node {entry['node']} of {self.path} already")
        taken = {entry["node"] for entry in self.boards}
        if node is None:
            node = next(number for number in range(len(taken) + 1) if number not in taken)
        elif node in taken:
            raise LinkError(f"{self.path}: node {node} is assigned to another board already; choose a free number")
        entry = {"node": node, "usb": usb, "settings": dict(settings)}
        if chip_id:
            entry["chip_id"] = chip_id
        self.boards = sorted([*self.boards, _check_entry(entry, str(self.path))], key=lambda board: board["node"])
        return node

    def save(self) -> None:
        """Write the file. A crash leaves either the former or the new content."""
        boards = [entry | {"usb": _usb_to_json(entry["usb"])} for entry in self.boards]
        part_path = self.path.with_name(self.path.name + ".part")
        part_path.write_text(json.dumps({"version": VERSION, "boards": boards}, indent=1) + "\n", encoding="utf-8")
        os.replace(part_path, self.path)


def read_bench(path: str | Path, is_new: bool = False) -> Bench:
    """Return the bench in the file at ``path``. With ``is_new``, a missing file gives a bench without boards.

    Raises LinkError, with one sentence, if the file is missing or not valid.
    """
    path = Path(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if is_new:
            return Bench(path, [])
        raise LinkError(f"{path} is missing; `workbench motes name --bench {path}` writes it") from None
    except (ValueError, OSError) as error:
        raise LinkError(f"{path} cannot be read as JSON: {error}") from None
    if not isinstance(content, dict) or content.get("version") != VERSION:
        version = content.get("version") if isinstance(content, dict) else None
        raise LinkError(f"{path}: version is {version!r}; this workbench reads version {VERSION}")
    boards = content.get("boards")
    if not isinstance(boards, list):
        raise LinkError(f"{path}: boards is {boards!r}; it must be a list")
    entries = [_check_entry(_parse_usb(entry, str(path)), str(path)) for entry in boards]
    nodes = [entry["node"] for entry in entries]
    for node in nodes:
        if nodes.count(node) > 1:
            raise LinkError(f"{path}: node {node} has several boards; give each board a number of its own")
    return Bench(path, entries)


def _check_entry(entry: dict[str, Any], place: str) -> dict[str, Any]:
    """Return ``entry`` unchanged if it is valid. Raises LinkError if it is not valid or contains a Wi-Fi key.

    ``place`` is the name of the bench file, for the error.
    """
    node = entry.get("node")
    if not isinstance(node, int) or isinstance(node, bool) or not 0 <= node <= _MOST_NODE:
        raise LinkError(f"{place}: node is {node!r}; it must be an integer from 0 to {_MOST_NODE}")
    settings = entry.get("settings")
    if not isinstance(settings, dict) or not isinstance(settings.get("board"), str):
        raise LinkError(
            f'{place}: the settings of node {node} must be an object with "board", the name of a driver '
            'such as "pico-udp"'
        )
    if isinstance(settings.get("wifi"), dict) and "key" in settings["wifi"]:
        raise LinkError(
            f"{place}: node {node} has a Wi-Fi key, which must not be in this file; remove it, and set the environment "
            "variable WORKBENCH_WIFI_KEY instead"
        )
    for name in ("firmware", "program"):
        if not isinstance(entry.get(name, {}), dict):
            raise LinkError(f"{place}: {name} of node {node} is {entry[name]!r:.60}; it must be a JSON object")
    if not isinstance(entry.get("chip_id", ""), str):
        raise LinkError(f"{place}: chip_id of node {node} is {entry['chip_id']!r:.60}; it must be a text")
    return entry


def _parse_usb(entry: Any, place: str) -> dict[str, Any]:
    """Return a copy of an entry of the JSON file, in which hexadecimal texts ``vid`` and ``pid`` are integers.

    Raises LinkError if the USB identity is missing or not valid. ``place`` is the name of the bench file, for the
    error.
    """
    if not isinstance(entry, dict) or not isinstance(entry.get("usb"), dict):
        raise LinkError(
            f'{place}: an entry of the list "boards" has no object "usb"; `workbench motes name` writes such entries'
        )
    usb = dict(entry["usb"])
    for name in ("vid", "pid"):
        try:
            usb[name] = None if usb.get(name) is None else int(usb[name], 16)
        except (TypeError, ValueError):
            raise LinkError(
                f"{place}: usb.{name} of node {entry.get('node')} is {usb[name]!r}; it must be four hexadecimal digits"
            ) from None
    for name in _TEXTS:
        if not isinstance(usb.setdefault(name, None), str | None):
            raise LinkError(
                f"{place}: usb.{name} of node {entry.get('node')} is {usb[name]!r}; it must be a text or null"
            )
    return entry | {"usb": usb}


def _usb_to_json(usb: Mapping[str, Any]) -> dict[str, Any]:
    numbers = {name: None if usb[name] is None else f"{usb[name]:04X}" for name in ("vid", "pid")}
    return numbers | {name: usb.get(name) for name in _TEXTS}
