"""Which code plays a run: a digest for each room of the package that a run goes through, and for the user's own code.

A sweep keeps one digest of all this with each row (`workbench.sweeps.code`, which says what is a part of it and what
is not). A record has one for each room, so that it can be told where the code has changed. Line ends do not count: a
checkout on Windows has others.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from workbench.protocols.protocol import Protocol

PACKAGE = "workbench"
_PROTOCOLS = f"{PACKAGE}.protocols."
_ALONE = ("draws", "protocols")  # rooms without the folders in them
_NO_PART_OF_A_RUN = ("__init__", "java", "public_names", "folded_errors")  # of the files beside the rooms


def digests(protocol: Protocol) -> dict[str, str]:
    """{room: 12 hex digits} of the package's code that a run of a protocol goes through.

    "draws" stands for the modules of the package itself, "protocols" for the contract of nodes.
    """
    return of_rooms((*_generic(), *(f"protocols/{name}" for name in sorted(_folders(protocol)))))


def of_rooms(rooms: Iterable[str]) -> dict[str, str]:
    """The digests of these rooms; those that the package does not have are left out, whatever their names are."""
    generic, found = _generic(), {}
    for room in rooms:
        if room in generic:
            found[room] = _digest(generic[room], with_folders=room not in _ALONE)
        elif room.startswith("protocols/") and room[10:].isidentifier() and _source(room).is_dir():
            found[room] = _digest(room, with_folders=True)
    return found


def _generic() -> dict[str, str]:
    """The rooms that runs of all protocols go through, and the folder of each."""
    from workbench.sweeps.code import ROOMS

    return {"draws": "", "protocols": "protocols", **{room: room for room in ROOMS}}


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
    from workbench.sweeps.code import LEFT_OUT

    for one in sorted(folder.iterdir(), key=lambda one: one.name):
        stem = one.name.partition(".")[0]
        if stem in LEFT_OUT or (folder == _source("") and stem in _NO_PART_OF_A_RUN):
            continue
        if one.is_dir():
            if with_folders and one.name != "__pycache__":
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
