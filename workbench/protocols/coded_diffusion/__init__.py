"""Coded diffusion: events spread through a mesh as random linear combinations of their chunks, filtered by receivers.

Theory of operation
    A source broadcasts its event as a whole. A neighbor that hears it is a *bootstrap node*: it cuts the event into m
    chunks (its *generation*) and at once broadcasts BF random linear combinations of them. Every other node is an
    *intermediate node*: it keeps the combinations it hears that are *innovative*, each one raising the rank of its
    decoding matrix. With probability FP an innovative packet sets a timer to ΔTC from now; when it fires, the node
    broadcasts k = ceil(FF * ip) new combinations of all it has, ip being the innovative packets since it last sent.
    At rank m the node decodes the event and hands it to those of its subscriptions that match. Subscriptions are not
    sent: every node gets every event.

    A node that got innovative packets, but not m of them, and no more for 4 ΔTC, *asks*: first the neighbor that sent
    the last one, then all of them, ``max_requests`` times. After the last request a packet that is not innovative
    allows one more, as a neighbor evidently sends. A request says the node's rank. Who has decoded the event
    broadcasts what is missing to rank m, after ΔTC, once for all who asked by then; who is still to decode it, then.
    So a decoded event is kept for as long as requests may come, 4 (``max_requests`` + 1) ΔTC after its own timer. Where
    a new event needs the room, it is forgotten earlier.

    What is coded is the event and a checksum of it. A generation that is decoded and fails it is dropped whole
    (``corrupt``), and so is one whose packets do not agree about field, generation size or length. The node collects
    and asks anew, and sends nothing of that event before it has decoded it. It does not know who sent what was wrong.

Messages (protocols/coded_diffusion/wire.py)
    event    broadcast by the source alone: the attributes
    coded    broadcast: event id, hops, generation size, field, encoding vector, information vector
    request  unicast, then broadcast: event id, rank

Cost
    On the paper's grid (400 nodes, ideal links, an event of 1 KB) requests cost nothing at FP = 1: 435 frames with them
    and without, 232 KB, where gossip takes 411. On a line of n nodes there are about three frames a node.

Limits
    An event's bytes are those of its attributes, 65,535 at most. A node keeps ``max_events`` decoding matrices, each
    of m rows of 1/m of the event's length, and ``max_known`` ids. Where that is full a further event is refused, as
    long as none has been quiet for ``forget_after_s``: a node that made room by forgetting an event which its neighbors
    still send would take it for new and send it again, and they as well, without end. For the same reason an event has
    to be through with every neighborhood in that time.

    Only a node that has heard a packet of an event asks for more; where the first one is lost on a line, all behind it
    are left out. A node that nobody hears cannot ask: with one neighbor and m = 2 it gets half of what it needs.
    ``run.explain()`` names such nodes.

    A random combination may depend on the packets that a node has: at m = 2, the second packet does with probability
    1 / (q + 1) in a field of q elements. Each dependent packet delays the event for all nodes behind by 4 ΔTC. These
    nodes spend their requests meanwhile, which the additional request makes up for: on a line of 60 nodes all of
    6,000 events in GF(2^8) and of 300 in GF(2^4) came to the end. Without it the third dependent packet ended .23 % and
    66 % of them. A node keeps a decoded event for about four answers. In GF(2), where a third of the packets depend,
    that is too short for 48 % of the events on such a line.

    The checksum is no signature. Whoever sends a whole event under another's id, or all m packets of one with its
    checksum, is believed. A hostile neighbor that goes on sending can keep a node from decoding for as long as it does.

Differs from the original in (B1, B2, ... number its gaps in this project's own list)
    B1   the field is a parameter; the printed figures compute over the integers, which GF(257) reproduces.
    B2   S and m are one: ``generation_size``.
    B3   k = ceil(FF * ip), so at m = 2 there are but two cases, FF up to 1/2 and above.
    B4   ip counts since the node's last transmission for the event.
    B5   one timer for each event: a draw that succeeds moves it to now + ΔTC, one that fails leaves it as it is.
    B6   later innovative packets set the timer again; ``rearm=False`` lets a node send once for an event.
    B7   a decoded event is kept until a timer that runs has fired, or diffusion would stop with the first decoders; and
         then for neighbors that ask.
    B8   BF * neighbors >= m is not enough, as random combinations may depend on each other, and with requests it is not
         necessary: bootstrap nodes are asked, too. Without them ``run.explain()`` tells of BF * neighbors <= m.
    B9   a neighbor that missed the event is an intermediate node; a bootstrap node ignores FP and its earlier timer.
    B10  an encoding vector of zeros is drawn again; the event's length is in every packet, padding is zeros; an event
         is known by (origin, sequence), and forgotten when nothing was heard of it for ``forget_after_s``, or for
         2 m ΔTC if that is longer (a neighbor may still be collecting), or for twice as long as it is kept.
    --   a source does not take its own event back, decoded or not.
    --   a checksum in every frame; a hop count, one more than the least of the packets a node had, for the metrics.
    --   requests. As printed (``max_requests=0``), with FF up to 1/2 one packet leaves a node for two that came, so the
         next one on a line or behind a bridge never has two: of a line of 4, 6, 10 nodes .75, .5, .3 get an event.
    --   a checksum of the event in what is coded: one made-up packet spoiled an event for all who combined it.

Reference
    A note of two pages on event diffusion with random linear network coding in a wireless mesh network, whose figures
    notebooks/02-network-coding.ipynb and notebooks/papers/network-coding.ipynb go after. The text at hand has lost its
    title and authors; of the same subject is R. Beraldi, H. Alnuweiri: A Network-Coding Based Event Diffusion Protocol
    for Wireless Mesh Networks, LNICST 23, Springer, doi 10.1007/978-3-642-11482-3_2.
    S. Chachulski et al.: Trading structure for randomness in wireless opportunistic routing, SIGCOMM 2007 (pre-coding).

The node runs on a mote too (`node.py`); this file, which says what the protocol is, stays with the host.
"""

from workbench.keywords import hand_out
from workbench.protocols.coded_diffusion import wire
from workbench.protocols.coded_diffusion.node import CodedDiffusionNode
from workbench.protocols.protocol import Parameter, Protocol

__all__ = ["CodedDiffusion"]

PARAMETERS = (
    Parameter("generation_size", 2, 1, wire.LARGEST_GENERATION, "chunks", "the paper's evaluation; m, and its S"),
    Parameter("field", 256, wire.FIELD_ORDERS, None, "order", "GF(2^8): random vectors are independent with p = .996"),
    Parameter("bootstrap_factor", 2, 1, 255, "packets", "BF = m: a lone bootstrap node can start the diffusion"),
    Parameter("forwarding_probability", 1.0, 0.0, 1.0, "share", "FP: below about .7 a grid is not covered"),
    Parameter("forwarding_factor", 0.5, 0.001, 1.0, "per packet", "FF: half of what was innovative; more costs more"),
    Parameter("collecting_time_ms", 50.0, 0.001, 1e6, "ms", "ΔTC of the paper's evaluation"),
    Parameter("rearm", True, None, None, "", "later packets are worth sending: coverage .99 against .64 at 20 % loss"),
    Parameter("max_requests", 3, 0, 255, "requests", "in a row: one passes a bridge, each may get lost; 0: as printed"),
    Parameter("max_events", 50, 1, 65535, "events", "decoding matrices: what is on its way at one time"),
    Parameter("max_known", 1000, 1, 65535, "events", "ids, as many as Flooding knows: 100 events a second"),
    Parameter("forget_after_s", 10.0, 0.0, 65535.0, "s", "long after an event has passed: then its id is forgotten"),
)


# What notebooks/papers/network-coding.ipynb runs: the paper's evaluation, and what it did not try.
PRESETS = {
    "the paper's, FF up to 1/2, one-shot": {"max_requests": 0, "rearm": False},
    "the paper's, FF up to 1/2, re-arm": {"max_requests": 0},
    "the paper's, FF above 1/2": {"max_requests": 0, "forwarding_factor": 1.0},
    "for loss: eight chunks": {"max_requests": 0, "generation_size": 8, "bootstrap_factor": 9},
    "for 300 ms of jitter": {"max_requests": 0, "collecting_time_ms": 500.0},
}


class CodedDiffusion(Protocol):
    """Coded diffusion and its settings: ``CodedDiffusion(generation_size=2, forwarding_probability=.8, ...)``."""

    node = CodedDiffusionNode
    parameters = PARAMETERS
    disseminates = True
    fast = "workbench.protocols.coded_diffusion.fast"
    dissector = "workbench.protocols.coded_diffusion.dissector"
    explain = "workbench.protocols.coded_diffusion.explain"
    presets = PRESETS

    def receptions_on_an_arc(self, readings, subscriptions, duration_s):
        """A packet's algebra costs what twenty receptions of a flood do."""
        return 20 * readings


hand_out(__name__, {"views": "views"})
