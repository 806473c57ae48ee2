"""Coded diffusion: events spread through a mesh as random linear combinations of chunks; each receiver filters them.

Theory of operation
    The parameters of the paper are m (``generation_size``), BF (``bootstrap_factor``), FP (``forwarding_probability``),
    FF (``forwarding_factor``) and ΔTC (``collecting_time_ms``).

    A source broadcasts its event as a whole. A neighbor that hears the event is a *bootstrap node*: it splits the event
    into m chunks (the event's *generation*) and at once broadcasts BF random linear combinations of them. Every other
    node is an *intermediate node*: it stores each *innovative* packet, a combination that raises the rank of its
    decoding matrix. With probability FP an innovative packet sets a timer to ΔTC from now. When the timer fires, the
    node broadcasts k = ceil(FF * ip) new combinations of its rows; ip counts the innovative packets since the node last
    sent. At rank m the node decodes the event and delivers it to its matching subscriptions. Subscriptions are not
    sent: every node gets every event.

    A node with an incomplete generation that receives no innovative packet for 4 ΔTC sends a *request*: first to the
    neighbor that sent the last innovative packet, then to all neighbors, ``max_requests`` times in total. After the
    last request, a packet that is not innovative allows one more request, as it shows that a neighbor is sending. A
    request carries the node's rank. A neighbor that has decoded the event collects requests for ΔTC and answers them
    together: it broadcasts m - r packets, where r is the lowest rank in the requests. Other neighbors answer after
    decoding the event. So a node stores a decoded event as long as requests may arrive, 4 (``max_requests`` + 1) ΔTC
    after its own timer, or until a new event needs the memory.

    The coded data are the event and its checksum. If the decoded checksum is wrong, or packets differ in field,
    generation size or length, the whole generation is dropped (``corrupt``). The node then collects and requests
    packets anew, and sends no packet of that event before decoding it. It cannot identify the sender of bad packets.

Messages (protocols/coded_diffusion/wire.py)
    event    broadcast, by the source only: the attributes
    coded    broadcast: event id, hops, generation size, field, encoding vector, information vector
    request  unicast, then broadcast: event id, rank

Cost
    On the paper's grid (400 nodes, ideal links, an event of 1 KB) requests cost nothing at FP = 1: a run takes 435
    frames and 232 KB with and without them; gossip takes 411 KB. On a line, about three frames a node are sent.

Limits
    The attributes of an event take 65,535 bytes at most. A node stores ``max_events`` decoding matrices, each of m rows
    of 1/m of the event's length, and ``max_known`` ids. When these are full, a further event is refused until a stored
    one has been quiet for ``forget_after_s``. A node that forgot an event too early, while its neighbors still send it,
    would take the event for new and send it again. Its neighbors would do the same, without end. So the packets of an
    event must have died out in each neighborhood within ``forget_after_s``.

    Only a node that has heard a packet of an event requests more. If the first packet is lost on a line, all nodes
    beyond receive nothing. A node that no neighbor hears cannot request: with one neighbor and m = 2 it gets half of
    the packets it needs. ``run.explain()`` names such nodes.

    A random combination may depend linearly on the packets that a node has: at m = 2 the second packet does with
    probability 1 / (q + 1) in a field of q elements. Each dependent packet delays the event by 4 ΔTC for all nodes
    beyond, which use up their requests meanwhile. The additional request makes up for this: on a line of 60 nodes all
    of 6,000 events in GF(2^8) and of 300 in GF(2^4) reached the end. Without the additional request, the third
    dependent packet stopped .23 % of the events in GF(2^8) and 66 % in GF(2^4). A node stores a decoded event for the
    time of about four answers. In GF(2), where a third of the packets are dependent, that is too short for 48 % of the
    events on such a line.

    The checksum is not a signature. A node that sends a whole event under another node's id, or all m packets of a
    forged event with a right checksum, is believed. A hostile neighbor can prevent a node from decoding while it sends.

Differs from the original in (B1, B2, ...: numbers in this project's list of the paper's gaps)
    B1   the field is a parameter; the published figures compute with integers, which GF(257) reproduces.
    B2   S and m are the same: ``generation_size``.
    B3   k = ceil(FF * ip), so at m = 2 there are only two cases, FF up to 1/2 and FF above.
    B4   ip counts since the node's last transmission for the event.
    B5   one timer for each event: a successful draw moves it to now + ΔTC, a failed draw leaves it unchanged.
    B6   later innovative packets set the timer again; with ``rearm=False`` a node sends combinations of an event once.
    B7   a decoded event is stored until its running timer has fired; otherwise diffusion would stop with the first
         decoders. After that it is stored for neighbors that send requests.
    B8   BF * neighbors >= m is not enough, as random combinations may be dependent. With requests it is not necessary,
         as bootstrap nodes answer them too. Without requests ``run.explain()`` reports BF * neighbors <= m.
    B9   a neighbor that missed the event is an intermediate node; a bootstrap node ignores FP and its earlier timer.
    B10  an encoding vector of zeros is drawn again; the event's length is in every packet, padding is zeros. An event
         is identified by (origin, sequence). It is forgotten after the longest of these times without a frame of it:
         ``forget_after_s``, 2 m ΔTC (a neighbor may still be collecting), twice the time that it is stored.
    --   a source ignores packets of its own event.
    --   each frame has a checksum, and for the metrics a hop count: one more than the lowest of the packets received.
    --   requests. In the published protocol (``max_requests=0``) with FF up to 1/2, a node sends one packet for two
         received, so the next node on a line or beyond a bridge never has two: on lines of 4, 6, 10 nodes .75, .5, .3
         of the nodes get an event.
    --   the coded data contain a checksum of the event: without it one forged packet corrupted the event at all nodes
         that combined it.

Reference
    A note of two pages on event diffusion with random linear network coding in a wireless mesh network; our copy has no
    title or authors. notebooks/02-network-coding.ipynb and notebooks/papers/network-coding.ipynb reproduce its figures.
    On the same subject: R. Beraldi, H. Alnuweiri: A Network-Coding Based Event Diffusion Protocol
    for Wireless Mesh Networks, LNICST 23, Springer, doi 10.1007/978-3-642-11482-3_2.
    S. Chachulski et al.: Trading structure for randomness in wireless opportunistic routing, SIGCOMM 2007 (pre-coding).

The node (`node.py`) also runs on a mote; this file, which describes the protocol, is used on the host only.
"""

from workbench.keywords import hand_out
from workbench.protocols.coded_diffusion import wire
from workbench.protocols.coded_diffusion.node import CodedDiffusionNode
from workbench.protocols.protocol import Parameter, Protocol

__all__ = ["CodedDiffusion"]

PARAMETERS = (
    Parameter(
        "generation_size",
        2,
        1,
        wire.LARGEST_GENERATION,
        "chunks",
        "chunks of an event: m and S of the paper; 2 as in its evaluation",
    ),
    Parameter("field", 256, wire.FIELD_ORDERS, None, "order", "GF(2^8): random vectors are independent with p = .996"),
    Parameter("bootstrap_factor", 2, 1, 255, "packets", "BF; with BF = m one bootstrap node can start the diffusion"),
    Parameter("forwarding_probability", 1.0, 0.0, 1.0, "share", "FP: below about .7 a grid is not covered"),
    Parameter(
        "forwarding_factor",
        0.5,
        0.001,
        1.0,
        "per packet",
        "FF; 0.5: one packet for two innovative packets; larger costs more",
    ),
    Parameter("collecting_time_ms", 50.0, 0.001, 1e6, "ms", "ΔTC; 50 as in the paper's evaluation"),
    Parameter(
        "rearm", True, None, None, "", "a node sends again after later packets: coverage .99, not .64, at 20 % loss"
    ),
    Parameter(
        "max_requests",
        3,
        0,
        255,
        "requests",
        "in a row: one crosses a bridge, two more in case of loss; 0: as published",
    ),
    Parameter("max_events", 50, 1, 65535, "events", "decoding matrices, one for each event in flight"),
    Parameter(
        "max_known",
        1000,
        1,
        65535,
        "events",
        "ids that a node remembers, as many as in Flooding: 100 events a second",
    ),
    Parameter(
        "forget_after_s", 10.0, 0.0, 65535.0, "s", "a node forgets an event's id after this time without a frame of it"
    ),
)


# The settings of notebooks/papers/network-coding.ipynb: three of the paper's evaluation, and two more.
PRESETS = {
    "the paper's, FF up to 1/2, one-shot": {"max_requests": 0, "rearm": False},
    "the paper's, FF up to 1/2, re-arm": {"max_requests": 0},
    "the paper's, FF above 1/2": {"max_requests": 0, "forwarding_factor": 1.0},
    "for loss: eight chunks": {"max_requests": 0, "generation_size": 8, "bootstrap_factor": 9},
    "for 300 ms of jitter": {"max_requests": 0, "collecting_time_ms": 500.0},
}


class CodedDiffusion(Protocol):
    """Coded diffusion with its parameters: ``CodedDiffusion(generation_size=2, forwarding_probability=.8, ...)``."""

    node = CodedDiffusionNode
    parameters = PARAMETERS
    disseminates = True
    max_fragments = 16
    fast = "workbench.protocols.coded_diffusion.fast"
    dissector = "workbench.protocols.coded_diffusion.dissector"
    explain = "workbench.protocols.coded_diffusion.explain"
    presets = PRESETS
    known_already = ("duplicate", "decoded", "not_innovative")

    def receptions_on_an_arc(self, readings, subscriptions, duration_s):
        """Estimate how many frames are received on each arc (directed link) during a run: twenty for each reading."""
        return 20 * readings


hand_out(__name__, {"views": "views"})
