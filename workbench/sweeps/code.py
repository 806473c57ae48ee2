"""Digests of the code that a point of a sweep runs. Results of different code count as different results.

A digest is a hash of source text, by which a stored result shows the code that produced it.

The digest of a point covers

    the sources that every run executes: the package's folders in `FOLDERS`, and modules outside of the folders
    the folder of the point's protocol, and of the protocols to which it refers
    the user's own code: protocol, filters, measure

Modules that only draw or communicate over a network (`LEFT_OUT`) are excluded. A module without its source is
represented by its compiled code. Line ends are normalized, since they differ on Windows. The package's version is not
used, since it does not change during development.

The saved record of a run (`workbench.records.record`) has a separate digest for each folder of these sources.
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

FOLDERS = ("attributes", "coding", "topology", "sim")
_PROTOCOLS = "protocols"
# Code that a run of any protocol executes: modules beside the folders, the interface of nodes, and the folders.
GENERIC = ("draws", _PROTOCOLS, *FOLDERS)
_PROTOCOLS_MODULE = f"{PACKAGE}.{_PROTOCOLS}"
LEFT_OUT = ("views", "cli", "udp", "processes", "dissector", "explain")
# Modules beside the folders that no run executes.
_NOT_EXECUTED = ("__init__", "java", "public_names", "folded_errors", "extensions")
_COMPILED_HEADER_B = 16
_MENTIONED = re.compile(rb"workbench\.protocols\.(\w+)")
_IMPORTED = re.compile(rb"from workbench\.protocols import ([\w, ]+)")


class Codes:
    """A table of the code digests of a sweep's points.

    ``measure`` is the sweep's measure function. The constructor digests the code of ``protocols``. Each function or
    class of the user is digested once, so a later edit does not change its digest. A pickle contains the digests of
    the user's code, which is sent to workers by value. It does not contain the digests of the package: each worker
    computes them from its own package. So a worker with a different package is detected.
    """

    def __init__(self, measure: Callable[..., Any] | None = None, protocols: Iterable[Protocol] = ()) -> None:
        self._measure = measure
        self._pieces: dict[tuple[str, int], tuple[Any, user_code.Piece]] = {}
        self._received: dict[str, user_code.Piece] = {}
        self._digests: dict[Any, str] = {}
        for protocol in protocols:
            self.digest(protocol)

    def digest(self, protocol: Protocol) -> str:
        """Return the digest (16 hex digits) of the code that runs a sweep's point with the protocol ``protocol``."""
        code_objects = user_code.of(protocol)
        if self._measure is not None:
            code_objects["measure"] = self._measure
        pieces = tuple((name, self._get_piece(name, code_objects[name])) for name in sorted(code_objects))
        identity = (type(protocol), protocol.fast, protocol.metrics, pieces)
        if identity not in self._digests:
            self._digests[identity] = _digest_of_point(protocol, pieces)
        return self._digests[identity]

    @property
    def untracked(self) -> list[str]:
        """Actions of the user's code whose data no digest covers: texts such as "mine.measure reads files (open)"."""
        return list(dict.fromkeys(action for _, piece in self._pieces.values() for action in piece.untracked))

    def _get_piece(self, name: str, code_object: Any) -> user_code.Piece:
        if name in self._received:
            return self._received[name]
        identity = (name, id(code_object))
        if identity not in self._pieces:
            # Holding the object keeps its id unique.
            self._pieces[identity] = code_object, user_code.piece(name, code_object)
        return self._pieces[identity][1]

    def __getstate__(self) -> dict[str, Any]:
        digested_pieces = {name: piece for (name, _), (_, piece) in self._pieces.items()}
        return {
            "_measure": self._measure,
            "_pieces": {},
            "_received": {**self._received, **digested_pieces},
            "_digests": {},
        }


def _digest_of_point(protocol: Protocol, pieces: tuple[tuple[str, user_code.Piece], ...]) -> str:
    folders = folders_of(protocol, (piece for _, piece in pieces))
    digests = (package_digest(frozenset(folders)), *(f"{name} {piece.digest}" for name, piece in pieces))
    return _hash_bytes("\n".join(digests).encode())


def folders_of(protocol: Protocol, pieces: Iterable[user_code.Piece]) -> set[str]:
    """Return the names of the folders of all protocols to which a run's code belongs or refers.

    This code is the class of ``protocol`` with its base classes, fast twin and metrics, and the user's functions and
    classes, which ``pieces`` describe.
    """
    modules = {base.__module__ for base in type(protocol).__mro__} | {protocol.fast, protocol.metrics}
    folders = {name for piece in pieces for name in piece.protocols}
    return folders.union(*(_find_mentioned_protocols(module.encode()) for module in modules))


@cache
def package_digest(protocols: frozenset[str]) -> str:
    """Return the digest (16 hex digits) of the package's code for runs of ``protocols``, names of protocol folders.

    The code includes the protocols to which these protocols refer. Raises WorkbenchError if a module was edited after
    this process had loaded it.
    """
    folder_sources = sources_of(protocols)
    sha = hashlib.sha256()
    for module_content in (
        *(sources(folder) for folder in GENERIC),
        *(folder_sources[name] for name in sorted(folder_sources)),
    ):
        sha.update(hashlib.sha256(module_content or b"").digest())
    _check_loaded_modules(folder_sources)
    return sha.hexdigest()[:16]


def sources_of(protocols: Iterable[str]) -> dict[str, bytes]:
    """Return {name of a protocol folder: its sources as bytes} for ``protocols`` and all protocols that they need.

    A protocol needs each protocol that its sources mention, directly or through another protocol.
    """
    waiting_names = sorted(protocols)
    known_names, sources_by_name = set(waiting_names), {}
    while waiting_names:
        protocol_name = waiting_names.pop()
        folder_sources = sources(f"{_PROTOCOLS}/{protocol_name}")
        if folder_sources is None:
            continue  # A module beside the protocols' folders: `GENERIC` contains it.
        sources_by_name[protocol_name] = folder_sources
        new_names = _find_mentioned_protocols(folder_sources) - known_names
        known_names |= new_names
        waiting_names += sorted(new_names)
    return sources_by_name


def sources(folder: str) -> bytes | None:
    """Return the names and contents of all modules in a folder of the package as one string of bytes.

    ``folder`` is "protocols/NAME" or a name in `GENERIC`. The name "draws" is an exception: it selects the modules at
    the top of the package, which are in no folder. Returns None if the package has no such folder.
    """
    root = resources.files(PACKAGE)
    protocol_name = folder.removeprefix(f"{_PROTOCOLS}/")
    if folder == GENERIC[0]:
        contents = _read_module_contents(root, is_deep=False, without=_NOT_EXECUTED)
    elif folder == _PROTOCOLS:
        contents = _read_module_contents(root / folder, is_deep=False)
    elif folder in FOLDERS or (protocol_name != folder and protocol_name.isidentifier() and (root / folder).is_dir()):
        contents = _read_module_contents(root.joinpath(*folder.split("/")), is_deep=True)
    else:
        return None
    return b"".join(contents)


def _check_loaded_modules(protocols: Iterable[str]) -> None:
    """Raise WorkbenchError if a module that is used in runs of ``protocols`` was edited after this process loaded it.

    ``protocols`` are names of protocol folders.
    """
    covered_modules = (
        *(f"{PACKAGE}.{name_of_folder}" for name_of_folder in FOLDERS),
        *(f"{_PROTOCOLS_MODULE}.{protocol}" for protocol in protocols),
    )
    for module_name, module in list(sys.modules.items()):
        is_covered = module_name in covered_modules or module_name.startswith(
            tuple(f"{covered}." for covered in covered_modules)
        )
        if is_covered and not set(module_name.split(".")) & set(LEFT_OUT) and was_edited(module):
            raise WorkbenchError(
                f"{module.__file__} was edited after this process had loaded it; restart the process (in a notebook: "
                "the kernel), so that it runs the present code"
            )


def _find_mentioned_protocols(text: bytes) -> set[str]:
    """Return the names of the protocols that a source mentions, in an import or as a module path in a string."""
    names = set(_MENTIONED.findall(text))
    for import_list in _IMPORTED.findall(text):
        names.update(name.split()[0] for name in import_list.split(b",") if name.strip())
    return {name.decode() for name in names}


def _read_module_contents(folder: Traversable, is_deep: bool, without: tuple[str, ...] = ()) -> Iterator[bytes]:
    """Yield for each module in a folder a string of bytes with its name and content, sorted by name.

    With ``is_deep`` the modules of subfolders are included. Modules named in ``without`` are left out.
    """
    entries = {entry.name: entry for entry in folder.iterdir()}
    for entry_name in sorted(entries):
        stem, _, suffix = entry_name.rpartition(".")
        if stem in LEFT_OUT or entry_name in LEFT_OUT or stem in without:
            continue
        if suffix == "py":
            yield entry_name.encode() + b"\0" + entries[entry_name].read_bytes().replace(b"\r\n", b"\n") + b"\0"
        elif suffix == "pyc" and f"{stem}.py" not in entries:
            yield entry_name.encode() + b"\0" + _compiled_digest(entries[entry_name].read_bytes()) + b"\0"
        elif is_deep and entry_name != "__pycache__" and entries[entry_name].is_dir():
            yield entry_name.encode() + b"/" + b"".join(_read_module_contents(entries[entry_name], is_deep=True))


def _compiled_digest(content: bytes) -> bytes:
    code = marshal.loads(content[_COMPILED_HEADER_B:])
    return user_code.digest({"module": code}).encode()


def _hash_bytes(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
