"""The arrays of the fast engine: their names, and the fields of their records.

`Core` holds the arrays that the loops of all protocols share. They are created in Python (`engine.py`); the loop
does not allocate. When one of them is full, the main loop returns to Python between two events and continues with a
larger one. An array that a run does not use (such as queues without csma) has one row.
"""

from collections import namedtuple
from enum import EnumMeta, IntEnum, auto
from typing import Any, NamedTuple

import numpy as np


class CodesMeta(EnumMeta):
    """The metaclass by which numba recognizes a class of codes (`compiled.py`)."""


class Codes(IntEnum, metaclass=CodesMeta):
    """Integers with names, counting from 0.

    The text of a member is its name in lower case. In compiled functions, members are plain integers.
    """

    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[Any]) -> int:
        return count

    @classmethod
    def texts(cls) -> tuple[str, ...]:
        """Return the texts of all members, in the order of their codes."""
        return tuple(member.name.lower() for member in cls)


BROADCAST = -1  # a frame to all neighbors
UNREACHABLE = -2  # a unicast frame to an address that the topology does not have
NONE = -1  # no frame, no subscription, no wake-up; also the end of a list

# The kinds of a frame's next event. A wake-up has an entry of its own.
FRAME_END, FRAME_READY, CHANNEL_CHECK, WAKE, STROBE_END, BEACON = range(6)

# One frame in transit from a radio, one wake-up, or one beacon to be sent. ``time``: of its next event. ``next``
# links frames of one microsecond, and free entries; ``behind`` links frames in a node's queue. Fields that are always a
# valid index are unsigned: for signed fields numba checks whether they count from an array's end.
FRAME = np.dtype(
    [
        ("time", np.int64),
        ("start", np.int64),
        ("sender", np.uint32),
        ("receiver", np.int32),
        ("message", np.uint32),
        ("header", np.int32),
        ("outage", np.int32),
        ("next", np.int32),
        ("behind", np.int32),
        ("kind", np.int16),
        ("backoffs", np.int16),
        ("attempt", np.int16),
    ],
    align=True,
)

# Messages in transit. Frames of the same message differ in their sender and in one ``header`` value that changes from
# hop to hop. ``holders``: number of frames and of calls of `hold_message`; at 0 the record is free for another message.
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

# The data of a node that the radio and a reception use, side by side: in large networks memory access limits the speed.
# ``free_at``: when its radio will have sent all frames passed to it; ``sent``: the counter of its radio's draws;
# ``outages``: number of its failures.
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

# A transmission that a node hears or will hear, linked per node.
AUDIBLE = np.dtype(
    [("start", np.int64), ("end", np.int64), ("sender", np.int32), ("next", np.int32)],
    align=True,
)

# The link of an arc, as its receiver has estimated it: `workbench.protocols.link_estimator`. ``listed``: the byte for
# the arc's sender in the receiver's latest beacon, or NONE; ``next`` links the arcs to a node, in order of first
# reception.
LINK = np.dtype(
    [
        ("inbound", np.float64),
        ("outbound", np.float64),
        ("reported_inbound", np.float64),
        ("reported_outbound", np.float64),
        ("number", np.int32),
        ("beacon_count", np.int32),
        ("expected", np.int32),
        ("received", np.int32),
        ("listed", np.int32),
        ("next", np.int32),
    ],
    align=True,
)

# A node's beacons. ``first``, ``last``, ``neighbors``: the list and number of arcs over which it received beacons;
# ``entries``: of its latest beacon; ``is_waiting``: its radio has not sent that beacon yet.
BEACONS = np.dtype(
    [
        ("key", np.uint64),
        ("number", np.int32),
        ("entries", np.int32),
        ("next_listed", np.int32),
        ("first", np.int32),
        ("last", np.int32),
        ("neighbors", np.int32),
        ("is_waiting", np.int32),
    ],
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

ACTION = np.dtype([("time_us", np.int64), ("kind", np.int32), ("index", np.int32), ("subject", np.int32)], align=True)

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
    """Indices into the array ``core.numbers``, which holds the counters and other single numbers of a run."""

    NOW = auto()  # time of the current event
    COUNTER = auto()  # orders the heap's events at the same microsecond
    NEXT_ACTION = auto()
    NEXT_START = auto()  # the next node to be started
    NEXT_CHANGE = auto()  # the next change of links
    ERASED = auto()  # the node whose state must be erased
    NEAR = auto()  # events in the ring
    FAR = auto()  # events in the heap
    FREE_FRAME = auto()
    FREE_FRAMES = auto()
    FREE_MESSAGE = auto()
    FREE_MESSAGES = auto()
    FREE_AUDIBLE = auto()
    FREE_AUDIBLES = auto()
    ROWS = auto()
    ENTRIES = auto()  # in the ledger of radio states
    HELD = auto()  # pairs of a node and a publication that it has held
    TOO_LONG = auto()  # a message that is longer than the radio's frames, plus 1
    TOO_LONG_AT = auto()  # the node that sent it
    STUCK = auto()  # the node that requested a wake-up in the past
    DOWN_NODES = auto()
    MORE = auto()  # frames and messages that an event may take beyond the twin's needs; three rows for each


class Status(Codes):
    """Codes that the compiled main loop returns to Python, to state why it returns."""

    DONE = auto()
    PAUSED = auto()
    ROWS_FULL = auto()
    FRAMES_FULL = auto()
    MESSAGES_FULL = auto()
    AUDIBLES_FULL = auto()
    LEDGER_FULL = auto()
    STATE_FULL = auto()
    STUCK_NODE = auto()
    LONG_FRAME = auto()
    ERASE_NODE = auto()


class Event(Codes):
    """Events of any protocol: codes of the trace's column "event"."""

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
    """Codes of the reasons of losses and drops. Runs without a trace count losses and drops by these codes.

    A code is the index of a text of the trace's column "detail". Text 0 is "", and the texts of these reasons follow.
    After them come the protocol's own reasons, then the scenario's texts and texts that nodes create during the run.
    """

    LINK = 1
    COLLISION = 2
    HALF_DUPLEX = 3
    DOWN = 4
    CHANNEL_BUSY = 5
    DUPLICATE = 6
    TTL = 7
    MALFORMED = 8
    JAMMED = 9
    # Details of failures and recoveries.
    ABSENT = 10
    CRASHED = 11
    JOINED = 12
    RESTARTED = 13


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
        # Links that change: rows of `workbench.sim.changes.arcs`. While an arc does not exist, its ratio is negative.
        "varies",
        "changes",
        "jammers",
        "first_noise",
        "noise_us",
        # The radio.
        "duration_us",
        "traces",
        "is_recorded",
        "collisions",
        "csma",
        "loses",
        "retries",
        "acknowledges",
        "wake_interval_us",
        "phases_us",
        "known_phases",
        "longest_frame_B",
        "max_frame_B",
        "capture_ddB",
        "strengths_ddB",
        "jitter_shortest_us",
        "jitter_width_us",
        "acknowledgement_us",
        "acknowledgement_key",
        "longest_airtime_us",
        "audible_needs",
        "keeps_ledger",
        # Link qualities: known, or learned from beacons. The arcs to node i are inbound[inbound_first[i]:...].
        "learns",
        "inbound_first",
        "inbound",
        "senders",
        "links",
        "beacons",
        "beacon_airtimes_us",
        "longest_beacon_us",
        "beacon_name",
        # A number for each node.
        "nodes",
        "down",
        "absences",
        "is_erased",
        "boots",
        "next_wake",
        "wake_at",
        "furthest_wake",
        "backoff_keys",
        "protocol_keys",
        "drawn",
        "queue_head",
        "queue_tail",
        "first_audible",
        "audible_count",
        "forget_at",
        # The workload, and its progress.
        "actions",
        "contents",
        "samples",
        "attributes",
        "subscriptions",
        "readings",
        "subscribed",
        # Future events.
        "tails",
        "bits",
        "summary",
        "far_time",
        "far_counter",
        "far_frame",
        "frames",
        "messages",
        "audibles",
        # Recorded events.
        "rows",
        "ledger",
        "traffic",
        "lost",
        "given_up",
        "dropped",
        "numbers",
    ),
)


class Needs(NamedTuple):
    """Upper limits of the trace rows, frames and messages that one call of a protocol's compiled function adds."""

    rows: int
    frames: int
    messages: int


def free_list(kind: np.dtype, count: int) -> np.ndarray:
    """Return an array of ``count`` free records; the column ``next`` of each has the index of the next free record."""
    rows = np.zeros(count, kind)
    rows["next"] = np.arange(1, count + 1)
    rows["next"][-1:] = NONE
    return rows


def lengthen(rows: np.ndarray, count: int) -> np.ndarray:
    """Return a copy of ``rows``, lengthened with zeros to ``count`` rows."""
    copy = np.zeros((count, *rows.shape[1:]), rows.dtype)
    copy[: len(rows)] = rows
    return copy
