"""The state of TinyMQ's nodes on the fast engine: arrays, and the fields of their rows.

A node is identified by its *index*, i. A *link* is an arc as its receiver sees it: node i hears its neighbors at the
links in_first[i]:in_first[i + 1], in ascending order of senders.

A *position* is a node's place in a tree: parent, key and children. A node has ``positions_per_node`` positions: one in
TinyMQ, one for each root in PUB-2-SUB+. The positions of node i are the rows i * positions_per_node + offset of
``positions``; a row is valid only if its ``is_used`` is set.

A message is identified by its row in the engine's table of messages; ``fields`` and ``regions`` have further data of
the message in the same row. Pending frames, waiting messages and stored queries refer to that row.

Memory
    In bytes, for n nodes, m arcs, t roots and s positions per node::

        n x (128 + 32 t + 88 s)  +  m x (40 + 24 t + 72 s)  +  580 for each message in
        flight or stored

    and 16 for each id that a node still remembers (`recent`). 1500 nodes with 10 roots take some 30 MB.
"""

from __future__ import annotations

from collections import namedtuple
from enum import auto
from typing import Any

import numpy as np

from workbench.protocols.tinymq.rules import MOST_NAMED, Times
from workbench.sim.fast import twin
from workbench.sim.fast.twin import GIVEN, NONE, Array, Fields, Pool


class Event(twin.Events):
    """Trace events that exist only in TinyMQ."""

    KEY_SET = auto()
    QUERY_STORED = auto()
    ZONE_SET = auto()
    EVENT_MATCHED = auto()


class Reason(twin.Reasons):
    """Drop reasons that exist only in TinyMQ."""

    STALE = auto()
    FULL = auto()
    REPEATED = auto()
    NO_PLACE = auto()
    UNASKED = auto()
    NO_ZONE = auto()
    NO_SINK = auto()
    WAITED = auto()
    ASTRAY = auto()


class Message(twin.Messages):
    """TinyMQ's message types, as the numbers in the field ``name`` of the engine's table of messages."""

    INFO = auto()
    ACK = auto()
    JOIN = auto()
    GRANT = auto()
    QUERY = auto()
    EVENT = auto()
    NOTIFICATION = auto()
    PROBE = auto()
    REFUSAL = auto()


# Next hops of a node that has no path to a root: the path's next hop is lost (BROKEN_PATH), or no path is known
# (NO_PATH). The root itself has the next hop NONE.
BROKEN_PATH, NO_PATH = -2, -3
NO_KEY = -1
NO_TREE = -1  # the tree of an event that waits until its node can reach a tree
ROOT_KEY = 0  # the empty key's row of ``keys``

WIDEST_KEY_SPACE = 62  # bits: strings are int64
LONGEST_KEY = 4096  # bits
MOST_INTERVALS = 32  # intervals of a region

# A time that is None in a `TinyMQNode` is NONE here. ``own``: number of the node's open subscriptions; ``heard``,
# ``events`` and ``paths``: numbers of ids that the node's memories of recent ids have received; ``frames_left``: number
# of unicast frames that this call may still send; ``reports``: whether the radio has reported an acknowledgement;
# ``counts``: how often unacknowledged frames were counted; ``is_changed``: whether keys or children have changed since
# zones were last logged.
NODE = np.dtype(
    [
        ("queries_due_us", np.int64),
        ("tick_us", np.int64),
        ("info_due_us", np.int64),
        ("repeat_us", np.int64),
        ("repeat_after_us", np.int64),
        ("info_sent_us", np.int64),
        ("next_expiry_us", np.int64),
        ("first_number", np.int64),
        ("pending", twin.LIST),
        ("waiting", twin.LIST),
        ("stored", twin.LIST),
        ("own", np.int64),
        ("heard", np.int64),
        ("events", np.int64),
        ("paths", np.int64),
        ("frames_left", np.int64),
        ("is_changed", np.int64),
        ("reports", np.int64),
        ("counts", np.int64),
    ],
    align=True,
)

# Fields of a node's record that are not 0 at the start.
_TIMES = ("queries_due_us", "tick_us", "info_due_us", "repeat_us", "next_expiry_us")
_LISTS = ("pending", "waiting", "stored")

# A position in a tree; ``children``: list of the links to the children, in the order of their slots. Three fields
# describe the zone that was last logged: ``has_zone``: whether it existed; ``zone_low``: its lowest string;
# ``zone_taken``: the sum of the sizes of the children's universes.
POSITION = np.dtype(
    [
        ("epoch", np.int64),
        ("epoch_us", np.int64),
        ("tree", np.int64),
        ("parent", np.int64),
        ("key", np.int64),
        ("children", twin.LIST),
        ("is_used", np.int64),
        ("has_zone", np.int64),
        ("zone_low", np.int64),
        ("zone_taken", np.int64),
    ],
    align=True,
)

# A planned or pending join; ``send_us``: when to send it, or NONE once it is sent; ``give_up_us``: when to stop waiting
# for the grant.
JOINING = np.dtype(
    [
        ("send_us", np.int64),
        ("give_up_us", np.int64),
        ("neighbor", np.int64),
        ("tree", np.int64),
        ("is_used", np.int64),
    ],
    align=True,
)

# A distance to a root; ``risen_epoch``: the epoch in which ``hops`` last rose; ``late_us``: when a late path
# (`rules.is_late`) was last offered, or NONE.
DISTANCE = np.dtype(
    [
        ("epoch", np.int64),
        ("risen_epoch", np.int64),
        ("late_us", np.int64),
        ("hops", np.int64),
        ("next_hop", np.int64),
    ],
    align=True,
)

# A neighbor; ``numbered``: how many frames to this neighbor got a number; ``hears_us``: whether it is known to hear
# this node; ``named_us``: when an info of this node last named it; ``namings_left``: how many more infos must name it;
# ``unanswered``: joins in a row that it did not answer; ``join_after_us``: the earliest time of the next join;
# ``unacknowledged``, ``unacknowledged_events``: frames that it has yet to acknowledge; both are valid only if the
# node's ``counts`` equals ``counted``.
NEIGHBOR = np.dtype(
    [
        ("heard_us", np.int64),
        ("named_us", np.int64),
        ("namings_left", np.int64),
        ("numbered", np.int64),
        ("unanswered", np.int64),
        ("join_after_us", np.int64),
        ("unacknowledged", np.int64),
        ("unacknowledged_events", np.int64),
        ("counted", np.int64),
        ("is_known", np.int32),
        ("hears_us", np.int32),
    ],
    align=True,
)

# A neighbor's position according to its last info. ``was_announced``: whether that info contained a position; if so,
# ``since_us`` is valid. ``is_valid``: whether the position has not been discarded since.
ANNOUNCED_POSITION = np.dtype(
    [
        ("since_us", np.int64),
        ("epoch", np.int64),
        ("tree", np.int64),
        ("parent", np.int64),
        ("key", np.int64),
        ("is_valid", np.int64),
        ("was_announced", np.int64),
    ],
    align=True,
)

# A child's slot, or NONE if the neighbor is not a child, and the link of the child with the next slot.
CHILD = np.dtype([("slot", np.int64), ("next", np.int64)], align=True)

# A key: the row of its parent's key, and its slot; ``low``: the lowest string of its universe, if it has one; ``first``
# and ``next`` link the keys below the same parent.
KEY = np.dtype(
    [
        ("low", np.int64),
        ("parent", np.int64),
        ("slot", np.int64),
        ("length", np.int64),
        ("first", np.int64),
        ("next", np.int64),
    ],
    align=True,
)

# The fields of a message beside the engine's columns; ``subscription`` and ``box``: rows of these arrays.
MESSAGE = np.dtype(
    [
        ("epoch", np.int64),
        ("tree", np.int64),
        ("hops", np.int64),
        ("sink", np.int64),
        ("subscription", np.int64),
        ("round", np.int64),
        ("lease_s", np.int64),
        ("sink_tree", np.int64),
        ("sink_key", np.int64),
        ("by_key", np.int64),
        ("publication", np.int64),
        ("box", np.int64),
        ("key", np.int64),
        ("intervals", np.int64),
    ],
    align=True,
)

INFO_POSITION = np.dtype(
    [("epoch", np.int64), ("tree", np.int64), ("parent", np.int64), ("key", np.int64), ("is_announced", np.int64)],
    align=True,
)
INFO_DISTANCE = np.dtype([("epoch", np.int64), ("hops", np.int64), ("is_announced", np.int64)], align=True)

# Entries of a node's lists of pending frames, waiting messages and stored queries. ``next`` links the entries of a
# list, and the free rows.
PENDING = np.dtype(
    [
        ("first_us", np.int64),
        ("due_us", np.int64),
        ("neighbor", np.int64),
        ("link", np.int64),
        ("number", np.int64),
        ("message", np.int64),
        ("direction", np.int64),
        ("sent", np.int64),
        ("waits_for", np.int64),
        ("next", np.int64),
    ],
    align=True,
)
WAITING = np.dtype(
    [("since_us", np.int64), ("message", np.int64), ("previous_hop", np.int64), ("next", np.int64)], align=True
)
STORED = np.dtype([("expires_us", np.int64), ("message", np.int64), ("next", np.int64)], align=True)

# The state of an own query; ``is_open``: whether the subscription is open.
OWN_QUERY = np.dtype([("refresh_us", np.int64), ("round", np.int64), ("is_open", np.int64)], align=True)

# An id that a node remembers; ``id`` 0: the row is free.
RECENT = np.dtype([("id", np.int64), ("ordinal", np.int32), ("value", np.int32)], align=True)
PATH = np.dtype([("id", np.int64), ("ordinal", np.int32), ("value", np.int64)], align=True)


class Number(twin.Codes):
    """Indexes of the array ``numbers``, which contains the counters of the state.

    KEYS, RECENTS and PATHS: the number of used rows in each of these tables. Each array with free rows (``pendings``,
    ``waitings``, ``storeds``) has two entries: the index of its first free row, and the number of its free rows.
    """

    KEYS = auto()
    RECENTS = auto()
    PATHS = auto()
    FREE_PENDING = auto()
    FREE_PENDINGS = auto()
    FREE_WAITING = auto()
    FREE_WAITINGS = auto()
    FREE_STORED = auto()
    FREE_STOREDS = auto()
    PUBLISHED = auto()
    ACKNOWLEDGEMENT = auto()  # the message of all acknowledgements
    NEEDED = auto()  # number of free rows that the next event of the run needs in each pool
    PROBLEM = auto()  # why the fast engine cannot continue the run


# Why an own query is sent: to renew its lease, or to end it.
RENEW, END = range(2)


class Problem(twin.Codes):
    """The reasons why the fast engine cannot continue a run (``numbers[PROBLEM]``)."""

    FINE = auto()
    KEY_TOO_LONG = auto()
    TOO_MANY_INTERVALS = auto()
    TOO_LITTLE_ROOM = auto()


PROBLEM_TEXTS = {
    Problem.KEY_TOO_LONG: f"a key has more than {LONGEST_KEY} bits",
    Problem.TOO_MANY_INTERVALS: f"the region of a query or event has more than {MOST_INTERVALS} intervals",
    Problem.TOO_LITTLE_ROOM: "an event needs more memory than the fast engine has reserved for each event",
}

# Rows of ``scratch``. Rows from FIRST_PART on hold the parts of a message that is split, a row for each part.
INSIDE, OUTSIDE, REST = range(3)
FIRST_PART = 3

# A name in a shape is a size that `state.py` computes. An interval is stored as (lowest string, highest string).
FIELDS: Fields = {
    # Parameters.
    "key_bits": int,
    "every_tree": GIVEN,
    "trees": GIVEN,
    "positions_per_node": GIVEN,
    "publishes_to_all": GIVEN,
    "shortcuts": bool,
    "retries": int,
    "uses_reports": GIVEN,
    "max_queries": int,
    "max_waiting": int,
    "max_known": int,
    "max_hops": int,
    **dict.fromkeys(Times._fields, GIVEN),
    "root_tree": GIVEN,  # (n,) the tree of which a node is the root, or NONE
    # Nodes and links.
    "nodes": Array(NODE, "nodes", dict.fromkeys(_TIMES, NONE) | dict.fromkeys(_LISTS, twin.NO_ROWS)),
    "positions": Array(POSITION, "positions", {"children": twin.NO_ROWS}),
    "joinings": Array(JOINING, "positions"),
    "distances": Array(DISTANCE, ("nodes", "trees"), {"next_hop": NO_PATH, "late_us": NONE}),
    "left_epochs": Array(np.int64, ("nodes", "trees"), NONE),  # the newest epoch of a position that was given up
    "in_first": GIVEN,
    "senders": GIVEN,
    "listeners": GIVEN,
    "neighbors": Array(NEIGHBOR, "links", {"named_us": NONE}),
    "announced_positions": Array(ANNOUNCED_POSITION, ("links", "positions_per_node")),
    "children": Array(CHILD, ("links", "positions_per_node"), {"slot": NONE}),
    # Keys and regions.
    "keys": Array(KEY, "keys", {"first": NONE, "next": NONE}),
    "dimension_bits": GIVEN,
    "dimension_shifts": GIVEN,
    "boxes": GIVEN,  # (subscriptions + contents, dimensions, 2)
    "scratch": Array(np.int64, ("scratch", MOST_INTERVALS, 2)),
    "scratch_counts": Array(np.int64, "scratch"),
    "part_hops": Array(np.int64, "scratch"),
    "candidates": Array(np.int64, "scratch"),
    # Messages.
    "fields": Array(MESSAGE, "messages"),
    "regions": Array(np.int64, ("messages", MOST_INTERVALS, 2)),
    "info_positions": Array(INFO_POSITION, ("messages", "positions_per_node")),
    "info_distances": Array(INFO_DISTANCE, ("messages", "trees")),
    # Distances that were announced by neighbors that are not known to hear the node.
    "announced_distances": Array(INFO_DISTANCE, ("links", "trees")),
    "info_heard": Array(np.int32, ("messages", MOST_NAMED)),  # the nodes that an info names
    "info_heard_counts": Array(np.int32, "messages"),
    "base_B": GIVEN,
    "position_B": GIVEN,
    "distance_B": GIVEN,
    "named_count_B": GIVEN,
    "named_B": GIVEN,
    "interval_B": GIVEN,
    "query_attributes_B": GIVEN,
    "event_attributes_B": GIVEN,
    "airtimes_us": GIVEN,
    "first_content_box": GIVEN,
    "first_text": GIVEN,
    # Lists and memories of the nodes.
    "pendings": Pool(PENDING, "pendings", Number.FREE_PENDING),
    "waitings": Pool(WAITING, "waitings", Number.FREE_WAITING),
    "storeds": Pool(STORED, "storeds", Number.FREE_STORED),
    "given_up": Array(twin.LIST, 1),  # list of the frames to neighbors that do not answer, during a call of a node
    "own_queries": Array(OWN_QUERY, "subscriptions"),
    "recents": Array(RECENT, "recents"),
    "paths": Array(PATH, "paths"),
    "most_parts": GIVEN,
    "most_neighbors": GIVEN,
    "most_deliveries": GIVEN,
    "least_room": GIVEN,
    "numbers": Array(np.int64, len(Number)),
}
State: Any = namedtuple("State", FIELDS)
