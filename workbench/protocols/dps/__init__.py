"""DPS: publish/subscribe by topics over a mesh of links, on which subscriptions travel as Bloom filters.

Theory of operation
    A topic is a text in levels, "sensor/42/temp"; a subscription may have wildcards, "sensor/+/temp" or "sensor/#".
    Topics are broken into items, and each item sets some bits of a filter. Neighbors *link*. Over a link each tells the
    other the union of the filters of everybody behind it, and what these filters have in common. A publication carries
    the filter of its topics, and a node forwards it over each link whose interests it may meet. So no node need know
    who has subscribed, or to what. Filters may say yes in vain, never no; the subscriber's node compares the topics.

    A link that closes a loop is muted, so that interests do not go round. A node remembers for some time which
    publications have come, and from whom: to drop duplicates, and to send acknowledgements back the same way. A
    publication with a lifetime is retained by all nodes that it comes to, and sent to those who ask later.

    The node is the reference implementation's neighbor: it speaks its messages, byte for byte. In simulation it is on a
    radio, and asks those neighbors for links with which these work well: all of a few, and in a crowd a few of them
    (neighborhood.py). Attributes are mapped to topics, so the workload of the other protocols runs on it.

Where what stands
    node            node.py: what the application calls, what comes from neighbors, when to wake up
                    context.py: what its parts share, and where they send frames and report events
    links           automaton.py: the table of a link's states, and how a link is muted (docs/images/dps-links.svg);
                    links.py acts by it; remotes.py has the state of a neighbor, interests.py the sums of filters and
                    the messages with them, mesh_ids.py the ids that show loops; neighborhood.py chooses the neighbors
                    that a node on a radio asks for links, and spares a crowd
    rules           rules.py: constants, times, and decisions on plain numbers, which the fast twin calls too
    publications    publications.py: forwarding, delivery, and sending again what a radio gave up; history.py: the ids
                    that were seen; retained.py: what is kept, and when it is sent to a neighbor; acknowledgements.py;
                    series.py: what the application gets
    topics          topics.py: items and matching; mapping.py: attributes as topics; bloom/: filters, one or many
    messages        wire/: bytes of all messages, and the CoAP envelope; cose/: encryption and signatures
    on a network    udp/: nodes on UDP and multicast; cli/: the commands; processes/: many nodes, each a process
    for a host      fast/: the twin on the fast engine; events.py; views/: pictures and pages

Messages (wire/__init__.py), all to one neighbor
    subscription        interests, mesh id; with the flags unlink and unmute
    subscription ack    acknowledges one, and may bring interests in turn
    publication         filter, topics, data, hops, lifetime
    acknowledgement     data for the publisher

False positives
    A message that ends without a delivery is dropped under one reason. "out_of_range" is logged for each subscription,
    and "full" for what is retained no longer, whatever became of it before.

    no_match        a filter of the node's own said yes and no topic matched (the node may have forwarded it)
    out_of_range    topics matched, and the attributes did not: "TEMP/+" stands for any range
    dead_end        no filter of the node's own said yes, and the publication does not go on

    A dead end is the last node of a way in vain, not all of it, and long filters do not prevent it: "a/+" says yes to
    "a/b/c" at any length, a neighbor's interests are a sum, and muted links stay in it. `views.paths.paths`
    names each frame that was in vain. How many of them are due to short filters is the difference to the same run with
    long ones.

Cost
    For a message of a link some long-integer operations for each link; for a publication some 2 µs for each link, and
    for each subscription of the node's own. Memory: ``max_history`` entries and ``max_retained`` publications, and
    for each link two or three filters.

Limits
    losses          A publication goes over a link once. A radio that reports which frames it gave up has them sent
                    again, up to three times; without such reports, and over UDP, a publication may be lost. Interests
                    are repeated until acknowledged. On a grid of 25 that loses a tenth of its frames readings come from
                    second 5 on (`benchmarks/dps_radio.py forms`).
    loops           Mesh ids travel with interests and signs of life, so a loop may stand for some ``link_loss_s``. It
                    costs duplicates, and interests that have ended may go round in it.
    muted links     What a neighbor told before its link was muted stays in the sum of what is asked for, as in the
                    reference. Publications follow it in vain (``count_muted``) until the link is asked for again.
    repair          Where an active link has ended, its two ends take muted links in its place, if they have any. Other
                    nodes notice when a muted neighbor has told an id that is not known here any more, in a crowd when
                    they ask again; until then the mesh may be in parts. On ideal links a network is
                    whole within two ``link_loss_s`` of its last change (`benchmarks/dps_whole.py`).
    the dead        A neighbor that falls silent is given up 1.25 (``link_loss_s`` + ``update_s``) later and some
                    repetitions, whatever the state of its link. Its interests are out of the mesh when the loops are
                    that its end has made: where up to 5 of 25 nodes die, after three or four ``link_loss_s``.
    old ids         The id of a node that has gone may go round in a loop of active links for some laps. It comes from
                    farther each time, and counts for nothing after the fourth; interests that have ended may go round
                    as long. A loop of more than 510 nodes is not seen.
    C nodes         A C node passes a mesh id on as it came and compares all of it, so it is told ids without hops, and
                    ids that it brings begin at no hops again. A loop without C nodes opens, whoever made the id in it,
                    unless a C node has put that below all others, as one does when a link of its ends, or has drawn one
                    as low (one in 256). A loop with a C node may keep the id of a node that has gone, and the mesh
                    stays in parts: 2 of 300 static networks with loops if half of the nodes are such, 4 if all are.
                    A C node's random id reads as one that counts hops once in 65,536.
    wildcards       A subscription to ``+`` or ``#`` alone sets no bit, and asks nobody.
    outages         In simulation a node that was off keeps its memory.
    settings        All nodes need the same filter length, hashes and separators.
    late messages   A neighbor's first subscription that comes a second time, late, is taken for its restart. The link
                    is told anew in full, and is apart until the neighbor gives it up and begins anew, some 10 s later.
    crowds          A publication waits for up to 80 ms at each hop, so it comes later than it could. Ids go slowly in a
                    crowd, so for the first minute the mesh may be in parts, or parts of it in loops. From then on the
                    testbeds lose fewer than one reading in a hundred, and networks of 348 nodes, 60 neighbors and
                    collisions one to seven (`benchmarks/dps_radio.py`): their trees are some nine hops deep where two
                    would do. Hubs are the same nodes in every run, and spend the most energy; where nodes have
                    different numbers of neighbors they do not agree on who is a hub.
    left out        Discovery and registration are not part of the node; udp/ has them.
    security        Who may reach a node's port can do much: `workbench/protocols/dps/udp/__init__.py`.

Differs from the reference implementation in
    history     It is cleared, and bounded. The reference's grows for as long as it runs.
    filters     They are sent as bytes where run lengths would be longer than the vector: short filters work.
    collision   A subscription that crosses another stays unacknowledged until its own acknowledgement comes. The
                reference takes the other's for it, and what was told is lost if the message was.
    repeated    A first subscription that comes again is answered with the interests again.
    anew        Interests in full from a neighbor that is linked show that it has given the link up or has restarted:
                they are taken, and answered in full. The reference takes them for an old message until it has given
                the link up itself.
    numbers     A neighbor that was given up is told the next revision and not the first again, so nothing on its way
                can be mistaken.
    no base     A change of interests that never came is not taken for the interests, nor acknowledged. Over an active
                link it is answered with all interests instead, by which both ends begin anew. An acknowledgement
                without interests says nothing of them.
    late        A neighbor that is heard while it is asked for a link is asked again before it is given up: it may have
                come up just now. Its first interests over a link that this end alone held for active are answered in
                full. Else each end holds a link for active in turn that the other one has not, for ever.
    unmute      Interests go out in full, not as a change of nothing, so no old ones can get into them.
    recheck     A muted link is asked for again now and then, first without interests: ids on their way may show loops
                that do not exist. In the reference what is muted for such a loop stays apart for good, and a neighbor
                that has died is kept. Who did not ask for the link asks too, if the other one does not.
    restarts    An acknowledgement as only a neighbor sends that has never heard of the link shows that it has restarted
                and took what has changed, often nothing, for all interests. It is told all. The reference goes on.
    parts       A muted link is asked for again soon where the neighbor's id is lower than all that are known here.
    ids         A mesh id that has changed is told with a sign of life soon, and not with the next one, ``link_loss_s``
                later. A node's own id from a neighbor shows a loop, even if there is a lower one.
    hops        The first byte of a mesh id counts how many hops it has come, between nodes whose messages of links have
                the flag 32; the rest is its owner's, by which loops show. Bytes 1 and 2 are a mark, and the last byte,
                which counts most, is 0: ids of these nodes are below those of C nodes (`mesh_ids.py`).
    retained    A new subscription gets what its own node retains, too. What is retained goes to the neighbor whose
                interests have changed, not to all, and at most once every ``update_s``.
    timers      Each link has its own. The reference ticks for all of them at once.
    radio       On a radio, in a crowd (`neighborhood.py`): few neighbors are asked for links; signs of life are
                rarer and come from one end, rechecks are rarer; muted neighbors do not count; publications wait before
                they are forwarded. On each radio: what it gave up is sent again; interests that were learnt wait for a
                twentieth of ``update_s`` at each hop, without a crowd.

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
    Parameter("filter_bits", LENGTH, 64, LONGEST, "bits", "the reference's; a multiple of 64, the same in all nodes"),
    Parameter("hashes", HASHES, 1, MOST_HASHES, "bits per item", "the reference's; the same in all nodes"),
    Parameter("separators", SEPARATORS, None, None, "", "between the levels of a topic; each character is one"),
    Parameter("wildcards", True, None, None, "", "False: only who spells a topic out gets it, for fewer bits"),
    Parameter("update_s", 2.0, 0.01, 3600.0, "s", "the reference's subscription rate: what is learnt waits so long"),
    Parameter("link_loss_s", 30.0, 0.01, 86400.0, "s", "the reference's; after so long a link gives a sign of life"),
    Parameter("retry_ticks", 2, 1, 100, "update_s", "the reference's: nothing is repeated before"),
    Parameter("retries", 3, 0, 100, "messages", "the reference's, one each update_s: then a neighbor is given up"),
    Parameter(
        "count_muted", True, None, None, "", "the reference's; False: no dead ends for what was told before the muting"
    ),
    Parameter(
        "recheck_s",
        60.0,
        0.0,
        86400.0,
        "s",
        "whether muted links still close loops, or link_loss_s; 0: never",
    ),
    Parameter("ttl_s", 0, 0, wire.LONGEST_TTL_S, "s", "publications are sent once; else they are kept for so long"),
    Parameter("acknowledge", False, None, None, "", "True: sinks acknowledge each publication that they are given"),
    Parameter("history_s", 10.0, 0.0, 86400.0, "s", "the reference's, beyond a publication's lifetime"),
    Parameter("max_history", 5000, 1, None, "publications", "500 a second, for history_s"),
    Parameter("max_retained", 1000, 1, None, "publications", "the one that would end first goes"),
    Parameter("max_links", 256, 1, None, "links", "more than a dense testbed has; strangers are many"),
    Parameter("max_subscriptions", 1000, 1, None, "subscriptions", "of one node's application"),
    Parameter("worst_link", 0.5, 0.0, 1.0, "delivery ratio", "simulation: a publication goes over a link only once"),
    Parameter("crowd", 12, 1, None, "neighbors", "on a radio: a node with more asks the best of them alone"),
    Parameter("best_links", 3, 1, None, "links", "which a node in a crowd asks for: one, and two that may replace it"),
    Parameter("relink_s", 10.0, 0.1, 86400.0, "s", "simulation: as long as giving a neighbor up takes"),
)


# The reference's settings are the defaults; notebooks/04-dps.ipynb has others.
PRESETS = {
    "lesson 4": {"filter_bits": 256},
    "lesson 4, muted links forgotten": {"filter_bits": 256, "count_muted": False},
    "long filters, muted links forgotten": {"count_muted": False},
    "muted for good, as in the reference": {"recheck_s": 0.0},
}


class DPS(Protocol):
    """DPS and its settings: ``DPS(filter_bits=1024, hashes=3)``."""

    node = DPSNode
    parameters = PARAMETERS
    largest_address = 0x7FFFFFFF
    fast = "workbench.protocols.dps.fast"
    dissector = "workbench.protocols.dps.views.frame"
    explain = "workbench.protocols.dps.explain"
    presets = PRESETS
    why_not_on_motes = (
        "its filters are integers of any length, and its ids need hashes that MicroPython does not have; "
        "it runs in simulation and over UDP"
    )

    def __init__(self, **settings: Any) -> None:
        Protocol.__init__(self, **settings)
        BitVector(self.filter_bits)  # It says what is wrong with a length.
        separator_bytes(self.separators)
        if not self.separators:
            raise ParameterError("DPS: separators is empty; name at least one, as in separators='/'")

    def receptions_on_an_arc(self, readings: int, subscriptions: int, duration_s: float) -> int:
        """Besides the readings: links that come to be, and are kept up."""
        return readings + 400

    def matching_samples(self, subscription: Any, publication: Any) -> list[Any]:
        """As `attributes.matching_samples`, but TOPIC is matched as topics are, with wildcards."""
        return mapping.samples(subscription, publication, self.separators)


hand_out(__name__, {"views": "views", "bloom": "bloom", "topics": "topics"})
