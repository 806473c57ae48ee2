"""A run's frames taken apart, for the player's table of messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from workbench.analysis.frames import frames as frames_of
from workbench.analysis.frames import heard
from workbench.errors import WorkbenchError
from workbench.protocols.dissection import Field, dissect
from workbench.sim.rows import Columns

MOST_FRAMES = 2_000
# In a notebook a picture must not wait for it: the run is played once more.
QUICK_NODES, QUICK_FRAMES = 150, 4_000
AROUND = 100  # frames before and behind one that is looked at: whoever goes on to the next finds it there


def told(run: Any, quick: bool = False) -> dict[str, Any] | None:
    """The first frames with their bytes and fields: frames, [hex, fields] of each; at, row of the trace -> which; note.

    quick: nothing but a note for runs that are not small. Equal frames stand once.
    """
    if quick and (len(run.scenario.topology) > QUICK_NODES or run.metrics["transmissions"] > QUICK_FRAMES):
        return note("run.frames() has the bytes of this run's messages; an exported page has those of the first ones.")
    try:
        frames = frames_of(run, most=MOST_FRAMES)
    except WorkbenchError as error:
        return _missing(error)
    told = _told(run.scenario.protocol, frames)
    if len(told["at"]) == MOST_FRAMES:
        told["note"] = f"An exported page has the bytes of the first {MOST_FRAMES:,} messages."
    return told


def told_around(run: Any, row: int, look: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """As `told`, of the frame of a row of the trace and those sent before and after it.

    ``look`` is called now and then while the run is played once more; what it raises ends it.
    """
    sent = Columns(run.trace).where(event="sent")
    place = int(np.searchsorted(sent, row))
    rows = sorted({row, *sent[max(place - AROUND, 0) : place + AROUND].tolist()})
    try:
        frames = heard(run, rows, look=look)
    except WorkbenchError as error:
        return _missing(error)
    return _told(run.scenario.protocol, frames)


def _missing(error: WorkbenchError) -> dict[str, Any]:
    return note(f"The bytes of messages are not at hand: {error}.")


def note(text: str) -> dict[str, Any]:
    """No frames, but a sentence in their place."""
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
            told.append([frame.hex(), [_field(one) for one in dissect(protocol, *key).fields]])
        at[row] = known[key]
    return {"at": at, "frames": told, "note": ""}


def _field(field: Field) -> list[Any]:
    return [field.name, field.start, field.end, field.text, [_field(one) for one in field.children]]
