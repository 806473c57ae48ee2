"""What the nodes of a fast TinyDiffusion network remember: arrays, and how much of each an event may take.

Memory
    All lists have the sizes that the parameters give them, or less where the workload cannot fill them: a node's cache
    has no more entries than there are distinct interests, and an entry no more gradients than there are pairs of a
    sink and a neighbor. In bytes, per node::

        56                                     counters and timers
        8 x max_data                           duplicate list of data
        12 x max_seen_interests                interests already seen
        24 + 32 x gradients + 20 x data gradients             per entry
        48 + 20 x data gradients               per subscription
        16                                     per sample that may wait

    With the defaults 1500 nodes with ten distinct interests take 10 MB. Pages that no node writes to are never taken.
    Attribute lists (`diffusion_attributes`), marks of sinks (`diffusion_paths`) and what filters remember
    (`diffusion_filters`) are pools that grow; an attribute list takes 24 bytes and 12 for each attribute.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

# Names of messages: places in MESSAGES.
MESSAGES = ("", "interest", "reinforcement", "data")
INTEREST, REINFORCEMENT, DATA = 1, 2, 3

MOST_ATTRIBUTES = 16  # of a message: 50 bytes hold so many blobs of none
FOREVER_US = 1 << 62

NODE = np.dtype(
    [
        ("first_expiry_us", np.int64),
        ("tick_us", np.int64),
        ("messages", np.int64),  # numbered so far
        ("entries", np.int32),
        ("own_interests", np.int32),
        ("samples", np.int32),
        ("seen_data", np.int32),
        ("oldest_data", np.int32),
        ("seen_interests", np.int32),
        ("oldest_interest", np.int32),
    ],
    align=True,
)

# An entry of the interest cache.
ENTRY = np.dtype(
    [("list", np.int32), ("constraints", np.int32), ("gradients", np.int32), ("is_used", np.int32)],
    align=True,
)

# ``sequence`` and ``wave`` are NONE where the node has None.
GRADIENT = np.dtype(
    [
        ("expires_us", np.int64),
        ("sequence", np.int64),
        ("wave", np.int64),
        ("neighbor", np.int32),
        ("sink", np.int32),
    ],
    align=True,
)

# ``marks``: the first of the sinks that it is reinforced for.
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

# ``first`` and ``last`` of its subscriptions, which are linked by ``behind``.
OWN_INTEREST = np.dtype(
    [
        ("refresh_us", np.int64),
        ("sequence", np.int64),
        ("list", np.int32),
        ("round", np.int32),
        ("reinforcements", np.int32),
        ("first", np.int32),
        ("last", np.int32),
        ("is_used", np.int32),
    ],
    align=True,
)

SAMPLE_WAITING = np.dtype([("number", np.int64), ("list", np.int32)], align=True)

# What a message has beside the core's columns; ``origin`` is a place, and the attributes are the message's content.
INTEREST_FIELDS = np.dtype([("origin", np.int32), ("round", np.int32), ("expiration_s", np.int32)], align=True)

# A list of attributes: rows of ``attributes``; its size on the wire, the list of its constraints, the code of its text
# (NONE for one that was made during the run), and the next one of the same hash.
LIST = np.dtype(
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
    ],
    align=True,
)

# What a filter on a node remembers of an origin, found by its hash.
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

# What a neighborhood_average on a node remembers of all origins.
AVERAGE = np.dtype([("next_us", np.int64), ("sum", np.int64), ("count", np.int64), ("period", np.int64)], align=True)

# Places in ``numbers``.
(
    LISTS,
    REMEMBERED,  # lists that can be found by their content
    ATTRIBUTES,
    FREE_MARK,
    FREE_MARKS,
    STAMP,
    MEMORIES,
) = range(7)
NUMBERS = 7

# Places in ``room``: what of each pool an event may take.
NEEDS_LISTS, NEEDS_ATTRIBUTES, NEEDS_MARKS, NEEDS_MEMORIES = range(4)

State = namedtuple(
    "State",
    (
        # Parameters.
        "max_gradients",
        "max_interests",
        "max_reinforcements",
        "max_data",
        "ttl",
        "refresh_us",
        "lifetime_s",
        "tick_us",
        "reinforce_after",
        "exploratory_gradients",
        "evicts_oldest",
        "room_B",
        # Per node.
        "nodes",
        "seen_data",  # (n, ids)
        "seen_interests",  # (n, ids)
        "seen_rounds",  # (n, ids)
        "black_first",  # (n + 1,)
        "black",  # places of the neighbors on the black lists
        # The interest cache: node i's entries are i * slots ... ; ``order`` (n, entries) has them oldest first.
        "slots",
        "order",
        "entries",
        "gradients",  # (entries, max_gradients)
        "data_gradients",  # (entries + own interests, max_reinforcements)
        "data_gradient_counts",
        "marks",
        # Own interests: node i's are own_first[i]:own_first[i + 1]; ``own_order`` has them oldest first.
        "own_first",
        "own_order",
        "own_interests",
        "subscription_lists",
        "behind",
        # Samples that wait: node i's are samples_first[i]:samples_first[i + 1], oldest first.
        "samples_first",
        "samples",
        # Messages and attribute lists.
        "interest_fields",
        "airtimes_us",
        "lists",
        "attributes",
        "buckets",
        "is_blob",  # by key
        "blob_sizes_B",
        "text_base",
        # Filters.
        "filters",
        "carries",  # (filters, n)
        "averages",  # (filters, n)
        "memories",
        "memory_buckets",
        "windows",  # (memories, longest window)
        # Scratch.
        "hops",
        "wanted",
        "sink_stamp",
        "sink_room",
        "paths",  # (paths, 2): neighbor and source
        "parts",
        "numbers",
        "room",
    ),
)
