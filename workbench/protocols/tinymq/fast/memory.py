"""What the nodes of a fast TinyMQ network remember: arrays, and what their rows hold.

Nodes are places; a *link* is an arc as its receiver sees it: node i hears those at links in_first[i]:in_first[i + 1],
ascending by sender. A node has as many *seats* as it may have places in trees: one in TinyMQ, one for each root in
PUB-2-SUB+. A message is a row of the core's messages and of ``fields`` and ``regions`` here; whatever keeps one (a
frame that waits for its acknowledgement, a message that waits for a way, a stored query) holds that row.

Memory
    In bytes, for n nodes, m arcs, t roots and s seats::

        n x (120 + 32 t + 80 s)  +  m x (32 + 72 s)  +  512 for each message on its way or stored, where it is touched

    and 16 for each id that a node still remembers (`tinymq_recent`). 1500 nodes with 10 roots take some 30 MB.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from workbench.sim.fast.layout import NONE

# Names of messages: places in MESSAGES.
MESSAGES = ("", "info", "ack", "join", "grant", "query", "event", "notification")
INFO, ACK, JOIN, GRANT, QUERY, EVENT, NOTIFICATION = range(1, 8)

# Nobody as an argument: a function is compiled anew for each plain number that it is given.
NOBODY = np.int64(NONE)
# A next hop that is none. layout.NONE: this node is the root.
BROKEN_WAY, NO_WAY = -2, -3
NO_KEY = -1
NO_TREE = -1  # of an event that waits until its node knows of a tree
ROOT_KEY = 0  # the empty key's place in ``keys``

WIDEST_KEY_SPACE = 62  # bits: strings are int64
LONGEST_KEY = 4096  # bits
MOST_INTERVALS = 32  # of a region

# Times are NONE where the node has None. The last three count what went into its memories of recent ids.
NODE = np.dtype(
    [
        ("ask_again_us", np.int64),
        ("tick_us", np.int64),
        ("info_due_us", np.int64),
        ("repeat_us", np.int64),
        ("repeat_after_us", np.int64),
        ("info_sent_us", np.int64),
        ("next_expiry_us", np.int64),
        ("first_number", np.int64),
        ("pending", np.int64),
        ("first_pending", np.int64),
        ("last_pending", np.int64),
        ("waiting", np.int64),
        ("first_waiting", np.int64),
        ("last_waiting", np.int64),
        ("stored", np.int64),
        ("first_stored", np.int64),
        ("own", np.int64),
        ("heard", np.int64),
        ("events", np.int64),
        ("paths", np.int64),
    ],
    align=True,
)

# A place in a tree; ``first_child``: the link of the child with the lowest slot.
PLACE = np.dtype(
    [
        ("epoch", np.int64),
        ("epoch_us", np.int64),
        ("tree", np.int64),
        ("parent", np.int64),
        ("key", np.int64),
        ("first_child", np.int64),
        ("is_used", np.int64),
    ],
    align=True,
)

# ``send_us`` is NONE once the join is sent.
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

DISTANCE = np.dtype(
    [("epoch", np.int64), ("heard_us", np.int64), ("hops", np.int64), ("next_hop", np.int64)],
    align=True,
)

# ``numbered``: frames to this neighbor that were given a number.
NEIGHBOR = np.dtype([("heard_us", np.int64), ("is_known", np.int64), ("numbered", np.int64)], align=True)

# A neighbor's place as its last info said. ``was_told``: that info had it, and ``since_us`` counts; ``is_there``: it
# still counts itself.
TOLD_PLACE = np.dtype(
    [
        ("since_us", np.int64),
        ("epoch", np.int64),
        ("tree", np.int64),
        ("parent", np.int64),
        ("key", np.int64),
        ("is_there", np.int64),
        ("was_told", np.int64),
    ],
    align=True,
)

# A child's slot, NONE for a neighbor that is none, and the link of the child with the next slot.
CHILD = np.dtype([("slot", np.int64), ("next", np.int64)], align=True)

# A key: its parent's and its slot; ``low``: its smallest string, if it has one; ``first`` and ``next`` link the keys
# below the same parent.
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

# What a message has beside the core's columns: ``what``: the subscription; ``box``: a row of ``boxes``.
FIELDS = np.dtype(
    [
        ("epoch", np.int64),
        ("tree", np.int64),
        ("hops", np.int64),
        ("sink", np.int64),
        ("what", np.int64),
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

INFO_PLACE = np.dtype(
    [("epoch", np.int64), ("tree", np.int64), ("parent", np.int64), ("key", np.int64), ("is_told", np.int64)],
    align=True,
)
INFO_DISTANCE = np.dtype([("epoch", np.int64), ("hops", np.int64), ("is_told", np.int64)], align=True)

# Lists: those of a node linked by ``next``, as are those that are free.
PENDING = np.dtype(
    [
        ("first_us", np.int64),
        ("due_us", np.int64),
        ("neighbor", np.int64),
        ("number", np.int64),
        ("message", np.int64),
        ("sent", np.int64),
        ("next", np.int64),
    ],
    align=True,
)
WAITING = np.dtype(
    [("since_us", np.int64), ("message", np.int64), ("previous_hop", np.int64), ("next", np.int64)], align=True
)
STORED = np.dtype([("expires_us", np.int64), ("message", np.int64), ("next", np.int64)], align=True)

# A subscription as its node asks it.
OWN_QUERY = np.dtype([("refresh_us", np.int64), ("round", np.int64), ("is_asked", np.int64)], align=True)

# An id that a node remembers; ``id`` 0: nothing here.
RECENT = np.dtype([("id", np.int64), ("ordinal", np.int32), ("value", np.int32)], align=True)

# Places in ``numbers``.
(
    KEYS,
    RECENTS,
    PATHS,
    FREE_PENDING,
    FREE_PENDINGS,
    FREE_WAITING,
    FREE_WAITINGS,
    FREE_STORED,
    FREE_STOREDS,
    PUBLISHED,
    ACKNOWLEDGEMENT,  # the message of all acknowledgements
    WANTED,  # of each pool, when there was too little
    WRONG,  # why the run cannot go on here
) = range(13)
NUMBERS = 13

# What is asked of a query.
RENEW, END = np.int64(0), np.int64(1)

# Why not: places in WRONGS.
FINE, KEY_TOO_LONG, TOO_MANY_INTERVALS, TOO_LITTLE_ROOM = range(4)
WRONGS = (
    "",
    f"a key of more than {LONGEST_KEY} bits is none that it can keep",
    f"a query or event in more than {MOST_INTERVALS} pieces is none that it can keep",
    "an event of the run takes more room than it foresaw",
)

# Rows of ``scratch`` before those of the parts that a message is split into.
INSIDE, OUTSIDE, REST = np.int64(0), np.int64(1), np.int64(2)
FIRST_PART = 3

State = namedtuple(
    "State",
    (
        # Parameters.
        "key_bits",
        "every_tree",
        "trees",
        "seats",
        "publishes_to_all",
        "shortcuts",
        "info_us",
        "lost_after_us",
        "gather_us",
        "settle_us",
        "refresh_us",
        "longest_lease_s",
        "retries",
        "retry_us",
        "grant_wait_us",
        "max_queries",
        "max_waiting",
        "max_known",
        "max_hops",
        "root_tree",  # (n,) the tree that a node is the root of, or NONE
        # Nodes and links.
        "nodes",
        "places",  # (n x seats,)
        "joinings",  # (n x seats,)
        "distances",  # (n, trees)
        "left",  # (n, trees) the newest epoch of a place that was given up
        "in_first",
        "senders",
        "listeners",
        "neighbors",  # (links,)
        "told_places",  # (links, seats)
        "children",  # (links, seats)
        # Keys and regions.
        "keys",
        "dimension_bits",
        "dimension_shifts",
        "boxes",  # (subscriptions + contents, dimensions, 2)
        "scratch",  # (rows, MOST_INTERVALS, 2)
        "scratch_counts",
        "part_hops",
        "candidates",
        # Messages.
        "fields",
        "regions",  # (messages, MOST_INTERVALS, 2)
        "info_places",  # (messages, seats)
        "info_distances",  # (messages, trees)
        "base_B",
        "place_B",
        "distance_B",
        "interval_B",
        "query_attributes_B",
        "event_attributes_B",
        "airtimes_us",
        "first_content_box",
        "first_text",
        # What is kept.
        "pendings",
        "waitings",
        "storeds",
        "own_queries",
        "recents",
        "paths",
        "most_parts",
        "most_neighbors",
        "most_deliveries",
        "least_room",
        "numbers",
    ),
)
