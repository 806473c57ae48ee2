"""A run's frames taken apart, for the player's table of messages."""

from __future__ import annotations

from typing import Any

from workbench.errors import WorkbenchError
from workbench.protocols.frame_fields import Field, take_apart

MOST_FRAMES = 2_000
# In a notebook a picture must not wait for it: the run is played once more.
QUICK_NODES, QUICK_FRAMES = 150, 4_000


def told(run: Any, quick: bool = False) -> dict[str, Any] | None:
    """The first frames with their bytes and fields: frames, [hex, fields] of each; at, row of the trace -> which; note.

    quick: nothing but a note for runs that are not small. Equal frames stand once.
    """
    if quick and (len(run.scenario.topology) > QUICK_NODES or run.metrics["transmissions"] > QUICK_FRAMES):
        return _note("run.frames() has the bytes of this run's messages; an exported page has those of the first ones.")
    try:
        frames = run.frames(most=MOST_FRAMES)
    except WorkbenchError as error:
        return _note(f"The bytes of messages are not at hand: {error}.")
    return _told(run.scenario.protocol, frames)


def _note(text: str) -> dict[str, Any]:
    return {"at": {}, "frames": [], "note": text}


def _told(protocol: Any, frames: Any) -> dict[str, Any]:
    known: dict[tuple[bytes, bool], int] = {}
    told: list[list[Any]] = []
    at: dict[int, int] = {}
    columns = [frames[name].to_pylist() for name in ("row", "peer", "frame")]
    for row, peer, frame in zip(*columns, strict=True):
        key = frame, peer < 0
        if key not in known:
            known[key] = len(told)
            told.append([frame.hex(), [_field(one) for one in take_apart(protocol, *key).fields]])
        at[row] = known[key]
    note = f"An exported page has the bytes of the first {len(at):,} messages." if len(at) == MOST_FRAMES else ""
    return {"at": at, "frames": told, "note": note}


def _field(field: Field) -> list[Any]:
    return [field.name, field.start, field.end, field.text, [_field(one) for one in field.children]]
