"""The arrays of TinyDiffusion's state in the fast engine: the memory of all nodes, messages and growing arrays.

Memory
    The protocol's parameters determine the sizes of all lists, except if the workload cannot fill a list. Then the list
    is shorter: a node's cache has no more entries than there are distinct interests, and an entry has no more gradients
    than there are pairs of a sink and a neighbor. The table shows the bytes that a node takes. A line that ends in
    "per entry" is needed for each entry of the node's cache; "per subscription" and "per sample" likewise::

        64                                     counters and timers
        32 x MAX_WAITING                       frames to send again
        4 x sinks                              the sink that each bit of a set of served sinks stands for
        40 x max_data                          duplicate list of data, with the set of served sinks of each message
        24 x max_seen_interests                interests already seen
        32 + 40 x gradients + 20 x data gradients             per entry
        24 x max_interests                     INTERVALs of sinks (`paces`), if an interest has one
        64 + 20 x data gradients               per subscription
        24                                     per sample that may wait

    With the defaults 1500 nodes with ten distinct interests take 10 MB. Memory pages that no node writes to are never
    allocated. Attribute lists (`attributes`), the sinks for which data gradients are reinforced (`paths`), and the
    memory of filters (`filters`) are arrays that grow; an attribute list takes 24 bytes and 12 for each attribute.
"""

from __future__ import annotations

from collections import namedtuple
from enum import auto
from typing import Any

import numpy as np

from workbench.protocols.diffusion.rules import FOREVER_US, MAX_WAITING
from workbench.sim.fast import twin
from workbench.sim.fast.twin import GIVEN, NONE, Array, Fields, Pool


class Event(twin.Events):
    """Codes of the trace events that only this protocol has."""

    FILTERED = auto()
    INTEREST_CACHED = auto()
    INTEREST_REMOVED = auto()
    GRADIENT_SET = auto()
    GRADIENT_REMOVED = auto()
    DATA_GRADIENT_SET = auto()
    REINFORCED = auto()
    BLACKLISTED = auto()
    HEAD_SET = auto()
    WITHHELD = auto()


class Reason(twin.Reasons):
    """Codes that only this protocol writes to the trace's column ``detail``, such as the reasons for drops."""

    STALE = auto()
    FILTER = auto()
    NO_GRADIENT = auto()
    NO_INTEREST = auto()
    BLACKLISTED = auto()
    EXPIRED = auto()
    EVICTED = auto()
    CANCELLED = auto()
    ROUND = auto()
    INTEREST = auto()
    REINFORCEMENT = auto()
    REPLACE = auto()
    DROP = auto()
    FULL = auto()
    INTERVAL = auto()


class Message(twin.Messages):
    """Codes of the protocol's kinds of messages."""

    INTEREST = auto()
    REINFORCEMENT = auto()
    DATA = auto()


MOST_ATTRIBUTES = 16  # of a message: 50 bytes hold this many empty blobs

NODE = np.dtype(
    [
        ("first_expiry_us", np.int64),
        ("tick_us", np.int64),
        ("messages", np.int64),  # messages sent so far, for their numbers
        ("entries", np.int32),
        ("own_interests", np.int32),
        ("samples", np.int32),
        ("seen_interests", np.int32),
        ("waiting", np.int32),
        ("served_sinks", np.int32),
        ("paces", np.int32),
        ("is_evicting", np.int32),
        ("seen_data", twin.RING),
    ],
    align=True,
)

# An entry of the interest cache. ``sink``, a node index, and ``sequence``: of the interest that was cached last.
ENTRY = np.dtype(
    [
        ("sequence", np.int64),
        ("list", np.int32),
        ("constraints", np.int32),
        ("gradients", np.int32),
        ("sink", np.int32),
        ("is_used", np.int32),
    ],
    align=True,
)

# ``sequence`` and ``reinforced_by`` are NONE where `interest_cache.Gradient` has None.
GRADIENT = np.dtype(
    [
        ("expires_us", np.int64),
        ("sequence", np.int64),
        ("reinforced_by", np.int64),
        ("neighbor", np.int32),
        ("sink", np.int32),
        ("round", np.int32),
        ("ttl", np.int32),
    ],
    align=True,
)

# How often a source sends readings that match an entry to a sink. ``last_us`` is NONE before the first reading.
PACE = np.dtype(
    [("interval_us", np.int64), ("last_us", np.int64), ("entry", np.int32), ("sink", np.int32)],
    align=True,
)

# The memory of a data message, beside its id and the bits of the served sinks.
SEEN_DATA = np.dtype(
    [
        ("time_us", np.int64),
        ("sender", np.int32),
        ("ttl", np.int32),
        ("retries", np.int16),
        ("is_settled", np.int16),
    ],
    align=True,
)

# A data frame to be sent again. ``failed``: the neighbor that did not acknowledge it; ``sender``: its previous hop.
WAITING = np.dtype(
    [
        ("time_us", np.int64),
        ("message", np.int32),
        ("ttl", np.int32),
        ("failed", np.int32),
        ("sender", np.int32),
    ],
    align=True,
)

# ``marks``: the first mark, whose list has the sinks for which the data gradient is reinforced.
DATA_GRADIENT = np.dtype(
    [
        ("source", np.int32),
        ("neighbor", np.int32),
        ("list", np.int32),
        ("messages", np.int32),
        ("marks", np.int32),
    ],
    align=True,
)

MARK = np.dtype([("sink", np.int32), ("next", np.int32)], align=True)

# ``subscriptions``: a list of rows of LINK, in order of arrival. ``is_flooded``: see `interest_cache.OwnInterest`;
# ``repeats`` is NONE before the first round.
OWN_INTEREST = np.dtype(
    [
        ("refresh_us", np.int64),
        ("repeat_us", np.int64),
        ("sequence", np.int64),
        ("list", np.int32),
        ("round", np.int32),
        ("reinforcements", np.int32),
        ("repeats", np.int32),
        ("subscriptions", twin.LIST),
        ("is_used", np.int32),
        ("is_flooded", np.int32),
    ],
    align=True,
)
LINK = np.dtype([("next", np.int32)])

# ``early``: the number of sinks for which it is too early to send the sample; only in ``wanted``.
SAMPLE_WAITING = np.dtype(
    [("number", np.int64), ("ends_us", np.int64), ("list", np.int32), ("early", np.int32)], align=True
)

# An interest that was heard.
SEEN_INTEREST = np.dtype([("id", np.int64), ("time_us", np.int64), ("round", np.int32)], align=True)

# The fields of a message beside the engine's columns; ``origin`` is a node index, and the content is the attributes.
# Interests have ``round`` and ``expiration_s``; data has ``is_aggregate`` and ``listed_sinks``, their number.
MESSAGE_FIELDS = np.dtype(
    [
        ("origin", np.int32),
        ("round", np.int32),
        ("expiration_s", np.int32),
        ("is_aggregate", np.int16),
        ("listed_sinks", np.int16),
    ],
    align=True,
)

# A list of attributes: rows first:last of ``attributes``, size on the wire, list of its constraints, code of its text
# (NONE for a list built during the run), and the next list with the same hash.
ATTRIBUTE_LIST = np.dtype(
    [
        ("first", np.int32),
        ("last", np.int32),
        ("size_B", np.int32),
        ("constraints", np.int32),
        ("detail", np.int32),
        ("next", np.int32),
    ],
    align=True,
)

FILTER = np.dtype(
    [
        ("tolerance", np.float64),
        ("high", np.float64),
        ("low", np.float64),
        ("period_us", np.int64),  # heartbeat, period or interval
        ("window", np.int32),
        ("kind", np.int32),
        ("key", np.int32),
        ("messages", np.int32),
        ("match", np.int32),
        ("of", np.int32),
        ("flush", np.int32),
    ],
    align=True,
)

# The memory of a filter on a node for an origin, found by its hash.
MEMORY = np.dtype(
    [
        ("time_us", np.int64),
        ("id", np.int64),  # filter, node and origin
        ("value", np.int64),
        ("count", np.int32),
        ("next", np.int32),
    ],
    align=True,
)

# The memory of a neighborhood_average on a node, for all origins. With ``flush`` it emits ``last_list`` with the mean
# at ``emits_us`` (or NONE), as the data message that it has dropped last: ``held_origin`` (a node index, or NONE before
# the first), ``held_sequence``, the neighbor that brought it and its ttl.
AVERAGE = np.dtype(
    [
        ("next_us", np.int64),
        ("sum", np.int64),
        ("count", np.int64),
        ("period", np.int64),
        ("emits_us", np.int64),
        ("held_sequence", np.int64),
        ("held_origin", np.int32),
        ("held_sender", np.int32),
        ("held_ttl", np.int32),
        ("last_list", np.int32),
        ("has_dropped", np.int32),  # a part of the message that is being filtered
    ],
    align=True,
)

# A path: a copy of data for a sink, whose next hop is one of the neighbors candidates[first:last]. ``copy_number``: the
# copy that serves it, or NONE; ``rank``: 0 for the first path of a sink, 1 for further ones that explore.
PATH = np.dtype(
    [("sink", np.int32), ("first", np.int32), ("last", np.int32), ("copy_number", np.int32), ("rank", np.int32)],
    align=True,
)
# The number of paths whose next hop a neighbor may be, and the number of these whose first gradient leads to it.
HOP_COUNT = np.dtype([("paths", np.int32), ("heads", np.int32)], align=True)


class Number(twin.Codes):
    """Indices in ``state.numbers``: network-wide counters, and the first free entry of each pool (growing array)."""

    LISTS = auto()
    REMEMBERED = auto()  # lists in the hash table
    ATTRIBUTES = auto()
    FREE_MARK = auto()
    FREE_MARKS = auto()
    STAMP = auto()
    SKIPPED = auto()  # the stamp of sinks that get no copy of the current message
    MEMORIES = auto()


class PoolNeed(twin.Codes):
    """Indices in ``state.pool_needs``: how many entries of each growing array one simulation event may use."""

    LISTS = auto()
    ATTRIBUTES = auto()
    MARKS = auto()
    MEMORIES = auto()


FIELDS: Fields = {
    # Parameters.
    "max_gradients": int,
    "max_interests": int,
    "max_reinforcements": int,
    "max_data": int,
    "max_sinks": int,
    "max_next_hops": int,
    "ttl": int,
    "refresh_us": GIVEN,
    "max_repeats": int,
    "lifetime_s": GIVEN,
    "tick_us": GIVEN,
    "reinforce_after": int,
    "exploratory_gradients": int,
    "sample_lifetime_us": GIVEN,
    "known_for_us": GIVEN,
    "max_attributes_B": GIVEN,  # of a data message
    "blacklist_loss": float,
    "blacklist_hysteresis": float,
    "max_black": int,
    "is_strict": GIVEN,
    "is_two_way": GIVEN,
    "merge_interests": bool,
    # Nodes. ``black`` has the neighbors on their black lists: node i's begin at ``black_first[i]``.
    "nodes": Array(NODE, "nodes", {"first_expiry_us": FOREVER_US, "tick_us": NONE}),
    "seen_data": Array(np.int64, ("nodes", "seen data")),
    "seen_data_more": Array(SEEN_DATA, ("nodes", "seen data")),
    "served": Array(np.uint64, ("nodes", "seen data", "served words")),
    "served_sinks": Array(np.int32, ("nodes", "served sinks")),
    "waiting": Array(WAITING, ("nodes", MAX_WAITING)),
    "seen_interests": Array(SEEN_INTEREST, ("nodes", "seen interests")),
    "black_first": GIVEN,
    "black_counts": Array(np.int32, "nodes"),
    "black": Array(np.int32, "black"),
    # The interest cache: node i's entries are i * slots ... ; ``order`` has them oldest first. Data gradients are in
    # blocks, see `paths`.
    "slots": GIVEN,
    "order": Array(np.int32, ("nodes", "slots")),
    "entries": Array(ENTRY, "entries"),
    "gradients": Array(GRADIENT, ("entries", "gradients")),
    "paces": Array(PACE, ("nodes", "paces")),
    "data_gradients": Array(DATA_GRADIENT, ("blocks", "data gradients")),
    "data_gradient_counts": Array(np.int32, "blocks"),
    "marks": Pool(MARK, "marks", Number.FREE_MARK),
    # Own interests: node i's are own_first[i]:own_first[i + 1]; ``own_order`` has them oldest first.
    "own_first": GIVEN,
    "own_order": Array(np.int32, "own interests"),
    "own_interests": Array(OWN_INTEREST, "own interests"),
    "subscription_lists": GIVEN,
    "reinforcement_lists": GIVEN,
    "subscription_links": Array(LINK, "own interests", survives=True),  # one for each subscription of any node
    # Waiting samples: node i's are samples_first[i]:samples_first[i + 1], oldest first.
    "samples_first": GIVEN,
    "samples": Array(SAMPLE_WAITING, "samples"),
    # Messages and attribute lists.
    "message_fields": Array(MESSAGE_FIELDS, "messages"),
    "listed_sinks": Array(np.int32, ("messages", "listed")),  # the sinks in the list of a data message
    "airtimes_us": GIVEN,  # by bytes of the frame
    "lists": Array(ATTRIBUTE_LIST, "lists"),
    "attributes": Array(np.int32, ("attributes", 3)),
    "buckets": GIVEN,
    "is_blob": GIVEN,  # by key
    "blob_sizes_B": GIVEN,
    "text_base": GIVEN,
    # Filters.
    "filters": GIVEN,
    "carries": GIVEN,  # (filters, nodes)
    "averages": Array(AVERAGE, ("filters", "nodes"), {"next_us": NONE, "emits_us": NONE, "held_origin": NONE}),
    "memories": Array(MEMORY, "memories"),
    "memory_buckets": GIVEN,
    "windows": Array(np.int32, ("memories", "window")),
    # Scratch space. ``paths``: neighbor and source of each path of a reinforcement.
    "hops": Array(np.int32, "hops"),
    "data_paths": Array(PATH, "data paths"),
    "candidates": Array(np.int32, "data paths"),
    "hop_counts": Array(HOP_COUNT, "nodes"),
    "served_now": Array(np.int32, "data paths"),
    "served_else": Array(np.int32, "served else"),
    "wanted": Array(SAMPLE_WAITING, "wanted"),
    "early_sinks": Array(np.int32, ("wanted", "early sinks")),
    "skip_stamp": Array(np.int64, "nodes"),
    "sink_stamp": Array(np.int64, "nodes"),
    "sink_room": Array(np.int64, "nodes"),
    "paths": Array(np.int32, ("hops", 2)),
    "parts": Array(np.int32, MOST_ATTRIBUTES),
    "numbers": Array(np.int64, len(Number)),
    "pool_needs": GIVEN,
}
State: Any = namedtuple("State", FIELDS)
