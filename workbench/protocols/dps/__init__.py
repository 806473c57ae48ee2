"""DPS: publish/subscribe by topics over a mesh of links, on which subscriptions travel as Bloom filters.

Theory of operation
    A topic is a text in levels, "sensor/42/temp"; a subscription may have wildcards, "sensor/+/temp" or "sensor/#".
    Topics become items, and items bits of a filter (`workbench.protocols.dps.topics`, `workbench.protocols.dps.bloom`). Neighbors *link*, and
    tell each other over a link the union of the filters of everybody behind it, and what these have in common
    (`links.py`, `interests.py`). A publication carries the filter of its topics, and goes over each link whose
    interests it may meet (`publications.py`): no node need know who has subscribed, or to what. Filters may say yes
    in vain, never no; the subscriber's node compares the topics.

    Loops of links are noticed and muted, so that interests do not go round. What has come is remembered for some time
    (`history.py`), against duplicates and as the way that acknowledgements go back (`acknowledgements.py`). A
    publication with a lifetime is kept by the nodes that it comes to, and sent to those who ask later (`retained.py`).

    The node is the reference implementation's neighbor: it speaks its messages, byte for byte. In simulation the
    links are the topology's, and attributes are mapped to topics (`mapping.py`), so the workload of the other
    protocols runs on it.

Messages (protocols/dps/wire/__init__.py), all to one neighbor
    subscription        interests, mesh id; with the flags unlink and unmute
    subscription ack    what acknowledges one, and may bring interests in turn
    publication         filter, topics, data, hops, lifetime
    acknowledgement     data for the publisher

False positives
    Each message that ends without a delivery is dropped under one reason; but "out_of_range" is told for each
    subscription, and "full" of what is retained no longer, whatever became of it before. "no_match": a filter of the
    node's own said yes and no topic matched (the node may have passed it on). "out_of_range": topics matched, and the
    attributes did not, as "TEMP/+" stands for any range. "dead_end": no filter of the node's own said yes, and the
    publication does not go on. That is the last node of a way in vain, not all of it, and long filters do not end it:
    "a/+" says yes to "a/b/c" at any length, a neighbor's interests are a sum, and muted links stay in it.
    `workbench.protocols.dps.views.publications.paths` tells each frame that was in vain; how many of them too short filters cost
    is the difference to the same run with long ones.

Cost
    For a message of a link some long-integer operations for each link; for a publication some 2 µs for each link, and
    for each subscription of the node's own. Memory: ``max_history`` entries and ``max_retained`` publications, and
    for each link two or three filters.

Limits
    A publication goes over a link once: on lossy links it may be lost. Interests that change are repeated until they
    are acknowledged. Mesh ids travel with interests and signs of life, so loops may stand for some ``link_loss_s``:
    they cost duplicates, and interests that have ended may go round in them. What a neighbor told before its link was
    muted stays in the sum of what is asked for, as in the reference, and publications follow it in vain
    (``count_muted``), here until the link is asked for again (``recheck_s``). Where an active link has ended, its two
    ends take muted links in its place, if they have any; others notice when they ask again, and until then a mesh may
    be in parts. The id of a node that has gone may go round in a loop of active links, which is then not seen, and
    keep others away: in one of a hundred random meshes after a crash. In simulation a node that was off keeps its
    memory. All nodes need the same filter length, hashes and separators. A neighbor's first
    subscription that comes a second time, late, is taken for its restart: the link is told anew in full, and is apart
    until the neighbor, for which this is no news, gives it up and begins anew, some 10 s later. Discovery and
    registration are not part of the node. Who may reach its port can do much: `workbench/protocols/dps/udp/__init__.py`.

Differs from the reference implementation in
    history     it is cleared, and bounded; the reference's grows for as long as it runs.
    filters     bytes where run lengths would be longer than the vector: short filters work.
    collision   a subscription that crosses another stays unacknowledged until its own acknowledgement comes; the
                reference takes the other's for it, and what was told is lost if the message was.
    repeated    a first subscription that comes again is answered with the interests again.
    anew        interests in full from a neighbor that is linked show that it has given the link up or has restarted:
                they are taken, and answered in full. The reference takes them for an old message until it has given the
                link up itself.
    numbers     a neighbor that was given up is told the next revision and not the first again, so nothing on its
                way can be mistaken.
    no base     a change of interests that never came is not taken for the interests, nor acknowledged; after some
                repetitions the neighbor gives the link up and begins anew. An acknowledgement without interests says
                nothing of them.
    unmute      interests go out in full, not as a change of nothing, so no old ones can get into them.
    recheck     a muted link is asked for again now and then, first without interests: ids on their way may show loops
                that are none, and what is muted for one stays apart, in the reference for good.
    retained    a new subscription is given what its own node retains, too. What is kept goes to the neighbor whose
                interests have changed, not to all, and at most once every ``update_s`` (`resending.py`).
    timers      each link has its own; the reference ticks for all of them at once.

Reference
    https://github.com/intel/dps-for-iot, commit b92a83660427 (Apache-2.0; archived). B. Bloom: Space/time trade-offs
    in hash coding with allowable errors, CACM 1970.

This folder is written in MicroPython's subset of Python, though its filters need CPython's long integers.
"""

from workbench.errors import ParameterError
from workbench.protocols.dps import mapping, wire
from workbench.protocols.dps.bloom import HASHES, LENGTH, LONGEST, MOST_HASHES, BitVector
from workbench.protocols.dps.node import DPSNode
from workbench.protocols.dps.topics import SEPARATORS, separator_bytes
from workbench.protocols.protocol import Parameter, Protocol

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
    Parameter("recheck_s", 60.0, 0.0, 86400.0, "s", "whether muted links still close loops; 0, the reference's: never"),
    Parameter("ttl_s", 0, 0, wire.LONGEST_TTL_S, "s", "publications are sent once; else they are kept for so long"),
    Parameter("acknowledge", False, None, None, "", "True: sinks acknowledge each publication that they are given"),
    Parameter("history_s", 10.0, 0.0, 86400.0, "s", "the reference's, beyond a publication's lifetime"),
    Parameter("max_history", 5000, 1, None, "publications", "500 a second, for history_s"),
    Parameter("max_retained", 1000, 1, None, "publications", "the one that would end first goes"),
    Parameter("max_links", 256, 1, None, "links", "more than a dense testbed has; strangers are many"),
    Parameter("max_subscriptions", 1000, 1, None, "subscriptions", "of one node's application"),
    Parameter("worst_link", 0.5, 0.0, 1.0, "delivery ratio", "simulation: a publication goes over a link only once"),
    Parameter("relink_s", 10.0, 0.1, 86400.0, "s", "simulation: as long as giving a neighbor up takes"),
)


class DPS(Protocol):
    """DPS and its settings: ``DPS(filter_bits=1024, hashes=3)``."""

    node = DPSNode
    parameters = PARAMETERS
    largest_address = 0x7FFFFFFF

    @classmethod
    def mote_modules(cls):
        """None: filters are long integers of CPython's, and ids need its hashes."""
        return ()

    def __init__(self, **settings):
        Protocol.__init__(self, **settings)
        BitVector(self.filter_bits)  # It says what is wrong with a length.
        separator_bytes(self.separators)
        if not self.separators:
            raise ParameterError("DPS: separators is empty; name at least one, as in separators='/'")

    def matching_samples(self, subscription, publication):
        """As `attributes.matching_samples`, but TOPIC is matched as topics are, with wildcards."""
        return mapping.samples(subscription, publication, self.separators)
