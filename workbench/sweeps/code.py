"""The digest of the code that a point runs: what was computed by other code is another result.

It covers the sources of the generic rooms that a run goes through (`ROOMS`, and the files beside them), those in the
folder of the point's protocol and of the protocols that this one refers to, and the user's own code: protocol, filters,
measure. What only draws or talks to a network (`LEFT_OUT`) is no part of it. A file without its source counts by
its code. Line ends do not count: a checkout on Windows has others. A record (`records.record`) has a digest of
the same sources for each room. Nothing here goes by the package's version, which stays the same while somebody works on
it.
"""

from __future__ import annotations

import hashlib
import marshal
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from workbench.errors import WorkbenchError
from workbench.protocols.protocol import Protocol
from workbench.sweeps import user_code
from workbench.sweeps.references import PACKAGE
from workbench.sweeps.sources import was_edited

ROOMS = ("attributes", "coding", "topology", "sim")
_PROTOCOLS = "protocols"
# What a run of any protocol goes through: the modules beside the rooms, the contract of nodes, and the rooms.
GENERIC = ("draws", _PROTOCOLS, *ROOMS)
_PROTOCOLS_NAMED = f"{PACKAGE}.{_PROTOCOLS}"
LEFT_OUT = ("views", "cli", "udp", "processes", "dissector", "explain")
_NO_PART_OF_A_RUN = ("__init__", "java", "public_names", "folded_errors", "extensions")  # of the files beside the rooms
_COMPILED_HEADER_B = 16
_NAMED = re.compile(rb"workbench\.protocols\.(\w+)")
_IMPORTED = re.compile(rb"from workbench\.protocols import ([\w, ]+)")


class Codes:
    """Digests of the code of a sweep's points. The user's code is looked at once: it stays as it was when a run began.

    Pickled, it carries the digests of the user's code, which travels by value, and leaves those of the package to be
    computed where it goes: a worker says which package it has.
    """

    def __init__(self, measure: Callable[..., Any] | None = None, protocols: Iterable[Protocol] = ()) -> None:
        self._measure = measure
        self._mine: dict[tuple[str, int], tuple[Any, user_code.Piece]] = {}
        self._told: dict[str, user_code.Piece] = {}
        self._known: dict[Any, str] = {}
        for protocol in protocols:
            self.of(protocol)

    def of(self, protocol: Protocol) -> str:
        """16 hex digits that change with the code that a point with this protocol runs."""
        named = user_code.of(protocol)
        if self._measure is not None:
            named["measure"] = self._measure
        pieces = tuple((name, self._piece(name, named[name])) for name in sorted(named))
        identity = (type(protocol), protocol.fast, protocol.metrics, pieces)
        if identity not in self._known:
            self._known[identity] = _combined(protocol, pieces)
        return self._known[identity]

    @property
    def untracked(self) -> list[str]:
        """Descriptions, a few words each, of steps in the user's code that a digest cannot follow."""
        return list(dict.fromkeys(step for _, piece in self._mine.values() for step in piece.untracked))

    def _piece(self, name: str, thing: Any) -> user_code.Piece:
        if name in self._told:
            return self._told[name]
        identity = (name, id(thing))
        if identity not in self._mine:
            self._mine[identity] = (thing, user_code.piece(name, thing))  # The thing is held: its id stays its own.
        return self._mine[identity][1]

    def __getstate__(self) -> dict[str, Any]:
        mine = {name: piece for (name, _), (_, piece) in self._mine.items()}
        return {"_measure": self._measure, "_mine": {}, "_told": {**self._told, **mine}, "_known": {}}


def _combined(protocol: Protocol, pieces: tuple[tuple[str, user_code.Piece], ...]) -> str:
    folders = folders_of(protocol, (piece for _, piece in pieces))
    words = (of_package(frozenset(folders)), *(f"{name} {piece.digest}" for name, piece in pieces))
    return _hex("\n".join(words).encode())


def folders_of(protocol: Protocol, pieces: Iterable[user_code.Piece]) -> set[str]:
    """The folders of protocols that a protocol, made of these pieces of the user's, is in and names itself."""
    modules = {base.__module__ for base in type(protocol).__mro__} | {protocol.fast, protocol.metrics}
    found = {name for piece in pieces for name in piece.protocols}
    return found.union(*(_folders(module.encode()) for module in modules))


@cache
def of_package(protocols: frozenset[str]) -> str:
    """16 hex digits of the package's own code that runs with these protocols (names of their folders)."""
    found = sources_of(protocols)
    sha = hashlib.sha256()
    for content in (*(sources(room) for room in GENERIC), *(found[name] for name in sorted(found))):
        sha.update(hashlib.sha256(content or b"").digest())
    _check_loaded(found)
    return sha.hexdigest()[:16]


def sources_of(protocols: Iterable[str]) -> dict[str, bytes]:
    """folder -> its sources, of these protocols and all that they refer to."""
    waiting = sorted(protocols)
    seen, found = set(waiting), {}
    while waiting:
        name = waiting.pop()
        content = sources(f"{_PROTOCOLS}/{name}")
        if content is None:
            continue  # A file beside the protocols' folders: it is in the rooms.
        found[name] = content
        more = _folders(content) - seen
        seen |= more
        waiting += sorted(more)
    return found


def sources(room: str) -> bytes | None:
    """Names and contents of the modules in one of the `GENERIC` rooms, or in "protocols/NAME".

    None for what the package does not have, whatever its name is.
    """
    root = resources.files(PACKAGE)
    of_protocol = room.removeprefix(f"{_PROTOCOLS}/")
    if room == GENERIC[0]:
        contents = _contents(root, is_deep=False, without=_NO_PART_OF_A_RUN)
    elif room == _PROTOCOLS:
        contents = _contents(root / room, is_deep=False)
    elif room in ROOMS or (of_protocol != room and of_protocol.isidentifier() and (root / room).is_dir()):
        contents = _contents(root.joinpath(*room.split("/")), is_deep=True)
    else:
        return None
    return b"".join(contents)


def _check_loaded(protocols: Iterable[str]) -> None:
    """Raise WorkbenchError if a source was edited after it was loaded: the digest would be of other code."""
    rooms = (*(f"{PACKAGE}.{room}" for room in ROOMS), *(f"{_PROTOCOLS_NAMED}.{one}" for one in protocols))
    for name, module in list(sys.modules.items()):
        is_covered = name.startswith(tuple(f"{room}." for room in rooms)) or name in rooms
        if is_covered and not set(name.split(".")) & set(LEFT_OUT) and was_edited(module):
            raise WorkbenchError(
                f"{module.__file__} was edited after this process had loaded it; restart the process (in a notebook: "
                "the kernel), so that its results are those of the code that is there"
            )


def _folders(text: bytes) -> set[str]:
    """The protocols that a source names: by the path of a module, in an import or as a text."""
    found = set(_NAMED.findall(text))
    for names in _IMPORTED.findall(text):
        found.update(name.split()[0] for name in names.split(b",") if name.strip())
    return {name.decode() for name in found}


def _contents(folder: Traversable, is_deep: bool, without: tuple[str, ...] = ()) -> Iterator[bytes]:
    """Name and content of each module of a folder, in the order of their names; of its folders too, if it is deep."""
    there = {one.name: one for one in folder.iterdir()}
    for name in sorted(there):
        stem, _, ending = name.rpartition(".")
        if stem in LEFT_OUT or name in LEFT_OUT or stem in without:
            continue
        if ending == "py":
            yield name.encode() + b"\0" + there[name].read_bytes().replace(b"\r\n", b"\n") + b"\0"
        elif ending == "pyc" and f"{stem}.py" not in there:
            yield name.encode() + b"\0" + _of_compiled(there[name].read_bytes()) + b"\0"
        elif is_deep and name != "__pycache__" and there[name].is_dir():
            yield name.encode() + b"/" + b"".join(_contents(there[name], is_deep=True))


def _of_compiled(content: bytes) -> bytes:
    code = marshal.loads(content[_COMPILED_HEADER_B:])
    return user_code.digest({"module": code}).encode()


def _hex(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
