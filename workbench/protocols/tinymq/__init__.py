"""TinyMQ: content-based publish/subscribe over an overlay of several trees, whose nodes share out the space of keys.

Theory of operation
    The *roots* are stable nodes, sinks as a rule. Each of them grows a tree, and every node joins one of the trees and
    gets a *key*, a string of bits with its parent's as a prefix (`overlay.py`). A node stores its *zone*: all strings
    of ``key_bits`` bits that its key, and none of its children's, is a prefix of (`zones.py`); so the zones of a tree
    are the whole key space, cut into disjoint parts. The values of the ``dimensions`` are mapped to such strings: those
    of a *query* (a subscription) to a box of them, those of an *event* to one (`mapping.py`). Queries are routed to
    the nodes of every tree whose zones they meet, and stored there; events to the one node of a tree that has their
    zone (`routing.py`). That is the *rendezvous node* of the two: it matches them, and sends a *notification* back the
    way that the query came, or to the sink's key. Whatever goes to one neighbor is acknowledged (`unicast.py`).

Messages (protocols/tinymq/wire.py)
    info            broadcast: place in the overlay, distances to the roots
    join, grant     to the parent and back: a key
    query, event    towards a tree, then by key: box, region it has still to come to, attributes
    notification    to the sink: event
    ack             each of these but info is acknowledged

Limits
    Soft state: what a node that dies had stored is missed until the sinks have sent their queries again. A neighbor is
    lost after ``lost_after`` times ``info_s``. Its subtree settles some epochs later as a rule (7 or 8 in all with the
    defaults), but nodes may join a subtree that is cut off already, and then it takes as long again (15); and then
    ``refresh_s``. An event that overtakes a query is
    not matched with it: only queries are stored. A node without a key, or without a way to a tree, keeps
    ``max_waiting`` messages for later, and drops them as "waited" after ``lost_after``. All nodes need the same
    settings. Links that work one way only are not joined over, but distances may lead to them. With ``info_s=0`` the
    overlay is built once and not repaired.

Differs from the original in
    C1   Z is the universe of X, the k-bit strings prefixed by its key; its zone is what X stores of it.
    C2   a query is split: each part goes its own way and is dealt with once, so nothing is lost, or had twice. What
         stands in for "this node had it already" is the region that a message carries.
    C3   a shortcut leads to a neighbor of the same tree whose key is a prefix of the target and longer than the
         parent's. With the longest common prefix alone, as printed, events run in circles.
    C4   the parent gives the key, the shortest one that is free: children that choose for themselves may choose alike.
    C5   the root's key is the empty string; a zone has its node's own key.
    C6   a node whose key is longer than ``key_bits`` only relays.
    C7   h(v) = floor((v - lo) / (hi - lo) * 2^l), clamped.
    C8   a query covers every cell that it touches; the exact match is made at the rendezvous node, and at the sink.
    C9   ``publish="own"`` sends an event to the publisher's own tree alone: queries are in all trees, so they meet.
    C10  distances have epochs, so that they can rise; of equal ones the neighbor with the lowest number counts.
    C11  notifications, leases, unsubscribing, repair and hand-over are ours: on a join stored queries go to the child,
         on a new key to where they now belong.
    C12  events are not stored.
    --   one notification for each sink and event and tree: the sink matches it with all of its subscriptions, and takes
         an event once, though in the paper's mode it hears of it from every tree.
    --   ``dimensions`` names attributes; how anything else in a subscription is mapped stands in mapping.py.
    --   ``literal=True`` routes by algorithms 3.1 and 3.2 as printed: see printed/..

Reference
    K. Shi, Z. Deng, X. Qin: TinyMQ: a content-based publish/subscribe middleware for wireless sensor networks,
    SENSORCOMM 2011; C. Perkins, P. Bhagwat: Highly dynamic destination-sequenced distance-vector routing (DSDV),
    SIGCOMM 1994, for epochs.

This folder runs on a mote too (MicroPython's subset of Python).
"""

from workbench.attributes.dimensions import read_dimensions
from workbench.errors import ParameterError
from workbench.protocols.protocol import Parameter, Protocol
from workbench.protocols.tinymq import wire
from workbench.protocols.tinymq.node import TinyMQNode

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
    Parameter("literal", False, None, None, "", "the printed algorithms lose queries and send events in circles"),
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
    Parameter("retry_ms", 50.0, 0.1, 60000.0, "ms", "some frames' airtime and a wait for the channel"),
    Parameter("max_queries", 500, 1, 65535, "queries", "as a sink, and as a rendezvous node"),
    Parameter("max_waiting", 50, 1, 65535, "messages", "what a node without a key keeps for later"),
    Parameter(
        "max_known", 1000, 1, 65535, "ids", "events, paths of queries, frames to and from neighbors: as Flooding"
    ),
    Parameter("max_hops", 1000, 1, 65534, "hops", "more than any network here is deep"),
)


class TinyMQ(Protocol):
    """TinyMQ and its settings: ``TinyMQ(roots=(6, 9), dimensions=("TEMP 0 50", "HUMIDITY"), key_bits=8)``."""

    node = TinyMQNode
    parameters = PARAMETERS
    largest_address = wire.U32 - 1
    fast = "workbench.protocols.tinymq.fast"
    is_printed = False  # Whether queries and events go by the algorithms as printed.

    def __new__(cls, **settings):
        """``literal=True`` makes the protocol as printed."""
        if cls is TinyMQ and settings.get("literal") is True:
            from workbench.protocols.tinymq.printed import PrintedTinyMQ  # Not before: it is a kind of this one.

            cls = PrintedTinyMQ
        return Protocol.__new__(cls)

    def __init__(self, **settings):
        Protocol.__init__(self, **settings)
        if self.settings.get("literal", False) != self.is_printed:
            raise ParameterError(
                "%s: literal is %s, which makes another protocol; write TinyMQ(literal=%s)"
                % (type(self).__name__, not self.is_printed, not self.is_printed)
            )
        owner = self.public_class().__name__
        self.settings["roots"] = _checked_roots(owner, self.settings["roots"])
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

    def receptions_on_an_arc(self, readings, subscriptions, duration_s):
        """Besides the readings: the infos of the overlay as it grows and of each epoch, and the queries."""
        trees = len(self.roots)
        infos = 60 * trees if self.node.every_tree else 20 + 5 * trees
        epochs = 1 + (duration_s / self.info_s if self.info_s else 0)
        return readings + epochs * infos + subscriptions

    def on_a_mote(self):
        """A mote does not know the names of keys: it is told what they come to."""
        values = Protocol.on_a_mote(self)
        values["spans"] = self.spans
        return values


def _checked_roots(owner, roots):
    roots = tuple([_whole(root) for root in roots])
    is_right = 1 <= len(roots) <= MOST_ROOTS and len(set(roots)) == len(roots)
    for root in roots:
        is_right = is_right and isinstance(root, int) and not isinstance(root, bool) and root >= 0
    if not is_right:
        raise ParameterError("%s: roots is %r; it must name from 1 to %d nodes, each once" % (owner, roots, MOST_ROOTS))
    return roots


def _whole(number):
    """A whole number of another library as Python's; all else as it is."""
    is_foreign = not isinstance(number, int) and hasattr(number, "__index__")
    return number.__index__() if is_foreign else number
