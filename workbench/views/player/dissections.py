"""Dissected frames of a run (their bytes and fields), for the player's table of messages."""

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
# Larger runs get a note instead: the run is executed again for the bytes, and a notebook must not wait long.
QUICK_NODES, QUICK_FRAMES = 150, 4_000
AROUND = 100  # frames before and after the selected frame that are dissected with it, for quick browsing


def dissect_first(run: Any, quick: bool = False) -> dict[str, Any] | None:
    """Return the bytes and fields of the first `MOST_FRAMES` frames of a run.

    The run is executed again, because the trace has no bytes. With ``quick``, a large run is not executed. Then, or if
    the bytes are not available, the result has only a note. The result is a dictionary:

    frames: a list of [bytes in hex, fields], in which equal frames are stored once
    at: row number in the trace -> index in frames
    note: a sentence for the user, or ""
    """
    if quick and (len(run.scenario.topology) > QUICK_NODES or run.metrics["transmissions"] > QUICK_FRAMES):
        return note(
            "run.frames() returns the bytes of this run's messages; an exported page shows those of the first ones."
        )
    try:
        sent_frames = frames_of(run, most=MOST_FRAMES)
    except WorkbenchError as error:
        return _explain_missing(error)
    dissected_frames = _dissect_frames(run.scenario.protocol, sent_frames)
    if len(dissected_frames["at"]) == MOST_FRAMES:
        dissected_frames["note"] = f"An exported page shows the bytes of the first {MOST_FRAMES:,} messages."
    return dissected_frames


def dissect_around(run: Any, row: int, check_cancelled: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """Return the bytes and fields of the frame in row number ``row`` of the trace, and of the frames near it.

    The run is executed again, because the trace has no bytes. Meanwhile ``check_cancelled()`` is called repeatedly; it
    ends the work by raising an exception. The result is a dictionary:

    frames: a list of [bytes in hex, fields]
    at: row of the trace -> index in frames
    note: a sentence for the user, or ""
    """
    sent_rows = Columns(run.trace).where(event="sent")
    frame_index = int(np.searchsorted(sent_rows, row))
    nearby_rows = sorted({row, *sent_rows[max(frame_index - AROUND, 0) : frame_index + AROUND].tolist()})
    try:
        frames = heard(run, nearby_rows, on_progress=check_cancelled)
    except WorkbenchError as error:
        return _explain_missing(error)
    return _dissect_frames(run.scenario.protocol, frames)


def _explain_missing(error: WorkbenchError) -> dict[str, Any]:
    return note(f"The bytes of messages are not available: {error}.")


def note(text: str) -> dict[str, Any]:
    """Return the dictionary that `dissect_first` returns, without frames and with ``text`` as its note for the user."""
    return {"at": {}, "frames": [], "note": text}


def _dissect_frames(protocol: Any, frames: Any) -> dict[str, Any]:
    frame_numbers: dict[tuple[bytes, bool], int] = {}
    dissected: list[list[Any]] = []
    frame_of_row: dict[int, int] = {}
    frame_columns = [frames[name].to_pylist() for name in ("row", "peer", "frame")]
    for row, peer, frame in zip(*frame_columns, strict=True):
        key = frame, peer < 0
        if key not in frame_numbers:
            frame_numbers[key] = len(dissected)
            dissected.append([frame.hex(), [_plain_field(field) for field in dissect(protocol, *key).fields]])
        frame_of_row[row] = frame_numbers[key]
    return {"at": frame_of_row, "frames": dissected, "note": ""}


def _plain_field(field: Field) -> list[Any]:
    return [field.name, field.start, field.end, field.text, [_plain_field(child) for child in field.children]]
