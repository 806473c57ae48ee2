"""The flat memory of the fast engine: what a run's arrays are called, and what their rows hold.

`Core` is what the kernels of all protocols share. Its arrays are made in Python (`engine.py`); kernels never allocate.
Where one of them runs full, the main loop returns to Python between two events and goes on with a larger one.
An array that a run has no use for (queues without csma, say) has no rows.
"""

from collections import namedtuple
from enum import EnumMeta, IntEnum, auto
from typing import Any, NamedTuple

import numpy as np


class CodesMeta(EnumMeta):
    """The type by which numba knows a class of codes (`compiled.py`)."""


class Codes(IntEnum, metaclass=CodesMeta):
    """Integers with names, from 0 on. A member's text is its name in lower case; in a loop, members are integers."""

    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[Any]) -> int:
        return count

    @classmethod
    def texts(cls) -> tuple[str, ...]:
        """Return the texts of all members, in the order of their codes."""
        return tuple(member.name.lower() for member in cls)


BROADCAST = -1  # a frame to everybody
UNREACHABLE = -2  # a unicast frame to an address that the topology does not have
NONE = -1  # no frame, no subscription, no wake-up: the end of a list

# What a frame's next event is. A wake-up takes an entry of its own.
FRAME_END, FRAME_READY, CHANNEL_CHECK, WAKE = range(4)

# One frame on its way from a radio, or one wake-up. ``time`` says when its next event is; ``next`` links frames of one
# instant, and those that are free; ``behind`` those that wait in a node's queue. What is unsigned is an index that is
# always there: of a signed one numba has to ask whether it counts from an array's end.
FRAME = np.dtype(
    [
        ("time", np.int64),
        ("start", np.int64),
        ("sender", np.uint32),
        ("receiver", np.int32),
        ("message", np.uint32),
        ("word", np.int32),
        ("outage", np.int32),
        ("next", np.int32),
        ("behind", np.int32),
        ("kind", np.int16),
        ("backoffs", np.int16),
        ("attempt", np.int16),
    ],
    align=True,
)

# What travels: frames of the same message differ in their sender and in one ``word`` that changes from hop to hop.
# ``holders``: frames on their way, and whoever else called `hold_message`; at 0 the row is free for another message.
MESSAGE = np.dtype(
    [
        ("sequence", np.int64),
        ("origin", np.int32),
        ("name", np.int32),
        ("size_B", np.int32),
        ("airtime_us", np.int32),
        ("content", np.int32),
        ("holders", np.int32),
        ("next", np.int32),
    ],
    align=True,
)

# What the radio and a reception need to know of a node, side by side: large networks are as fast as memory is.
# ``free_at``: when its radio has sent all it was given so far; ``sent``: the counter of its radio's draws;
# ``outages``: how often it has failed so far.
NODE = np.dtype(
    [
        ("free_at", np.int64),
        ("jitter_key", np.uint64),
        ("sent", np.int32),
        ("outages", np.int32),
        ("first_subscription", np.int32),
        ("is_sink", np.int32),
    ],
    align=True,
)

# What a node hears, or will: an entry per transmission and audible neighbor, linked per node.
AUDIBLE = np.dtype(
    [("start", np.int64), ("end", np.int64), ("sender", np.int32), ("next", np.int32)],
    align=True,
)

ROW = np.dtype(
    [
        ("time_us", np.int64),
        ("sequence", np.int64),
        ("value", np.int64),
        ("node", np.int32),
        ("peer", np.int32),
        ("origin", np.int32),
        ("size_B", np.int32),
        ("detail", np.int32),
        ("event", np.uint8),
        ("message", np.uint8),
    ],
    align=True,
)

ACTION = np.dtype([("time_us", np.int64), ("kind", np.int32), ("index", np.int32), ("what", np.int32)], align=True)

SUBSCRIPTION = np.dtype(
    [
        ("expires_after_us", np.int64),
        ("expires_us", np.int64),
        ("first", np.int32),
        ("last", np.int32),
        ("detail", np.int32),
        ("number", np.int32),
        ("next", np.int32),
        ("is_open", np.int32),
    ],
    align=True,
)

# Distinct publications: their samples, whose attributes are rows of ``attributes``, and their size in a frame.
CONTENT = np.dtype(
    [
        ("first_sample", np.int32),
        ("last_sample", np.int32),
        ("detail", np.int32),
        ("size_B", np.int32),
        ("airtime_us", np.int32),
    ],
    align=True,
)
SAMPLE = np.dtype([("first", np.int32), ("last", np.int32), ("detail", np.int32)], align=True)


class Number(Codes):
    """Places in ``numbers``: what of a run changes and is one number."""

    NOW = auto()  # time of the event being played
    COUNTER = auto()  # orders what the heap has at the same microsecond
    NEXT_ACTION = auto()
    NEXT_START = auto()  # the next node to be started
    NEAR = auto()  # events in the ring
    FAR = auto()  # events in the heap
    FREE_FRAME = auto()
    FREE_FRAMES = auto()
    FREE_MESSAGE = auto()
    FREE_MESSAGES = auto()
    FREE_AUDIBLE = auto()
    FREE_AUDIBLES = auto()
    ROWS = auto()
    HELD = auto()  # pairs of a node and a publication that it came to hold
    STUCK = auto()  # the node that asked to be woken in the past
    DOWN_NODES = auto()
    MORE = auto()  # frames and messages, and a third of the rows, that an event may take beyond what the twin needs


class Status(Codes):
    """Why the main loop returned to Python."""

    DONE = auto()
    PAUSED = auto()
    ROWS_FULL = auto()
    FRAMES_FULL = auto()
    MESSAGES_FULL = auto()
    AUDIBLES_FULL = auto()
    STATE_FULL = auto()
    STUCK_NODE = auto()


class Event(Codes):
    """What happened in a run of any protocol: codes of the trace's column "event"."""

    SENT = auto()
    RECEIVED = auto()
    LOST = auto()
    GIVEN_UP = auto()
    SUBSCRIBED = auto()
    UNSUBSCRIBED = auto()
    PUBLISHED = auto()
    FAILED = auto()
    RECOVERED = auto()
    ORIGINATED = auto()
    HELD = auto()
    FORWARDED = auto()
    DELIVERED = auto()
    DROPPED = auto()


NO_REASON = 0


class Reason(Codes):
    """The first texts of the column "detail", behind "": reasons, which are counted. A run's own texts come behind."""

    LINK = 1
    COLLISION = 2
    HALF_DUPLEX = 3
    DOWN = 4
    CHANNEL_BUSY = 5
    DUPLICATE = 6
    TTL = 7
    MALFORMED = 8


# Columns of ``traffic``, one row per message name.
FRAMES_SENT, BYTES_SENT, FRAMES_HEARD, BYTES_HEARD = range(4)

Core = namedtuple(
    "Core",
    (
        # The network: node i's arcs are first[i]:first[i + 1], ascending by receiver.
        "addresses",
        "first",
        "receivers",
        "ratios",
        "arc_keys",
        # The radio.
        "duration_us",
        "traces",
        "kept",
        "collisions",
        "csma",
        "loses",
        "retries",
        "jitter_shortest_us",
        "jitter_width_us",
        "acknowledgement_us",
        "acknowledgement_key",
        "longest_airtime_us",
        "audible_needs",
        # A number for each node.
        "nodes",
        "down",
        "next_wake",
        "wake_at",
        "furthest_wake",
        "backoff_keys",
        "protocol_keys",
        "drawn",
        "queue_head",
        "queue_tail",
        "on_air",
        "audible",
        "forget_at",
        # The workload, and what is known of it so far.
        "actions",
        "contents",
        "samples",
        "attributes",
        "subscriptions",
        "readings",
        "subscribed",
        # Events to come.
        "tails",
        "bits",
        "summary",
        "far_time",
        "far_counter",
        "far_frame",
        "frames",
        "messages",
        "audibles",
        # What happened.
        "rows",
        "traffic",
        "lost",
        "given_up",
        "dropped",
        "numbers",
    ),
)


class Needs(NamedTuple):
    """The most that one call of a twin's function takes: trace rows, frames, messages."""

    rows: int
    frames: int
    messages: int


def free_list(kind: np.dtype, count: int) -> np.ndarray:
    """``count`` free rows, each linked to the one behind it."""
    rows = np.zeros(count, kind)
    rows["next"] = np.arange(1, count + 1)
    rows["next"][-1:] = NONE
    return rows


def longer(rows: np.ndarray, count: int) -> np.ndarray:
    """The same rows, and zeros behind them, ``count`` in all."""
    made = np.zeros((count, *rows.shape[1:]), rows.dtype)
    made[: len(rows)] = rows
    return made
