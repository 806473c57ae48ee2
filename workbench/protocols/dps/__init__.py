"""DPS: publish/subscribe by topics over a mesh of links, on which subscriptions travel as Bloom filters.

Theory of operation
    A topic is a text in levels, "sensor/42/temp"; a subscription may have wildcards, "sensor/+/temp" or "sensor/#".
    Topics are broken into items, such as prefixes. Each item sets some bits of a filter. Neighbors *link*. Over a link
    each end sends the other its *interests* and *needs*. The interests are the union of the filters of all
    subscriptions on its side of the link. The needs are the bits that the fuzzy hashes of these filters have in common.
    A publication carries the filter of its topics. A node forwards the publication over each link whose interests may
    match this filter. So a node does not learn which nodes subscribed, or to which topics. A filter can match although
    the topics do not (a false positive); the opposite does not occur. So the subscriber's node also compares the topics
    themselves.

    A link that closes a loop is *muted*: it carries neither interests nor publications, so that interests do not
    circulate. A node records for some time which neighbor sent which publication. It uses this record to drop
    duplicates, and to send acknowledgements back on the reverse path. A publication with a lifetime is retained by all
    nodes that receive it, and sent to later subscribers.

    The node interoperates with the reference implementation: its messages are the same, byte for byte. In simulation a
    node has a radio, and requests links with the neighbors whose delivery ratios are good. In a dense neighborhood (a
    *crowd*) it requests links with only a few of them (neighborhood.py). Attributes are mapped to topics, so the
    workload of the other protocols runs on DPS.

Modules
    node            node.py: the interface to the application and to the driver; context.py: what its modules share
    links           automaton.py: the table of a link's states, and how a link is muted (docs/images/dps-links.svg);
                    links.py: the actions in the table, and timeouts; remotes.py: the state of one neighbor;
                    interests.py: unions of filters, and the messages that carry them; mesh_ids.py: the ids that show
                    loops; neighborhood.py: the choice of neighbors to link with on a radio
    rules           rules.py: constants, times, and decisions on plain numbers, which the fast engine's node also calls
    publications    publications.py: forwarding, delivery, and retries of undelivered frames; history.py: the
                    publications seen; retained.py: the retained publications; acknowledgements.py; series.py: the
                    objects that the application holds
    topics          topics.py: items and matching; mapping.py: attributes as topics; bloom/: filters, single or in
                    arrays
    messages        wire/: bytes of all messages, and the CoAP envelope; cose/: encryption and signatures
    on a network    udp/: nodes on UDP and multicast; cli/: the commands; processes/: many nodes, each a process
    host only       fast/: the same node for the fast engine (its "twin"); events.py; views/: pictures and pages

Messages (wire/__init__.py), each to one neighbor
    subscription        interests and mesh id; flags end or unmute the link
    subscription ack    acknowledges a subscription, and may carry interests in turn
    publication         filter, topics, data, hops, lifetime
    acknowledgement     data from a subscriber for the publisher

False positives
    A node at which a publication is useless logs a drop with one of the reasons below. A drop can also be logged for a
    publication that is delivered: with "out_of_range" for each subscription whose attributes do not match, and with
    "full" for a retained publication that is evicted.

    no_match        the filter of an own subscription matched, but its topics did not; the node may still have forwarded
                    the publication
    out_of_range    the topics of an own subscription matched, but its attributes did not: a range such as TEMP GE 25
                    becomes the topic "TEMP/+", which every value matches
    dead_end        no filter of the node's own subscriptions matched, and the publication is not forwarded

    A dead end is only the last node of a useless path. Long filters do not prevent all dead ends: the filter of "a/+"
    matches "a/b/c" at any length, a neighbor's interests are a union, and this union includes the interests of muted
    links. `views.paths.paths` lists each frame that led to no delivery. To find how many of these frames are due to
    short filters, compare with the same run with long filters.

Cost
    To process a message of a link, a node does some long-integer operations for each of its links. A publication takes
    about 2 µs for each link and for each subscription of the node's own. Memory: ``max_history`` history entries,
    ``max_retained`` publications, and two or three filters for each link.

Limits
    losses          A publication is sent over a link once. If the radio reports undelivered frames, these are sent
                    again, up to three times; without such reports, as over UDP, a publication may be lost.
                    Interests are repeated until acknowledged. On a grid of 25 nodes that loses a tenth of its frames,
                    readings arrive from second 5 on (`benchmarks/dps_radio.py forms`).
    loops           Mesh ids travel with interests and keep-alives, so a loop may exist for about ``link_loss_s``. It
                    causes duplicates, and interests of ended subscriptions may circulate in it.
    muted links     Interests that came over a link before the link was muted stay in the union that the node sends, as
                    in the reference, unless ``count_muted`` is False. Until the link is rechecked, these interests
                    attract publications that cannot be delivered over it.
    repair          When an active link ends, each end unmutes one of its muted links, if any, to replace it. Other
                    nodes detect a partition when a muted neighbor announces an id lower than all ids that they know; in
                    a crowd they detect it at the next recheck. Until then the mesh may be partitioned. On ideal links a
                    network is connected within two ``link_loss_s`` of its last change (`benchmarks/dps_whole.py`).
    dead nodes      A silent neighbor is given up after 1.25 (``link_loss_s`` + ``update_s``) and some retries, in any
                    state of its link. Its interests leave the mesh when the loops that formed after its death are gone:
                    where up to 5 of 25 nodes die, after three or four ``link_loss_s``.
    old ids         The mesh id of a node that left may circulate in a loop of active links. The hop count of the id
                    grows with each lap, and nodes ignore the id after the fourth lap. Interests of ended subscriptions
                    may circulate for the same time. A loop of more than 510 nodes is not detected.
    C nodes         A C node (a node of the reference implementation) forwards a mesh id unchanged and compares all of
                    its bytes. So ids are sent to it without hops, and the hops of ids from it are counted from 0 again.
                    A loop with a C node may keep the id of a node that left, and the mesh then stays partitioned. Of
                    300 static networks with loops, this happened in 2 if half of the nodes were C nodes, and in 4 if
                    all were. In a loop without C nodes, an id with hops is ignored after some laps. The id of a C node
                    has no hops, and circulates only if it is lower than the ids of all nodes in the loop. This is rare:
                    a C node chooses a low id when one of its links ends, and one in 256 random ids is as low. One in
                    65,536 random ids of C nodes looks like an id with hops.
    wildcards       A subscription to ``+`` or ``#`` alone sets no bit of a filter, so no neighbor forwards publications
                    to it.
    outages         In simulation a node that was off keeps its memory.
    settings        All nodes need the same filter length, number of hashes and separators.
    late messages   A late copy of a neighbor's first subscription looks like a restart of the neighbor. This node then
                    sends all interests again. The link carries nothing until the neighbor gives the link up and
                    requests it again, about 10 s later.
    crowds          A publication waits for up to 80 ms at each hop. Mesh ids spread slowly in a crowd, so in the first
                    minute the mesh may be partitioned, or have loops. From then on the simulated testbeds lose less
                    than 1 % of the readings. Networks of 348 nodes, 60 neighbors and collisions lose 1 to 7 %
                    (`benchmarks/dps_radio.py`): their trees are about nine hops deep, although two hops would suffice.
                    Hubs, the nodes with which their neighbors prefer to link, are the same in every run, and spend the
                    most energy. Where nodes have different numbers of neighbors, they disagree on which nodes are hubs.
    left out        Discovery and registration are not part of the node; udp/ has them.
    security        `workbench/protocols/dps/udp/__init__.py` describes what an attacker can do who reaches a node's
                    port.

Differs from the reference implementation in
    history     The history of publications is cleared, and bounded. The reference's history grows for as long as it
                runs.
    filters     Filters are sent as plain bytes if their run-length code would be longer, so short filters work.
    collision   If both ends send a subscription at the same time, each subscription stays outstanding until its own
                acknowledgement comes. A node of the reference treats the other end's subscription as the
                acknowledgement. If the node's own subscription was lost, the interests in it are then lost, too.
    repeated    If a neighbor repeats its first subscription, the answer contains the interests again.
    anew        Full interests from a linked neighbor show that it gave the link up or restarted. They are accepted, and
                answered with all interests. A node of the reference treats them as an old message until it has given
                the link up itself.
    revisions   After a neighbor was given up, revisions continue and do not start from 1 again. So no old message in
                flight can be taken for a new one.
    no base     A change of interests is neither applied nor acknowledged if the interests before the change never came.
                If the link is active, the node answers with all its interests, and both ends start again. An
                acknowledgement without interests leaves the stored interests unchanged.
    late        If a neighbor sends any message while a link request to this neighbor is outstanding, the node repeats
                the request before it gives the neighbor up: the neighbor may have just started. If only this end
                considers the link active, the node answers the neighbor's first interests with all its own. Otherwise
                the two ends could disagree for ever on whether the link exists.
    unmute      To unmute a link, a node sends all interests, not a change of empty interests. So no old interests
                remain at the neighbor.
    recheck     A muted link is rechecked now and then, because a mesh id that arrived late may have shown a loop that
                does not exist. The first message of a recheck carries no interests. In the reference such a link stays
                muted for good, and a dead neighbor is kept. The end that requested the link rechecks it; the other end
                does so only if no recheck comes.
    restarts    A restarted node of the reference mistakes a change of interests, often an empty change, for all
                interests. Its acknowledgement shows this (`rules.has_restarted`), and a node of this project then sends
                it all interests. The reference does not react.
    parts       A muted link is rechecked soon if the neighbor's id is lower than all ids that this node knows: the
                neighbor may be in another part of the mesh.
    ids         A changed mesh id is sent soon, in an extra keep-alive, and not only with the next regular keep-alive,
                up to ``link_loss_s`` later. A node that receives its own id detects a loop, even if it knows a lower
                id.
    hops        Nodes of this project set the flag 32 (COUNTS_HOPS) in link messages. Between these nodes the first byte
                of a mesh id counts the hops that the id has made. The other bytes identify the id's owner and show
                loops. Bytes 1 and 2 are a mark, and the last, most significant byte is 0: so these ids are lower than
                the ids of C nodes (`mesh_ids.py`).
    retained    A new subscription also gets the publications that its own node retains. Retained publications are sent
                to the neighbor whose interests changed, not to all, and at most once every ``update_s``.
    timers      Each link has its own timer. The reference has one timer for all links.
    radio       On a radio, in a crowd (`neighborhood.py`): a node requests few links; keep-alives are rarer and come
                from one end, rechecks are rarer; interests of muted neighbors are dropped; publications wait before
                they are forwarded. On any radio: undelivered frames are sent again; without a crowd, a
                neighbor's interests wait for a twentieth of ``update_s`` at each hop.

Reference
    https://github.com/intel/dps-for-iot, commit b92a83660427 (Apache-2.0; archived). B. Bloom: Space/time trade-offs
    in hash coding with allowable errors, CACM 1970.

"""

from __future__ import annotations

from typing import Any

from workbench.errors import ParameterError
from workbench.keywords import hand_out
from workbench.protocols.dps import mapping, wire
from workbench.protocols.dps.bloom import HASHES, LENGTH, LONGEST, MOST_HASHES, BitVector
from workbench.protocols.dps.node import DPSNode
from workbench.protocols.dps.topics import SEPARATORS, separator_bytes
from workbench.protocols.protocol import Parameter, Protocol

__all__ = ["DPS"]

PARAMETERS = (
    Parameter("filter_bits", LENGTH, 64, LONGEST, "bits", "as in the reference; multiple of 64, the same in all nodes"),
    Parameter("hashes", HASHES, 1, MOST_HASHES, "bits per item", "as in the reference; the same in all nodes"),
    Parameter("separators", SEPARATORS, None, None, "", "between the levels of a topic; each character separates"),
    Parameter("wildcards", True, None, None, "", "False: fewer bits, but subscriptions with wildcards do not match"),
    Parameter("update_s", 2.0, 0.01, 3600.0, "s", "as in the reference: delay of interests at each hop"),
    Parameter("link_loss_s", 30.0, 0.01, 86400.0, "s", "as in the reference: silence before a keep-alive"),
    Parameter("retry_ticks", 2, 1, 100, "update_s", "as in the reference: delay before the first retry"),
    Parameter("retries", 3, 0, 100, "messages", "as in the reference, one each update_s; then a neighbor is given up"),
    Parameter(
        "count_muted",
        True,
        None,
        None,
        "",
        "as in the reference; False: muting drops a neighbor's interests",
    ),
    Parameter(
        "recheck_s",
        60.0,
        0.0,
        86400.0,
        "s",
        "time until a muted link is rechecked for a loop (link_loss_s if that is less); 0: never",
    ),
    Parameter(
        "ttl_s",
        0,
        0,
        wire.LONGEST_TTL_S,
        "s",
        "lifetime of publications; 0: they are not retained",
    ),
    Parameter("acknowledge", False, None, None, "", "True: sinks acknowledge each publication that they receive"),
    Parameter("history_s", 10.0, 0.0, 86400.0, "s", "as in the reference: remembered for so long beyond the lifetime"),
    Parameter("max_history", 5000, 1, None, "publications", "enough for 500 a second during history_s"),
    Parameter("max_retained", 1000, 1, None, "publications", "beyond it, the one that would expire first is evicted"),
    Parameter("max_links", 256, 1, None, "links", "more than a dense testbed has; a bound against strangers"),
    Parameter("max_subscriptions", 1000, 1, None, "subscriptions", "of one node's application"),
    Parameter(
        "worst_link",
        0.5,
        0.0,
        1.0,
        "delivery ratio",
        "simulation: worse links are not used",
    ),
    Parameter("crowd", 12, 1, None, "neighbors", "on a radio: a node with more links only with the best of them"),
    Parameter("best_links", 3, 1, None, "links", "that a node in a crowd requests: one, and two to replace it"),
    Parameter("relink_s", 10.0, 0.1, 86400.0, "s", "simulation: delay before a link is requested again"),
)


# The defaults are the reference's settings; notebooks/04-dps.ipynb uses others.
PRESETS = {
    "lesson 4": {"filter_bits": 256},
    "lesson 4, muted links forgotten": {"filter_bits": 256, "count_muted": False},
    "long filters, muted links forgotten": {"count_muted": False},
    "muted for good, as in the reference": {"recheck_s": 0.0},
}


class DPS(Protocol):
    """The protocol DPS with its settings, as in ``DPS(filter_bits=1024, hashes=3)``; it creates the protocol's nodes.

    ``DPS.parameters`` lists the settings with their defaults.
    """

    node = DPSNode
    parameters = PARAMETERS
    largest_address = 0x7FFFFFFF
    max_fragments = 16  # 6LoWPAN carries IP packets of 1,280 bytes
    fast = "workbench.protocols.dps.fast"
    dissector = "workbench.protocols.dps.views.frame"
    explain = "workbench.protocols.dps.explain"
    presets = PRESETS
    known_already = ("duplicate", "stale")
    natures = {"subscription": "upkeep", "subscription ack": "upkeep"}
    why_not_on_motes = (
        "its filters are integers of any length, and its ids need hashes that MicroPython does not have; "
        "it runs in simulation and over UDP"
    )

    def __init__(self, **settings: Any) -> None:
        Protocol.__init__(self, **settings)
        BitVector(self.filter_bits)  # raises ParameterError for an invalid length
        separator_bytes(self.separators)
        if not self.separators:
            raise ParameterError("the argument `separators` of DPS is empty; give at least one character, such as '/'")

    def receptions_on_an_arc(self, readings: int, subscriptions: int, duration_s: float) -> int:
        """Return an estimate of the number of frames received on each arc (directed radio link) in a simulation.

        The estimate is ``readings`` + 400: one frame for each reading, and 400 link messages. ``subscriptions`` and
        ``duration_s`` do not change it.
        """
        return readings + 400

    def matching_samples(self, subscription: Any, publication: Any) -> list[Any]:
        """Return the readings in a publication that match a subscription.

        A constraint of the subscription on the attribute TOPIC may have wildcards."""
        return mapping.samples(subscription, publication, self.separators)


hand_out(__name__, {"views": "views", "bloom": "bloom", "topics": "topics"})
