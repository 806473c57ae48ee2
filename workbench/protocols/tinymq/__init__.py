"""TinyMQ: content-based publish/subscribe over an overlay of several trees, whose nodes share out the space of keys.

Theory of operation
    The *roots* are stable nodes, sinks as a rule. Each root grows a tree. Every node joins one of the trees and gets a
    *key*, a string of bits that begins with its parent's key. A node stores its *zone*: the strings of ``key_bits``
    bits that begin with its own key and with no child's. So the zones of a tree are the whole key space, cut into
    disjoint parts.

    The values of the ``dimensions`` are mapped to such strings: a *query* (a subscription) to a box of them, an *event*
    to one. A query is routed to the nodes of every tree whose zones it meets, and stored there. An event is routed to
    the one node of a tree in whose zone it lies: the *rendezvous node* of the two. It matches the event with the
    queries that it stores, and sends a *notification* back the way that the query came, or to the sink's key.

Messages (protocols/tinymq/wire.py)
    info            broadcast: the sender's place in the overlay, its distances to the roots, some neighbors it hears
    join, grant     to the parent and back: a key
    query, event    towards a tree, then by key: box, region that it has still to come to, attributes
    notification    to the sink: event
    probe           to a neighbor that has been silent for long: an answer is wanted
    ack             for each message but info that asks for one, unless the receiver is not what the sender takes it for
    refusal         from such a receiver, for a message that asks for no ack

Where each rule stands
    which neighbor becomes the parent          `rules.may_be_parent`, `rules.is_better_parent`
    which key a child gets                     `zones.free_slot`, `rules.longest_slot`; `Overlay.take_info` corrects it
    which way to a root is better              `rules.is_better_way`; which one is waited for: `rules.is_late`
    when a neighbor, a place or a way is lost  `rules.is_silent`, `rules.is_cut_off`, `rules.is_given_up`
    when a silent neighbor is asked            `rules.is_in_doubt`
    which links work both ways                 `Overlay.take_info`, `Overlay.answered`
    whom an info names                         `Overlay.named`; `rules.most_named`, `rules.namings_owed`
    whose message a node does not take         `routing.is_astray`; `routing.leads_to` says where it goes instead
    how many frames a node sends at once       `rules.most_frames`, `rules.MOST_ON_WAY`, `rules.PACE_US`
    which messages a full node refuses         `rules.may_take_more`
    how long an unanswered join is not repeated `rules.join_pause_us`
    when an info is sent again                 `rules.is_repeated`, `rules.is_info_due`
    how long to wait for an answer             `rules.retry_wait_us`; for a grant `rules.times`
    how long a query lasts                     `rules.asked_lease_s`, `rules.lease_left_s`
    which of two queries is newer              `rules.is_newer_round`
    what a node stores                         `zones.zone`
    which strings a query or an event has      `mapping.Mapping`
    which neighbor gets which part of it       `routing.fragments`
    where a notification goes                  `routing.hop_to_key`, `QueryStore.path`
    what happens to stored queries             `rendezvous.Rendezvous`, when children come and keys change

    Nodes and their fast twin (`fast/`) call the same functions of `rules.py`. What the twin has of its own, over
    arrays, is in files of the same names: `zones.py` is `fast/keys.py`, the class `Place` is `fast/places.py`.

Limits
    -   What a node that dies had stored is missed until the sinks have sent their queries again (``refresh_s``).
    -   A neighbor is lost after ``lost_after`` times ``info_s``. With the defaults its subtree has settled after 7 or 8
        epochs in all. Where nodes join a subtree that is cut off already, it takes 15.
    -   After an outage a node may keep a longer way for some epochs more: it waits for those of the shorter one.
    -   An event that overtakes a query is not matched with it: only queries are stored.
    -   A node without a key, or without a way to a tree, keeps ``max_waiting`` messages for later. It drops them as
        "waited" after ``lost_after``.
    -   A node keeps ``max_known`` frames that wait for their turn or an answer, and drops further ones as "full". With
        acks of TinyMQ's own it refuses events and notifications before, so that a burst waits with its senders. A radio
        whose reports take the place of acks has no such brake.
    -   All nodes need the same settings.
    -   Links that work one way only are not used. A link that stops working one way is noticed when a frame over it is
        not acknowledged, ``retries`` times.
    -   With ``info_s=0`` the overlay is built once and not repaired, and each link is taken to work both ways.
    -   Where the channel is nearly saturated, messages wait in their nodes for seconds: readings are late, not lost.
    -   The neighbors of a node that sends and does not receive ask it again to be their parent, after 1, 2, 4, up to 64
        epochs.
    -   A radio's report is taken for the neighbor's ack. What its radio took and its node did not is lost.
    -   With ``acks="own"``, or a radio that reports nothing, repetitions do not react to load: on a saturated channel
        they are most of the load, and delivery collapses.
    -   With ``retries=0`` a message that a neighbor does not take is lost, and no silent neighbor is asked.
    -   A message whose way changes while a node has it may come to a node that it has passed: a notification whose sink
        moves, an event whose rendezvous node gets another key. It is sent on by what is true then, and does not circle.

Differs from the original in
    C1   Z is the universe of X, the k-bit strings prefixed by its key; its zone is what X stores of it.
    C2   a query is split: each part goes its own way and reaches one node, so nothing is lost or comes twice. The
         region that a message carries takes the place of "this node had it already".
    C3   a shortcut leads to a neighbor of the same tree whose key is a prefix of the target and longer than the
         parent's. With the longest common prefix alone, as published, events run in circles.
    C4   the parent gives the key, the shortest one that is free: children that choose for themselves may choose alike.
    C5   the root's key is the empty string; a zone has its node's own key.
    C6   a node whose key is longer than ``key_bits`` only relays.
    C7   h(v) = floor((v - lo) / (hi - lo) * 2^l), clamped.
    C8   a query covers every cell that it touches; the exact match is made at the rendezvous node, and at the sink.
    C9   ``publish="own"`` sends an event to the publisher's own tree alone: queries are in all trees, so they meet.
    C10  distances have epochs, so that they can rise; of equal ones the neighbor with the lowest number counts. A node
         waits with newer epochs for a shorter way that is behind: epochs take longer on some ways than on others.
    C11  notifications, leases, unsubscribing, repair and hand-over are ours: on a join stored queries go to the child,
         on a new key to where they now belong.
    C12  events are not stored.
    --   a neighbor's distances, and shortcuts to it, count once it is known to hear this node. A unicast frame tells
         it, and infos do by naming neighbors that their senders hear: who is not known to hear the sender, and in three
         infos who has named it itself; after a change 16 at most, else 4, of 4 bytes each. Once all know each other
         infos name nobody. To ask each neighbor by a frame of its own would cost two frames for each way.
    --   a message within a tree says for what its sender takes the receiver, in a bit of its type: a receiver that is
         not that does not take it. A child that claims another parent is forgotten at once, unless its grant is
         pending.
    --   a parent, child or next hop that is silent for half of ``lost_after`` is asked for an answer (a probe, and its
         ack): infos are lost on poor links, and a neighbor that was taken for lost cost its subtree all keys.
    --   where a node's radio reports acknowledgements, its frames ask for no ack. The radio has one of them at a time,
         and the next one follows the report: own acks were half of all frames, and repeated what still waited in a
         busy radio. With ``acks="own"``, and without such a radio, it is as below.
    --   a call of a node sends no more than eight frames; the rest follows every 20 ms.
    --   a rendezvous node sends one notification for each sink and event. The sink matches it with all of its
         subscriptions, and delivers an event once, though in the paper's mode every tree notifies it.
    --   ``dimensions`` names attributes; how anything else in a subscription is mapped stands in mapping.py.
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
SHORTEST_S = 0.001  # of what is done again and again

PARAMETERS = (
    Parameter("roots", (0,), None, None, "nodes", "a lone sink has the first address, as a rule"),
    Parameter(
        "key_bits", 8, 1, wire.WIDEST_KEY_SPACE, "bits", "k; enough for some tens of nodes: deeper ones only relay (C6)"
    ),
    Parameter("dimensions", ("TEMP",), None, None, "keys", '"TEMP", or "TEMP -20 50" to share out a narrower range'),
    Parameter("publish", "all", ("all", "own"), None, "", "the paper's; own costs a fraction and shares the load (C9)"),
    Parameter("shortcuts", True, None, None, "", "as the paper has them, as far as they are safe (C3)"),
    Parameter("literal", False, None, None, "", "the published algorithms lose queries and send events in circles"),
    Parameter("info_s", 10.0, 0.0, 3600.0, "s", "an epoch: a repair takes some of them; 0: nothing is repaired"),
    Parameter(
        "lost_after",
        4.0,
        2.0,
        1000.0,
        "of info_s",
        "at 20 % loss a live neighbor seems lost once in 600; near 2 even at rest",
    ),
    Parameter("gather_ms", 20.0, 0.0, 60000.0, "ms", "some frames' airtime: one info tells of several changes"),
    Parameter("settle_s", 0.5, 0.0, 3600.0, "s", "after a new key or tree: by then the overlay has found its form"),
    Parameter("refresh_s", 30.0, 0.0, 65534.0, "s", "diffusion3's interest refresh; 0: queries are sent once"),
    Parameter("lease_s", 150.0, 1.0, 65534.0, "s", "diffusion3's: five refreshes may be lost"),
    Parameter("retries", 10, 0, 30, "frames", "at 30 % loss each way one hop in 1,600 fails; 0: no acknowledgements"),
    Parameter(
        "acks",
        "radio",
        ("radio", "own"),
        None,
        "",
        "a radio that reports outcomes spares half of the frames, and sets the pace; own: frames of the nodes' own",
    ),
    Parameter("retry_ms", 50.0, 0.1, 60000.0, "ms", "some frames' airtime and a wait for the channel"),
    Parameter("max_queries", 500, 1, 65535, "queries", "as a sink, and as a rendezvous node"),
    Parameter("max_waiting", 50, 1, 65535, "messages", "what a node without a key keeps for later"),
    Parameter(
        "max_known", 1000, 1, 65535, "ids", "events, paths of queries, frames to and from neighbors: as Flooding"
    ),
    Parameter("max_hops", 1000, 1, 65534, "hops", "more than any network here is deep"),
)


# What notebooks/papers/tinymq.ipynb and 03-tinymq.ipynb run. In figures 3 to 5 the overlay is built once, and nothing
# is sent again; the roots' epochs, by which it is repaired, are for figure 6.
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
    """TinyMQ and its settings: ``TinyMQ(roots=(6, 9), dimensions=("TEMP 0 50", "HUMIDITY"), key_bits=8)``."""

    node = TinyMQNode
    parameters = PARAMETERS
    added = ("acks",)
    largest_address = wire.U32 - 1
    fast = "workbench.protocols.tinymq.fast"
    dissector = "workbench.protocols.tinymq.dissector"
    explain = "workbench.protocols.tinymq.explain"
    presets = PRESETS
    is_literal = False  # whether queries and events are routed as published

    def __new__(cls, *unnamed, **settings):
        """Make the protocol as published if ``literal=True``."""
        if cls is TinyMQ and settings.get("literal") is True:
            cls = PrintedTinyMQ
        return Protocol.__new__(cls, *unnamed)

    def __init__(self, **settings):
        Protocol.__init__(self, **settings)
        if self.settings.get("literal", False) != self.is_literal:
            raise ParameterError(
                "%s: literal is %s, which makes another protocol; write TinyMQ(literal=%s)"
                % (type(self).__name__, not self.is_literal, not self.is_literal)
            )
        owner = self.public_class().__name__
        self.settings["roots"] = _read_roots(owner, self.settings["roots"])
        self._check_times(owner)
        self.spans = read_dimensions(owner, self.settings["dimensions"])
        self.node.prepare(self)

    def _check_times(self, owner):
        if self.lease_s <= self.refresh_s:
            raise ParameterError(
                "%s: lease_s is %s and refresh_s %s; a lease must be longer, or queries end before they are sent again"
                % (owner, self.lease_s, self.refresh_s)
            )
        for name in ("info_s", "refresh_s"):
            if 0 < self.settings[name] < SHORTEST_S:
                raise ParameterError(
                    "%s: %s is %s; it must be 0, or %s at least, as nodes count microseconds"
                    % (owner, name, self.settings[name], SHORTEST_S)
                )

    def named_nodes(self):
        """The roots: without one no tree grows."""
        return {"roots": self.roots}

    def receptions_on_an_arc(self, readings, subscriptions, duration_s):
        """Besides the readings: the infos of the overlay as it grows and of each epoch, and the queries."""
        trees = len(self.roots)
        infos = 60 * trees if self.node.every_tree else 20 + 5 * trees
        epochs = 1 + (duration_s / self.info_s if self.info_s else 0)
        return readings + epochs * infos + subscriptions

    def on_a_mote(self, address=None):
        """A mote does not know the names of keys: it is told what they come to."""
        values = Protocol.on_a_mote(self, address)
        values["spans"] = self.spans
        return values


class PrintedTinyMQ(TinyMQ):
    """TinyMQ as published and its settings, which are TinyMQ's with ``literal=True``."""

    node = TinyMQNodeAsPublished
    why_not_fast = "algorithms 3.1 and 3.2 as published are there to be watched, in small networks"
    is_literal = True

    @classmethod
    def public_class(cls):
        """Return TinyMQ: texts write ``TinyMQ(literal=True)``."""
        return TinyMQ

    def __init__(self, **settings):
        settings.setdefault("literal", True)
        TinyMQ.__init__(self, **settings)
        if self.key_bits > WIDEST_KEY_SPACE:
            raise ParameterError(
                "TinyMQ: key_bits is %d; with literal=True, which looks at every string, it must be at most %d"
                % (self.key_bits, WIDEST_KEY_SPACE)
            )
        if not self.shortcuts:
            raise ParameterError(
                "TinyMQ: shortcuts is False and literal True; the published algorithms have shortcuts, so leave it True"
            )


def _read_roots(owner, roots):
    roots = tuple([_whole(root) for root in roots])
    is_right = 1 <= len(roots) <= MOST_ROOTS
    for root in roots:
        is_right = is_right and isinstance(root, int) and not isinstance(root, bool) and root >= 0
    if not is_right or len(set(roots)) < len(roots):
        raise ParameterError("%s: roots is %r; it must name from 1 to %d nodes, each once" % (owner, roots, MOST_ROOTS))
    return roots


def _whole(number):
    """A whole number of another library as Python's; all else as it is."""
    is_foreign = not isinstance(number, int) and hasattr(number, "__index__")
    return number.__index__() if is_foreign else number


hand_out(__name__, {"views": "views"})
