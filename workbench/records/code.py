"""Which code plays a run: a digest for each room of the package that a run goes through, and for the user's own code.

A room's digest is that of its sources, so that a change of a line is told, and where. What only draws (the views of a
protocol) is left out. Line ends do not count: a checkout on Windows has others.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from workbench.protocols.protocol import Protocol

PACKAGE = "workbench"
ROOMS = ("attributes", "coding", "topology", "sim")
_PROTOCOLS = f"{PACKAGE}.protocols."
_LEFT_OUT = ("views", "__pycache__")


def digests(protocol: Protocol) -> dict[str, str]:
    """{room: 12 hex digits} of the package's code that a run of a protocol goes through.

    "draws" stands for the modules of the package itself, "protocols" for the contract of nodes.
    """
    found = {"draws": _digest("", False), "protocols": _digest("protocols", False)}
    folders = sorted(_folders(protocol))
    return found | {room: _digest(room, True) for room in (*ROOMS, *(f"protocols/{name}" for name in folders))}


def _folders(protocol: Protocol) -> set[str]:
    """The folders of a protocol, of what it is derived from, and of what it says that it is a kind of."""
    classes = (*type(protocol).__mro__, *protocol.kind_of_node().__mro__)
    modules = {cls.__module__ for cls in classes}
    found = {module.split(".")[2] for module in modules if module.startswith(_PROTOCOLS)}
    # The contract's modules stand in the same folder as the protocols' folders.
    names = {name for name in found if _source(f"protocols/{name}").is_dir()}
    kinds = (getattr(importlib.import_module(_PROTOCOLS + name), "KIND_OF", "") for name in sorted(names))
    return names | {kind for kind in kinds if kind}


def _source(room: str) -> Traversable:
    return files(PACKAGE).joinpath(*filter(None, room.split("/")))


@cache
def _digest(room: str, with_folders: bool) -> str:
    sha = hashlib.sha256()
    for name, data in _sources(_source(room), "", with_folders):
        sha.update(f"{name} {len(data)} ".encode() + data)
    return sha.hexdigest()[:12]


def _sources(folder: Traversable, path: str, with_folders: bool) -> Iterator[tuple[str, bytes]]:
    """(path, bytes) of the sources in a folder, in order of their names; it may be one in a zip file."""
    for one in sorted(folder.iterdir(), key=lambda one: one.name):
        if one.is_dir():
            if with_folders and one.name not in _LEFT_OUT:
                yield from _sources(one, f"{path}{one.name}/", True)
        elif one.name.endswith(".py"):
            yield path + one.name, one.read_bytes().replace(b"\r\n", b"\n")


def of_user(protocol: Protocol) -> dict[str, dict[str, str]]:
    """{name: {"module", "digest"}} of the user's code that a protocol calls; empty if there is none."""
    from workbench.sweeps import user_code

    return {name: _told(name, thing) for name, thing in user_code.of(protocol).items()}


def _told(name: str, thing: Any) -> dict[str, str]:
    from workbench.sweeps import user_code

    return {"module": getattr(thing, "__module__", None) or "", "digest": user_code.digest({name: thing})}
