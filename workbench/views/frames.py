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
    """The frames that were sent in a run, in order of the trace. Arrays have shape (frames,) unless stated otherwise.

    columns: the trace.
    rows: the row of each frame in the trace.
    of: for each row of the trace, the index of the last frame sent up to this row; -1 before the first frame. Its
        shape is (rows of the trace,).
    from_us, until_us: begin and end of the frame's transmission, at most the end of the run.
    received, lost: number of nodes that received or lost the frame.
    reason: why the addressee lost a unicast frame, as a code of ``columns.words["detail"]``; -1 for all other frames.
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
    """Return the frames of a trace, with the number of nodes that received or lost each frame.

    In a trace, the row "sent" of a frame is followed by a row "received" or "lost" for each node in reach. So a row
    "received" or "lost" belongs to the nearest row "sent" above it. ``duration_us``: length of the run in µs.
    """
    frame_rows = columns.where(event="sent")
    end_us = columns["time_us"][frame_rows]
    start_us = np.minimum(end_us - np.maximum(columns["value"][frame_rows], 1), duration_us - 1)
    frame_of_row = np.zeros(columns.rows, np.int32)
    frame_of_row[frame_rows] = 1
    frame_of_row = np.cumsum(frame_of_row, out=frame_of_row) - 1
    loss_rows = columns.where(event="lost")
    received_counts, lost_counts = (columns.number_after(frame_rows, event) for event in ("received", "lost"))
    frame_of_loss = frame_of_row[loss_rows]
    is_at_addressee = frame_of_loss >= 0
    if len(frame_rows):
        is_at_addressee &= columns["node"][loss_rows] == columns["peer"][frame_rows[np.maximum(frame_of_loss, 0)]]
    reason_codes = np.full(len(frame_rows), -1)
    reason_codes[frame_of_loss[is_at_addressee]] = columns.codes["detail"][loss_rows[is_at_addressee]]
    return Sent(
        columns,
        frame_rows,
        frame_of_row,
        start_us,
        np.minimum(end_us, duration_us),
        received_counts,
        lost_counts,
        reason_codes,
    )


def clock_of(sent: Sent, duration_us: int) -> PlaybackClock:
    """Return the playback clock of a run with the frames ``sent``; it converts simulated time to the player's time."""
    return make_clock(sent.from_us, sent.until_us, duration_us)


def frame_layers(recorded: Recorded, sent: Sent, paths: MessagePaths, quiet: Collection[str]) -> list[Layer]:
    """Return three layers: frames, losses and deliveries.

    sent: the frames of the trace.
    paths: the messages whose paths can be drawn.
    quiet: names of the messages that are drawn faintly.
    """
    columns, clock, duration_us = recorded.columns, recorded.clock, recorded.duration_us
    visible_until_us = np.minimum(clock.visible_until(sent.from_us, sent.until_us), duration_us)
    return [
        _frames_layer(recorded, sent, visible_until_us, paths, quiet),
        _losses_layer(columns, sent, visible_until_us, clock, duration_us),
        _deliveries_layer(columns, clock, duration_us),
    ]


def _frames_layer(
    recorded: Recorded, sent: Sent, visible_us: np.ndarray, paths: MessagePaths, quiet: Collection[str]
) -> Layer:
    columns = recorded.columns
    is_quiet = np.array([message in quiet for message in columns.words["message"]] or [False])
    drawn_frames = sampled(~is_quiet[columns.codes["message"][sent.rows]], MOST)
    frame_rows = sent.rows[drawn_frames]
    look_indices, looks = _make_looks(recorded, frame_rows, quiet)
    text_indices, outcome_texts = _describe_outcomes(columns, sent, drawn_frames)
    columns_of_layer = {name: columns[name][frame_rows] for name in ("node", "peer", "origin", "sequence")}
    columns_of_layer |= {
        "from_us": sent.from_us[drawn_frames],
        "until_us": visible_us[drawn_frames],
        "value": sent.until_us[drawn_frames],
    }
    columns_of_layer |= {
        "weight": np.where(sent.reason[drawn_frames] >= 0, LOST_AT, 1.0),
        "look": look_indices,
        "text": text_indices,
    }
    columns_of_layer |= {
        "size": columns["size_B"][frame_rows],
        "row": columns.in_trace(frame_rows),
        "path": paths_of(columns, frame_rows, paths),
    }
    notes = _describe_omission("frames", len(frame_rows), len(sent.rows))
    return Layer("frames", table(**columns_of_layer), looks, words=outcome_texts, notes=notes)


def _describe_omission(plural: str, drawn_count: int, total: int) -> tuple[str, ...]:
    if drawn_count == total:
        return ()
    return (f"Of {total:,} {plural} {drawn_count:,} are drawn; all of them are counted.",)


def _make_looks(recorded: Recorded, rows: np.ndarray, quiet: Collection[str]) -> tuple[np.ndarray, tuple[Look, ...]]:
    """Return (indices, styles): for each frame the index of its style, and the list of styles.

    Each kind of message has a style (`layers.Look`) for its broadcast frames and another for its unicast frames.
    ``rows``: the trace row "sent" of each frame. ``quiet``: names of the messages that are drawn faintly.
    """
    columns = recorded.columns
    frame_kinds = columns.codes["message"][rows].astype(np.int64) * 2 + (columns["peer"][rows] >= 0)
    kinds, look_indices = unique_inverse(frame_kinds)
    looks = []
    for kind_number in kinds.tolist():
        message = columns.words["message"][kind_number // 2]
        colour = palette.message_colour(message, recorded.colours)
        is_unicast, is_quiet = kind_number % 2 == 1, message in quiet
        chip = QUIET if is_quiet else PACKETS if is_unicast else BROADCASTS
        relative_size, least_px = (0.85, 8.0) if is_unicast else (3.2, 22.0)
        if is_quiet:
            relative_size, least_px = 0.5 * relative_size, 0.5 * least_px
        width_px = 1.3 if is_unicast else 2.2
        mark = "packet" if is_unicast else "wave"
        alpha = 0.5 if is_quiet else 1.0
        looks.append(Look(message, colour, relative_size, least_px, width_px, alpha, mark=mark, chip=chip))
    return look_indices, tuple(looks)


def _describe_outcomes(columns: Columns, sent: Sent, shown: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Return (indices, texts): for each frame the index of the text about its outcome, or -1 if it has no text.

    ``shown``: indices of the frames in ``sent``. The text of a unicast frame states whether the addressee received the
    frame, or why it was lost. The text of a broadcast frame states how many of the nodes in reach received the frame.
    """
    is_unicast = columns["peer"][sent.rows[shown]] >= 0
    received_counts, lost_counts, reason = sent.received[shown], sent.lost[shown], sent.reason[shown]
    reasons, reason_index = unique_inverse(reason)
    outcome_texts = [
        "received",
        *(
            f"lost: {columns.words['detail'][reason_code]}" if reason_code >= 0 else ""
            for reason_code in reasons.tolist()
        ),
    ]
    text_indices = np.where(reason >= 0, reason_index + 1, np.where(received_counts > 0, 0, -1))
    factor = int((received_counts + lost_counts).max(initial=0)) + 1
    count_keys, heard_indices = unique_inverse(received_counts * factor + received_counts + lost_counts)
    heard_texts = [f"heard by {count_key // factor} of {count_key % factor}" for count_key in count_keys.tolist()]
    return np.where(is_unicast, text_indices, heard_indices + len(outcome_texts)), [*outcome_texts, *heard_texts]


def paths_of(columns: Columns, rows: np.ndarray, paths: MessagePaths) -> np.ndarray:
    """Return for each row of the trace in ``rows`` the index in ``paths.paths`` of the message that its frame carries.

    The index is -1 if ``paths`` does not contain the message. The result is int32, shape (rows,).
    """
    frames = [(*frame, index) for index, path in enumerate(paths.paths) for frame in path.frames]
    message_codes = {name: code for code, name in enumerate(columns.words["message"])}
    frame_keys = (
        np.array(
            [
                (origin, sequence, message_codes[name], index)
                for origin, sequence, name, index in frames
                if name in message_codes
            ],
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
    """Return the layer of lost frames, with a row for each frame and node that lost the frame.

    A row has the weight 1 if the frame was addressed to the node, otherwise 0.

    visible_us: for each frame the time in µs at which its mark disappears from the link. At this time, the marks of
        its losses appear.
    clock: the playback clock; a loss is visible for a short time of playback.
    duration_us: duration of the run.
    """
    loss_rows = columns.where(event="lost")
    frame_of_loss = sent.of[loss_rows]
    frame_rows = np.append(sent.rows, 0)[np.maximum(frame_of_loss, 0)]
    is_unicast = (
        (frame_of_loss >= 0) & (columns["peer"][frame_rows] == columns["node"][loss_rows])
        if len(loss_rows)
        else frame_of_loss > 0
    )
    drawn_losses = sampled(is_unicast, MOST)
    drawn_rows, frame_of_loss = loss_rows[drawn_losses], frame_of_loss[drawn_losses]
    start_us = np.where(
        frame_of_loss >= 0, np.append(visible_us, 0)[np.maximum(frame_of_loss, 0)], columns["time_us"][drawn_rows]
    )
    start_us = np.minimum(start_us, duration_us - 1)
    reason_codes, reason_texts = columns.coded("detail", drawn_rows)
    table_columns = {
        "node": columns["node"][drawn_rows],
        "peer": columns["peer"][drawn_rows],
        "from_us": start_us,
        "weight": is_unicast[drawn_losses],
    }
    table_columns |= {
        "until_us": np.minimum(clock.visible_until(start_us, start_us), duration_us),
        "text": reason_codes,
    }
    notes = _describe_omission("losses", len(drawn_rows), len(loss_rows))
    return Layer(
        "losses",
        table(**table_columns, row=columns.in_trace(drawn_rows)),
        (LOST,),
        "loss",
        words=reason_texts,
        notes=notes,
    )


def _deliveries_layer(columns: Columns, clock: PlaybackClock, duration_us: int) -> Layer:
    """Return the layer of deliveries, each of which is visible for a short time of playback.

    The column ``value`` of the layer's table is the number of the subscription to which the event was delivered.
    """
    delivery_rows = columns.where(event="delivered")
    start_us = np.minimum(columns["time_us"][delivery_rows], duration_us - 1)
    until_us = np.minimum(clock.visible_until(start_us, start_us), duration_us)
    table_columns = {name: columns[name][delivery_rows] for name in ("node", "peer", "origin", "sequence", "value")}
    table_columns |= {"from_us": start_us, "until_us": until_us, "row": columns.in_trace(delivery_rows)}
    shown_deliveries, notes = thinned(table(**table_columns), MOST, "deliveries")
    return Layer("deliveries", shown_deliveries, (DELIVERED,), "ring", notes=notes)
