"""Layers of frames, for runs of every protocol: frames sent, frames lost, and deliveries."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from workbench.columns import find_last, unique_inverse
from workbench.sim.rows import Columns
from workbench.views import palette
from workbench.views.layers import Layer, Look, MessagePaths, Recorded, table
from workbench.views.player.playback import PlaybackClock, make_clock
from workbench.views.spans import sampled, thinned

MOST = 60_000
LOST_AT = 0.6  # share of the link, from the sender on, after which a lost frame gets its cross

BROADCASTS, PACKETS, QUIET = "broadcasts", "packets", "quiet messages"
LOST = Look("lost", palette.LOST, 0.95, 8, 2.4)
DELIVERED = Look("delivered", palette.DELIVERED, 2.2, 15, 2.6)


@dataclass(frozen=True)
class Sent:
    """The frames of a trace in order, and their outcome. Each array has shape (frames,) unless stated.

    columns: the trace.
    rows: the row of each frame in the trace.
    of: for each row of the trace, the index of the last frame sent up to it, -1 before the first frame; shape (rows of
        the trace,).
    from_us, until_us: begin and end of the frame's transmission, at most the end of the run.
    received, lost: number of nodes that received or lost the frame.
    reason: why the addressee of a unicast frame lost it, as a code of ``columns.words["detail"]``; -1 for other frames.
    """

    columns: Columns
    rows: np.ndarray
    of: np.ndarray
    from_us: np.ndarray
    until_us: np.ndarray
    received: np.ndarray
    lost: np.ndarray
    reason: np.ndarray


def sent_frames(columns: Columns, duration_us: int) -> Sent:
    """Return the frames of a trace with their outcome.

    In a trace, the rows of a frame's receivers follow the row of the frame. So each row belongs to the last frame
    before it.
    """
    rows = columns.where(event="sent")
    end = columns["time_us"][rows]
    start = np.minimum(end - np.maximum(columns["value"][rows], 1), duration_us - 1)
    frame_of_row = np.zeros(columns.rows, np.int32)
    frame_of_row[rows] = 1
    frame_of_row = np.cumsum(frame_of_row, out=frame_of_row) - 1
    losses = columns.where(event="lost")
    received, lost = (columns.number_after(rows, event) for event in ("received", "lost"))
    frame_of_loss = frame_of_row[losses]
    is_addressee = frame_of_loss >= 0
    if len(rows):
        is_addressee &= columns["node"][losses] == columns["peer"][rows[np.maximum(frame_of_loss, 0)]]
    reason = np.full(len(rows), -1)
    reason[frame_of_loss[is_addressee]] = columns.codes["detail"][losses[is_addressee]]
    return Sent(columns, rows, frame_of_row, start, np.minimum(end, duration_us), received, lost, reason)


def clock_of(sent: Sent, duration_us: int) -> PlaybackClock:
    """Return the clock that maps the simulated time of a run to the player's time."""
    return make_clock(sent.from_us, sent.until_us, duration_us)


def frame_layers(recorded: Recorded, sent: Sent, paths: MessagePaths, quiet: Collection[str]) -> list[Layer]:
    """Return three layers: frames, losses and deliveries.

    sent: the frames of the trace.
    paths: the messages whose paths can be drawn.
    quiet: names of the messages that are drawn faintly.
    """
    columns, clock, duration_us = recorded.columns, recorded.clock, recorded.duration_us
    visible = np.minimum(clock.visible_until(sent.from_us, sent.until_us), duration_us)
    return [
        _frames_layer(recorded, sent, visible, paths, quiet),
        _losses_layer(columns, sent, visible, clock, duration_us),
        _deliveries_layer(columns, clock, duration_us),
    ]


def _frames_layer(
    recorded: Recorded, sent: Sent, visible_us: np.ndarray, paths: MessagePaths, quiet: Collection[str]
) -> Layer:
    columns = recorded.columns
    is_quiet = np.array([message in quiet for message in columns.words["message"]] or [False])
    shown = sampled(~is_quiet[columns.codes["message"][sent.rows]], MOST)
    rows = sent.rows[shown]
    look, looks = _make_looks(recorded, rows, quiet)
    text, words = _describe_outcomes(columns, sent, shown)
    columns_of_layer = {name: columns[name][rows] for name in ("node", "peer", "origin", "sequence")}
    columns_of_layer |= {"from_us": sent.from_us[shown], "until_us": visible_us[shown], "value": sent.until_us[shown]}
    columns_of_layer |= {"weight": np.where(sent.reason[shown] >= 0, LOST_AT, 1.0), "look": look, "text": text}
    columns_of_layer |= {
        "size": columns["size_B"][rows],
        "row": columns.in_trace(rows),
        "path": paths_of(columns, rows, paths),
    }
    notes = _omission_note("frames", len(rows), len(sent.rows))
    return Layer("frames", table(**columns_of_layer), looks, words=words, notes=notes)


def _omission_note(plural: str, drawn_count: int, total: int) -> tuple[str, ...]:
    if drawn_count == total:
        return ()
    return (f"Of {total:,} {plural} {drawn_count:,} are drawn; all of them are counted.",)


def _make_looks(recorded: Recorded, rows: np.ndarray, quiet: Collection[str]) -> tuple[np.ndarray, tuple[Look, ...]]:
    """Return (the index of each row's look, the looks); ``rows``: rows of the trace about sent frames.

    A look is a style (`layers.Look`). Each kind of message has a look for its broadcast frames and a look for its
    unicast frames. ``quiet``: names of the messages that are drawn faintly.
    """
    columns = recorded.columns
    kind = columns.codes["message"][rows].astype(np.int64) * 2 + (columns["peer"][rows] >= 0)
    kinds, look = unique_inverse(kind)
    looks = []
    for code in kinds.tolist():
        message = columns.words["message"][code // 2]
        colour = palette.message_colour(message, recorded.colours)
        is_unicast, is_quiet = code % 2 == 1, message in quiet
        chip = QUIET if is_quiet else PACKETS if is_unicast else BROADCASTS
        size, least_px = (0.85, 8.0) if is_unicast else (3.2, 22.0)
        if is_quiet:
            size, least_px = 0.5 * size, 0.5 * least_px
        width = 1.3 if is_unicast else 2.2
        mark = "packet" if is_unicast else "wave"
        alpha = 0.5 if is_quiet else 1.0
        looks.append(Look(message, colour, size, least_px, width, alpha, mark=mark, chip=chip))
    return look, tuple(looks)


def _describe_outcomes(columns: Columns, sent: Sent, shown: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Return (for each frame the index of a text about its outcome, or -1; the texts).

    ``shown``: indices of the frames in ``sent``. A unicast frame is received, lost, or neither (-1). For a broadcast
    frame, the text states how many of its neighbors heard it.
    """
    is_unicast = columns["peer"][sent.rows[shown]] >= 0
    received, lost, reason = sent.received[shown], sent.lost[shown], sent.reason[shown]
    reasons, reason_index = unique_inverse(reason)
    words = ["received", *(f"lost: {columns.words['detail'][code]}" if code >= 0 else "" for code in reasons.tolist())]
    text = np.where(reason >= 0, reason_index + 1, np.where(received > 0, 0, -1))
    factor = int((received + lost).max(initial=0)) + 1
    pairs, code = unique_inverse(received * factor + received + lost)
    heard_texts = [f"heard by {pair // factor} of {pair % factor}" for pair in pairs.tolist()]
    return np.where(is_unicast, text, code + len(words)), [*words, *heard_texts]


def paths_of(columns: Columns, rows: np.ndarray, paths: MessagePaths) -> np.ndarray:
    """Return the index of the message in ``paths.paths`` for each row of the trace in ``rows``; int32, shape (rows,).

    The index is -1 if the row does not belong to one of these messages.
    """
    frames = [(*frame, index) for index, path in enumerate(paths.paths) for frame in path.frames]
    codes = {name: code for code, name in enumerate(columns.words["message"])}
    frame_keys = (
        np.array(
            [(origin, sequence, codes[name], index) for origin, sequence, name, index in frames if name in codes],
            np.int64,
        )
        .reshape(-1, 4)
        .T
    )
    row_keys = columns["origin"][rows], columns["sequence"][rows], columns.codes["message"][rows]
    return np.append(frame_keys[3], -1).astype(np.int32)[find_last(row_keys, tuple(frame_keys[:3]))]


def _losses_layer(
    columns: Columns, sent: Sent, visible_us: np.ndarray, clock: PlaybackClock, duration_us: int
) -> Layer:
    """Return the layer of lost frames.

    A loss is shown from the time in ``visible_us`` at which the mark of its frame disappears. In the layer's table, the
    weight of a loss is 1 at the node to which a unicast frame was addressed, otherwise 0.
    """
    lost = columns.where(event="lost")
    frame_of_loss = sent.of[lost]
    frame_rows = np.append(sent.rows, 0)[np.maximum(frame_of_loss, 0)]
    is_unicast = (
        (frame_of_loss >= 0) & (columns["peer"][frame_rows] == columns["node"][lost])
        if len(lost)
        else frame_of_loss > 0
    )
    shown = sampled(is_unicast, MOST)
    rows, frame_of_loss = lost[shown], frame_of_loss[shown]
    start = np.where(
        frame_of_loss >= 0, np.append(visible_us, 0)[np.maximum(frame_of_loss, 0)], columns["time_us"][rows]
    )
    start = np.minimum(start, duration_us - 1)
    text, words = columns.coded("detail", rows)
    values = {
        "node": columns["node"][rows],
        "peer": columns["peer"][rows],
        "from_us": start,
        "weight": is_unicast[shown],
    }
    values |= {"until_us": np.minimum(clock.visible_until(start, start), duration_us), "text": text}
    notes = _omission_note("losses", len(rows), len(lost))
    return Layer("losses", table(**values, row=columns.in_trace(rows)), (LOST,), "loss", words=words, notes=notes)


def _deliveries_layer(columns: Columns, clock: PlaybackClock, duration_us: int) -> Layer:
    """Return the layer of deliveries, each of which is visible for a moment.

    The column ``value`` of its table is the number of the subscription to which the event was delivered.
    """
    rows = columns.where(event="delivered")
    start = np.minimum(columns["time_us"][rows], duration_us - 1)
    until = np.minimum(clock.visible_until(start, start), duration_us)
    values = {name: columns[name][rows] for name in ("node", "peer", "origin", "sequence", "value")}
    values |= {"from_us": start, "until_us": until, "row": columns.in_trace(rows)}
    shown_deliveries, notes = thinned(table(**values), MOST, "deliveries")
    return Layer("deliveries", shown_deliveries, (DELIVERED,), "ring", notes=notes)
