"""TinyMQ: content-based publish/subscribe over an overlay of several trees, whose nodes divide the key space.

Theory of operation
    The *roots* are stable nodes, sinks as a rule. Each root grows a tree. Every node joins one of the trees and gets a
    *key*, a string of bits that begins with its parent's key. A node stores its *zone*: the strings of ``key_bits``
    bits that begin with its own key, but not with a child's. So the zones of a tree's nodes partition the key space.

    The values of the ``dimensions`` are mapped to such strings: a *query* (a subscription) to a set of strings, its
    *box*; an *event* (a publication) to one string. In every tree a query is routed to the nodes whose zones contain
    strings of its box, and stored there. An event is routed to the node of a tree whose zone holds its string: the
    *rendezvous node*. That node matches the event with its stored queries, and sends a *notification* on the query's
    reverse path, or to the sink's key.

Messages (protocols/tinymq/wire.py)
    info            broadcast: the sender's position in the overlay, distances to the roots, some neighbors it hears
    join, grant     a join to the chosen parent, and its answer, a grant with a key
    query, event    to the nearest node of a tree, and there by key: attributes, and the *region*, the set of strings
                    that the message has still to reach
    notification    to the sink: event
    probe           to a neighbor that has been silent for long: requests an ack
    ack             for each unicast message that requests one, unless the receiver lacks the role in the tree that the
                    sender assumes
    refusal         answers a message that requests no ack, if the receiver lacks the assumed role; answers a message
                    that requests an ack, if the receiver has no room for the message

Where to find each rule
    which neighbor becomes the parent          `rules.may_be_parent`, `rules.is_better_parent`
    which key a child gets                     `zones.free_slot`, `rules.longest_slot`; `Overlay.take_info` corrects it
    which path to a root is better             `rules.is_better_path`; for which path a node waits: `rules.is_late`
    when a neighbor, position or path is lost  `rules.is_silent`, `rules.is_cut_off`, `rules.is_given_up`
    when a silent neighbor is probed           `rules.is_in_doubt`
    which links work both ways                 `Overlay.take_info`, `Overlay.note_answer`
    which neighbors an info names              `Overlay.choose_named`; `rules.most_named`, `rules.remaining_namings`
    which messages a node does not accept      `routing.is_misdirected`
    whether their sender keeps the next hop    `routing.is_still_next_hop`
    how many frames a node sends at once       `rules.most_frames`, `rules.MOST_IN_FLIGHT`, `rules.PACE_US`
    which messages a full node refuses         `rules.has_room_to_forward`
    how long an unanswered join is not repeated `rules.join_pause_us`
    when an info is sent again                 `rules.is_repeated`, `rules.is_info_due`
    how long to wait for an answer             `rules.retry_wait_us`; for a grant `rules.times`
    how long a query lasts                     `rules.asked_lease_s`, `rules.lease_left_s`
    which round of a query is newer            `rules.is_newer_round`
    what a node stores                         `zones.zone`
    which strings a query or an event covers   `mapping.Mapping`
    which neighbor gets which part of a region `routing.fragments`
    where a notification goes                  `routing.next_hop_to_key`, `QueryStore.path`
    when stored queries move to other nodes    `rendezvous.Rendezvous.child_added`, `Rendezvous.key_changed`

    Nodes and their fast twin (`fast/`, the fast engine's version of a node) call the same functions of `rules.py`. The
    twin's other code, over arrays, is in files of the same names, with these exceptions: `zones.py` and `mapping.py`
    are `fast/keys.py`, `rendezvous.py` is part of `fast/node.py`, the class `Position` is `fast/positions.py`, and
    `fast/messages.py` replaces `wire.py`.

Limits
    -   The stored queries of a node that dies are missing until the sinks send them again (``refresh_s``).
    -   A neighbor counts as lost after ``lost_after`` times ``info_s``. An *epoch* is a counter that each root
        increments every ``info_s``. With the defaults the subtree of a node that fails has settled 7 or 8 epochs after
        the failure, or 15 if nodes join a subtree that is already cut off.
    -   After an outage a node may keep a longer path for some epochs, until the shorter path brings the same epoch.
    -   An event that arrives before a query is not matched with it: only queries are stored.
    -   A node without a key, or without a path to a tree, keeps up to ``max_waiting`` messages for later. It drops them
        as "waited" after ``lost_after`` times ``info_s``.
    -   A node keeps up to ``max_known`` frames that wait for their turn or an answer, and drops any more as "full".
        With acks of TinyMQ's own it refuses events and notifications earlier, so that a burst waits at its senders.
        With a radio whose reports replace acks, senders are not slowed down in this way.
    -   All nodes need the same settings.
    -   Links that work one way only are not used. A link that stops working one way is noticed when frames over it
        are no longer acknowledged.
    -   With ``info_s=0`` the overlay is built once and not repaired, and each link is assumed to work both ways.
    -   Where the channel is nearly saturated, messages wait in their nodes for seconds: readings are late, not lost.
    -   The neighbors of a node that sends but does not receive repeat their joins to it after 1, 2, 4, up to 64 epochs.
    -   A radio's report replaces the neighbor's ack. A frame is lost if the neighbor's radio acknowledged it, but the
        neighbor's node did not process it.
    -   With ``acks="own"``, or a radio that reports nothing, retransmissions do not react to load: on a saturated
        channel they are most of the load, and delivery collapses.
    -   With ``retries=0`` a message that a neighbor does not receive or accept is lost, and silent neighbors are not
        probed.
    -   A message whose path changes while it is under way may visit a node twice: a notification whose sink moves, an
        event whose rendezvous node gets another key. It is routed by the new state, and does not circle.

Differs from the original in
    C1   the paper's set Z of a node is its universe: the k-bit strings that begin with its key. Its zone is the part
         of Z that the node stores.
    C2   a query is split: each part is routed on its own and reaches one node, so no part is lost or stored twice. The
         region in a message replaces the paper's test "this node has had the query already".
    C3   a shortcut leads to a neighbor of the same tree whose key is a prefix of the target and longer than the
         parent's. With the longest common prefix alone, as published, events run in circles.
    C4   the parent gives the key, the shortest one that is free: children that choose for themselves may choose alike.
    C5   the root's key is the empty string; a zone has its node's own key.
    C6   a node whose key is longer than ``key_bits`` only relays.
    C7   a value v of a dimension from lo to hi, with cells of l bits, lies in the cell
         floor((v - lo) / (hi - lo) * 2^l). A value outside of the range gets the nearest cell.
    C8   a query covers every cell that it touches; the exact match is made at the rendezvous node, and at the sink.
    C9   ``publish="own"`` sends an event to the publisher's own tree alone. The event meets all queries there,
         because queries are sent to all trees.
    C10  each distance has an epoch, so that distances can rise. Of equal distances, the one from the neighbor with the
         lowest address counts. Some paths delay epochs more than others: if the epochs on a shorter path are behind, a
         node does not take a newer epoch from a longer path.
    C11  notifications, leases, unsubscribing, repair and hand-over are additions: when a child joins, it is handed its
         part of the stored queries; when a node's key changes, its stored queries are routed anew.
    C12  events are not stored.
    --   a neighbor's distances, and shortcuts to it, count once the neighbor is known to hear this node: by a unicast
         frame from it, or by an info from it that names this node. A node's infos name each neighbor until it is
         known to hear the node. When a neighbor's info names the node, the node's next three infos name this neighbor
         in return, unless it was named lately. An info has at most 16 such names after a change, otherwise 4, of 4
         bytes each. Once all neighbors know of each other, infos name none. A frame to test each link would cost two
         frames a link.
    --   within a tree, a bit of a message's type states the role that the sender assumes of the receiver: its parent,
         or a node whose key is a prefix of the target. A receiver without that role does not process the message. A
         child whose info names another parent is removed at once, unless its grant is pending.
    --   a parent, child or next hop that is silent for half of ``lost_after`` is probed: infos are lost on poor links,
         and a neighbor that counts as lost by mistake costs its subtree all keys.
    --   if a node's radio reports acknowledgements, its frames request no ack. The radio has one frame at a time, and
         the next one follows the report. Own acks would be half of all frames, and frames that still wait in a busy
         radio would be repeated.
    --   with ``acks="own"``, or a radio without acknowledgements, a node sends at most eight frames in response to an
         input, such as a received frame. The remaining frames wait for acknowledgements, or 20 ms.
    --   a rendezvous node sends one notification for each sink and event. The sink matches it with all of its
         subscriptions. It delivers an event once, though with ``publish="all"``, as in the paper, every tree sends a
         notification.
    --   ``dimensions`` names attributes; mapping.py explains how all other parts of a subscription are mapped.
    --   ``literal=True`` routes by algorithms 3.1 and 3.2 as published: see as_published.py.

Reference
    K. Shi, Z. Deng, X. Qin: TinyMQ: a content-based publish/subscribe middleware for wireless sensor networks,
    SENSORCOMM 2011; C. Perkins, P. Bhagwat: Highly dynamic destination-sequenced distance-vector routing (DSDV),
    SIGCOMM 1994, for epochs.

The nodes run on a mote too (MicroPython's subset of Python).
"""

from workbench.attributes.dimensions import read_dimensions
from workbench.errors import ParameterError
from workbench.keywords import hand_out
from workbench.protocols.protocol import Parameter, Protocol
from workbench.protocols.tinymq import wire
from workbench.protocols.tinymq.as_published import WIDEST_KEY_SPACE, TinyMQNodeAsPublished
from workbench.protocols.tinymq.node import TinyMQNode

__all__ = ["TinyMQ"]

MOST_ROOTS = 255
SHORTEST_S = 0.001  # shortest interval of periodic tasks

PARAMETERS = (
    Parameter("roots", (0,), None, None, "nodes", "a lone sink has the first address, as a rule"),
    Parameter(
        "key_bits",
        8,
        1,
        wire.WIDEST_KEY_SPACE,
        "bits",
        "k; enough for some tens of nodes; nodes with longer keys only relay (C6)",
    ),
    Parameter("dimensions", ("TEMP",), None, None, "keys", '"TEMP", or "TEMP -20 50" to share out a narrower range'),
    Parameter(
        "publish",
        "all",
        ("all", "own"),
        None,
        "",
        "all: every tree, as in the paper; own: one tree, which costs a fraction and shares the load (C9)",
    ),
    Parameter("shortcuts", True, None, None, "", "as in the paper, without those that lead into circles (C3)"),
    Parameter(
        "literal",
        False,
        None,
        None,
        "",
        "whether the published algorithms are used, which lose queries and circle events",
    ),
    Parameter(
        "info_s", 10.0, 0.0, 3600.0, "s", "length of an epoch; a repair takes several; 0: the overlay is not repaired"
    ),
    Parameter(
        "lost_after",
        4.0,
        2.0,
        1000.0,
        "of info_s",
        "a neighbor silent for so long is lost; at 20 % loss one live neighbor in 600 is; near 2, more",
    ),
    Parameter(
        "gather_ms",
        20.0,
        0.0,
        60000.0,
        "ms",
        "an info waits so long after a change, and announces several; some frames' airtime",
    ),
    Parameter(
        "settle_s",
        0.5,
        0.0,
        3600.0,
        "s",
        "from a new key or tree until queries are sent again; the overlay settles meanwhile",
    ),
    Parameter("refresh_s", 30.0, 0.0, 65534.0, "s", "diffusion3's interest refresh; 0: queries are sent once"),
    Parameter("lease_s", 150.0, 1.0, 65534.0, "s", "diffusion3's: five refreshes may be lost"),
    Parameter("retries", 10, 0, 30, "frames", "at 30 % loss each way one hop in 1,600 fails; 0: no acknowledgements"),
    Parameter(
        "acks",
        "radio",
        ("radio", "own"),
        None,
        "",
        "a radio that reports outcomes saves half of the frames, and sets the pace; own: nodes send acks themselves",
    ),
    Parameter("retry_ms", 50.0, 0.1, 60000.0, "ms", "some frames' airtime and a wait for the channel"),
    Parameter("max_queries", 500, 1, 65535, "queries", "own subscriptions, and queries stored as a rendezvous node"),
    Parameter("max_waiting", 50, 1, 65535, "messages", "messages that a node without a key keeps for later"),
    Parameter(
        "max_known",
        1000,
        1,
        65535,
        "ids",
        "each: events, paths of queries, frames to and from neighbors; as in Flooding",
    ),
    Parameter("max_hops", 1000, 1, 65534, "hops", "more than the depth of any network here"),
)


# The settings of notebooks/papers/tinymq.ipynb and 03-tinymq.ipynb. In figures 3 to 5 the overlay is built once, and
# frames are not retransmitted. The roots' epochs, which drive repair, are on only in figure 6.
_EVALUATION = {"dimensions": ("TEMP 0 50", "HUMIDITY 0 100"), "key_bits": 16, "refresh_s": 0.0, "retries": 0}
EVALUATIONS = {
    "the paper's figures 3 to 5": {**_EVALUATION, "info_s": 0.0},
    "the paper's figure 6: repair": {**_EVALUATION, "info_s": 5.0},
    "figures 3 to 5, events to one tree": {**_EVALUATION, "info_s": 0.0, "publish": "own"},
}
PRESETS = {
    **EVALUATIONS,
    "figures 3 to 5, as published": {**_EVALUATION, "info_s": 0.0, "key_bits": 8, "literal": True},
    "lesson 3": {"dimensions": ("TEMP 0 1", "HUMIDITY 0 100"), "key_bits": 4, "info_s": 2.0},
}


class TinyMQ(Protocol):
    """TinyMQ with its parameters: ``TinyMQ(roots=(6, 9), dimensions=("TEMP 0 50", "HUMIDITY"), key_bits=8)``."""

    node = TinyMQNode
    parameters = PARAMETERS
    added = ("acks",)
    largest_address = wire.U32 - 1
    fast = "workbench.protocols.tinymq.fast"
    dissector = "workbench.protocols.tinymq.dissector"
    explain = "workbench.protocols.tinymq.explain"
    presets = PRESETS
    natures = {
        "join": "set_up",
        "grant": "set_up",
        "refusal": "set_up",
        "info": "upkeep",
        "probe": "upkeep",
        "query": "upkeep",
    }
    is_literal = False  # whether queries and events are routed as published

    def __new__(cls, *unnamed, **settings):
        """Return a new TinyMQ, or with ``literal=True`` a `PrintedTinyMQ`, which routes as published in the paper."""
        if cls is TinyMQ and settings.get("literal") is True:
            cls = PrintedTinyMQ
        return Protocol.__new__(cls, *unnamed)

    def __init__(self, **settings):
        Protocol.__init__(self, **settings)
        if self.settings.get("literal", False) != self.is_literal:
            raise ParameterError(
                "%s: literal is %s; in this class it must be %s; write TinyMQ(literal=%s) instead"
                % (type(self).__name__, not self.is_literal, self.is_literal, not self.is_literal)
            )
        owner = self.public_class().__name__
        self.settings["roots"] = _read_roots(owner, self.settings["roots"])
        self._check_times(owner)
        self.spans = read_dimensions(owner, self.settings["dimensions"])
        self.node.prepare(self)

    def _check_times(self, owner):
        if self.lease_s <= self.refresh_s:
            raise ParameterError(
                "%s: lease_s is %s and refresh_s is %s; lease_s must be longer, or queries end between refreshes"
                % (owner, self.lease_s, self.refresh_s)
            )
        for setting_name in ("info_s", "refresh_s"):
            if 0 < self.settings[setting_name] < SHORTEST_S:
                raise ParameterError(
                    "%s: %s is %s s; it must be 0, or at least %s s"
                    % (owner, setting_name, self.settings[setting_name], SHORTEST_S)
                )

    def named_nodes(self):
        """Return {"roots": addresses of the roots}. A scenario raises an error if its network lacks one of them."""
        return {"roots": self.roots}

    def receptions_on_an_arc(self, readings, subscriptions, duration_s):
        """Estimate how many frames are received on each arc (directed link) of the network during a run.

        The estimate is one frame for each reading and each subscription, plus the infos (status broadcasts) of each
        interval ``info_s`` and of the time in which the trees are built. ``readings``, ``subscriptions``: their numbers
        in the whole run; ``duration_s``: the length of the run.
        """
        trees = len(self.roots)
        infos_per_epoch = 60 * trees if self.node.every_tree else 20 + 5 * trees
        epoch_count = 1 + (duration_s / self.info_s if self.info_s else 0)
        return readings + epoch_count * infos_per_epoch + subscriptions

    def on_a_mote(self, address=None):
        """Return the settings for a mote as {name: plain value}; ``address`` has no effect, as all motes get the same.

        The entry "spans" lists each dimension as (number of its key, lowest value, highest value), because a mote does
        not know the names of keys.
        """
        plain_settings = Protocol.on_a_mote(self, address)
        plain_settings["spans"] = self.spans
        return plain_settings


class PrintedTinyMQ(TinyMQ):
    """TinyMQ with its paper's algorithms 3.1 and 3.2 as published; ``literal`` is always True.

    It is equal to ``TinyMQ(literal=True)``. Numbers such as C3 in the descriptions of the parameters refer to the list
    of differences from the paper in the docstring of `workbench.protocols.tinymq`.
    """

    node = TinyMQNodeAsPublished
    why_not_fast = "algorithms 3.1 and 3.2 as published are meant for small networks"
    is_literal = True

    @classmethod
    def public_class(cls):
        """Return TinyMQ, because scenario files and errors write this protocol as ``TinyMQ(literal=True)``."""
        return TinyMQ

    def __init__(self, **settings):
        settings.setdefault("literal", True)
        TinyMQ.__init__(self, **settings)
        if self.key_bits > WIDEST_KEY_SPACE:
            raise ParameterError(
                "TinyMQ: key_bits is %d; with literal=True it must be at most %d: the algorithms visit every string"
                % (self.key_bits, WIDEST_KEY_SPACE)
            )
        if not self.shortcuts:
            raise ParameterError(
                "TinyMQ: shortcuts is False; with literal=True it must be True: the published algorithms use them"
            )


def _read_roots(owner, roots):
    roots = tuple([_as_int(root) for root in roots])
    is_valid = 1 <= len(roots) <= MOST_ROOTS
    for root in roots:
        is_valid = is_valid and isinstance(root, int) and not isinstance(root, bool) and root >= 0
    if not is_valid or len(set(roots)) < len(roots):
        raise ParameterError("%s: roots is %r; it must name from 1 to %d nodes, each once" % (owner, roots, MOST_ROOTS))
    return roots


def _as_int(number):
    """Convert an integer type of another library, such as NumPy, to int; return any other value unchanged."""
    is_foreign = not isinstance(number, int) and hasattr(number, "__index__")
    return number.__index__() if is_foreign else number


hand_out(__name__, {"views": "views"})
