"""A run's frames taken apart, for the player's table of messages."""

from __future__ import annotations

from typing import Any

from workbench.errors import WorkbenchError

MOST_FRAMES = 2_000
# In a notebook a picture must not wait for it: the run is played once more.
QUICK_NODES, QUICK_FRAMES = 150, 4_000


def told(run: Any, quick: bool = False) -> dict[str, Any] | None:
    """The first frames with their bytes and fields: {"at": row of the trace -> index, "frames": [[hex, fields]], "note"}.

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
