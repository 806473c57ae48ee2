"""Which code plays a run: a digest for each room of the package that a run goes through, and for the user's own code.

A sweep keeps one digest of all this with each row. `workbench.sweeps.code` says what is a part of it and what is not. A
record has one for each room, so that it can be told where the code has changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from typing import Any

from workbench.protocols.protocol import Protocol


def digests(protocol: Protocol) -> dict[str, str]:
    """{room: 12 hex digits} of the package's code that a run of a protocol goes through.

    "draws" stands for the modules of the package itself, "protocols" for the contract of nodes.
    """
    from workbench.sweeps import code, user_code

    pieces = [user_code.piece(name, thing) for name, thing in user_code.of(protocol).items()]
    folders = code.sources_of(code.folders_of(protocol, pieces))
    return of_rooms((*code.GENERIC, *(f"protocols/{name}" for name in sorted(folders))))


def of_rooms(rooms: Iterable[str]) -> dict[str, str]:
    """The digests of these rooms; those that the package does not have are left out, whatever their names are."""
    return {room: digest for room in rooms if (digest := _digest(room))}


@cache
def _digest(room: str) -> str:
    """12 hex digits; "" if there is no such room."""
    from workbench.sweeps import code

    content = code.sources(room)
    return "" if content is None else hashlib.sha256(content).hexdigest()[:12]


def of_user(protocol: Protocol) -> dict[str, dict[str, str]]:
    """{name: {"module", "digest"}} of the user's code that a protocol calls; empty if there is none."""
    from workbench.sweeps import user_code

    return {name: _told(name, thing) for name, thing in user_code.of(protocol).items()}


def _told(name: str, thing: Any) -> dict[str, str]:
    from workbench.sweeps import user_code

    return {"module": getattr(thing, "__module__", None) or "", "digest": user_code.digest({name: thing})}
