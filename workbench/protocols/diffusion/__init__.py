"""TinyDiffusion: directed diffusion for motes. One-phase pull, reinforcement and filters in a few kilobytes.

Theory of operation
    A sink floods an *interest*. Every node that hears it keeps it in its *interest cache* with *gradients* towards the
    neighbors it heard it from, in order of arrival. A source whose samples match a cached interest sends them as
    *data*, by unicast and hop by hop, along the head of the gradient list, so down the way that the interest came up
    fastest. Each node remembers per source which neighbor brought new data first (the *data gradient*). By that the
    sink sends a *reinforcement*, again hop by hop, back to the source; the gradients it sets go before all others.
    The sink repeats its interest with the next *round*, which clears the old gradients: paths follow the network.

Several sinks
    Data is for all sinks whose interests match, and copies of it part where their paths part. A copy lists the sinks
    that *other* copies serve. A node serves each sink with a gradient in a matching entry, unless the list has it, the
    node has served it with this message before, or it is the source or the node itself:

    1. The next hop for a sink may be the head of its gradients or, unless a reinforcement chose the head, any neighbor
       as near to the sink as the head is (as many hops by the interest's ttl). The previous hop is left out.
    2. The neighbor that may be the next hop for most of these sinks gets a copy for them; of equal neighbors the one
       that is the head for more, then the lower address. This is repeated for the sinks that are left, for up to
       ``max_next_hops`` neighbors. Sinks left over then are listed nowhere, so all these neighbors try to serve them.
    3. A copy lists the sinks that the node serves by its other copies, then those that the node's message listed, that
       it served with earlier copies, and itself if it wants the data; all but the receiver. Where a list is longer
       than the frame has room for, its end is cut: that costs copies, not readings.

    So with one sink no frame has a list, and a later copy of a known message is forwarded for the sinks that nobody
    has served, or is a duplicate. A node remembers the sinks served as long as it remembers the message (``max_data``).

    A copy for a sink that the node has served, which comes at least three hops later than the message before, has gone
    in a circle, as a reinforcement has moved the path meanwhile. It goes on as if it were new: the node forgets which
    sinks it has served. The message is not delivered again.

    If the radio reports that a data frame was not acknowledged, the node sends the message again within a second: to
    the first gradient of each sink but the neighbor that failed, or to that one if there is no other. It does so
    three times for a message, circles included. Four frames at most wait for that; further ones are sent at once.

Messages (protocols/diffusion/wire.py)
    interest        broadcast: sink, sequence, round, previous hop, ttl, expiration, attributes
    reinforcement   the same message, sent to one neighbor alone
    data            unicast: source, sequence, previous hop, ttl, sinks that other copies serve, attributes

Limits
    Addresses have 16 bits. All memories are FIFOs of the sizes in the parameter table. Links are taken as symmetric:
    on a link that works one way only, an interest may set a gradient that data cannot use (the black list is for that).
    In the simulator the link layer's estimates, by which the black list goes, are the true delivery ratios from the
    start. A mote has to learn them, so what the black list's default does for a lossy network is the best case.
    Whose links all lose more than ``blacklist_loss`` is cut off: a network of such links needs a limit of 1.
    More interests at a time than ``max_seen_interests`` are flooded over and over until their ttl ends.
    A list has room for 22 sinks beside a reading of one attribute, in the strict profile for 7. With more sinks copies
    multiply, and a node that is given more messages at once than ``max_data`` may send one of them twice.
    A filter is asked once for a message, so a node whose filter changes a message sends what is left to all sinks that
    want it, whatever the list says, and drops later copies. With such filters at many nodes and several sinks data
    floods along all gradients' heads.
    A reading that is on its way while a reinforcement moves the path may come to a node whose only way on leads back
    where the reading came from, and ends there; it takes frames that overtake each other.
    Each sink gets a single copy. A radio without acknowledgements reports no loss, so on lossy links each of several
    sinks then gets no more than it would alone; ``exploratory_gradients`` above 1 sends more copies.
    A burst of more messages than ``max_data`` may bring a sink a reading twice: once by a copy for another sink.
    If a relay dies, its neighbors send each reading to it first until the next refresh, and some of their detours lead
    back to them.

Differs from the original in (A1, A2, ... number its gaps in this project's own list; other files have the rest)
    A1   a message has room for (profile - header) / 4 attributes; ``max_attributes`` bounds an API call.
    A14  of the gradients for a sink the head carries data; over several interests and sinks data goes to the union of
         unique neighbors, never back to the previous hop. ``exploratory_gradients`` > 1 sends each sink so many copies,
         one along each of its first gradients, until a reinforcement has chosen. Else copies for several sinks share
         neighbors (see above); in the original data for one sink spreads along the gradients of all.
    A15  Round counts refreshes modulo 256; a newer one clears the sink's gradients, an older one is dropped. A node
         that has heard none for two refreshes takes any for new; see interest_cache.py.
    A16  a duplicate has the same sink, sequence and round; interests with the same constraints share an entry. An
         interest that is merely covered by another is still flooded.
    A19  whether an interest message is a reinforcement is told by how it was sent: unicast.
    A20, A21  which reinforcement is taken and where it goes: see reinforcement.py.
    A23  data meets the duplicate list first, then the filters, then the interest cache.
    A24  the data list is two: recent (source, sequence) pairs against duplicates, and samples waiting to be sent.
    A25  samples are matched when published and, while some wait, a second after the cache changed or the node itself
         subscribed. They wait for ``sample_lifetime_s`` and no longer: what nobody asked for in time is dropped.
    A26  samples are aggregated at the source only, one after the other in one message, which says so (a bit of AttNum;
         see wire.py); the sink takes it apart where the first key comes again and filters each by itself. A reading
         that has its first key twice travels alone, and stays one.
    A27  the black list holds neighbors whose two-way loss is above ``blacklist_loss``, until it falls below that less
         the hysteresis. The loss is what the link layer estimates (`link_quality`); an unknown neighbor is good.
         At the default a frame and its acknowledgement take four tries on average, the first and three retries. On the
         links of two IoT-LAB sites, also as 30 to 40 dB less power would leave them, the worst of all runs with three
         retries delivers 99 %; with the limit at .95 it delivers 95 %, without a black list 88 %. These were measured
         before nodes sent again what the radio reports as lost.
    A28  sequence numbers are 32 bits, sources 16, and nothing counts as already seen that was not.
    --   a sink that hears no neighbor pass on its interest sends it again, up to ``max_repeats`` times a round. Sinks
         that subscribed at the same time refresh at the same time: their frames collide, and the original's next
         chance, a refresh later, is the same collision.
    --   data goes along ``exploratory_gradients`` only while a node remembers data for longer than copies take to meet
         (a second); a node that forgets sooner uses the head alone, or copies would circle and multiply.
    --   each list has a size. What one has no room for is dropped as ``full``: the reinforcement of a further sink of
         one source, data for further neighbors, a further neighbor on the black list. A further subscription is
         refused.
    --   interests already seen are remembered apart from the cache, or an evicted interest would be flooded for ever;
         ``unsubscribe`` floods the interest with expiration 0, which cancels it and what reinforced a part of it, but
         no later interest of the sink; data has a ttl as well.

Reference
    TinyDiffusion design note (2003); C. Intanagonwiwat et al.: Directed diffusion for wireless sensor networking,
    IEEE/ACM ToN 11(1), 2003; J. Heidemann et al.: Matching data dissemination algorithms to application requirements,
    SenSys 2003 (one-phase pull).

The node runs on a mote too (`node.py`); this file, which says what the protocol is, stays with the host.
"""

from workbench.errors import ParameterError
from workbench.protocols.diffusion.filters.on_node import REPLACE
from workbench.protocols.diffusion.filters.value import Filter
from workbench.protocols.diffusion.node import DiffusionNode
from workbench.protocols.diffusion.wire import PROFILES
from workbench.protocols.protocol import Parameter, Protocol, plain

PARAMETERS = (
    Parameter("max_interests", 10, 1, 255, "entries", "MAX_INTERESTS of the definition file"),
    Parameter("max_gradients", 10, 1, 255, "per interest", "MAX_GRADIENTS: a mote's usual degree"),
    Parameter("max_reinforcements", 10, 1, 255, "per interest", "MAX_REINFORCEMENTS: data gradients, one a source"),
    Parameter("max_attributes", 10, 1, 255, "per call", "MAX_ATT"),
    Parameter("max_data", 20, 1, 65535, "entries", "MAX_DATA: duplicate list, and samples that wait"),
    Parameter("max_sinks", 10, 1, 255, "per data gradient", "as many as gradients, should each lead to another sink"),
    Parameter("max_next_hops", 10, 1, 255, "per data message", "a mote's usual degree"),
    Parameter("max_subscriptions", 20, 1, 65535, "per node", "two for each interest, where half of them overlap"),
    Parameter("max_black", 255, 1, 65535, "neighbors", "the black list; a dense testbed's, where most links are weak"),
    Parameter("max_seen_interests", 50, 1, 65535, "entries", "five caches: an evicted interest is still known"),
    Parameter("ttl", 50, 1, 255, "hops", "TTL of the definition file"),
    Parameter("profile", "wide", ("strict", "wide"), None, "", "29 B is TinyOS's; a region takes five attributes"),
    Parameter("refresh_s", 30.0, 0, 65535, "s", "diffusion3's interest refresh; 0 never refreshes"),
    Parameter("max_repeats", 3, 0, 255, "per round", "of an interest that no neighbor is heard to pass on"),
    Parameter("gradient_lifetime_s", 150.0, 1, 65535, "s", "diffusion3's: five refreshes may be lost"),
    Parameter("tick_s", 1.0, 0.001, 3600, "s", "how long waiting samples wait for a matching interest at most"),
    Parameter("sample_lifetime_s", 60.0, 0.001, 65535, "s", "two refreshes: whoever asks has been heard by then"),
    Parameter("reinforce_after", 1, 0, 65535, "messages", "new data of a source before it is reinforced; 0 never"),
    Parameter("exploratory_gradients", 1, 1, 255, "per sink", "the head alone carries data until reinforced"),
    Parameter("blacklist_loss", 0.75, 0, 1, "share", "above, 802.15.4's four tries are too few; 1: no list"),
    Parameter("blacklist_hysteresis", 0.1, 0, 1, "share", "a link on the edge does not flap"),
    Parameter("filters", (), None, None, "Filter", "none: the network passes on what it is given"),
)


# Sizes of the definition file are the defaults.
PRESETS = {
    "TinyOS's frames of 29 B": {"profile": "strict"},
    "lesson 1": {"exploratory_gradients": 2, "blacklist_loss": 0.5},
    "no black list (A27)": {"blacklist_loss": 1.0},
}


# What a filter in C remembers: sources, or the most that it counts.
FEW_SOURCES, MOST_SOURCES = 10, 255


class Diffusion(Protocol):
    """TinyDiffusion and its settings: ``Diffusion(max_gradients=10, filters=(Filter(...),), ...)``."""

    node = DiffusionNode
    parameters = PARAMETERS
    largest_address = 0xFFFE
    fast = "workbench.protocols.diffusion.fast"
    metrics = "workbench.protocols.diffusion.metrics"
    dissector = "workbench.protocols.diffusion.dissector"
    explain = "workbench.protocols.diffusion.explain"
    catalogue = "workbench.protocols.diffusion.filters.catalogue"
    presets = PRESETS
    changes = ("filtered", REPLACE)

    def __init__(self, **settings):
        # Scenario files of version 0.1 have it, nearly all of them with what is left.
        if settings.pop("replacement", "newcomer") != "newcomer":
            raise ParameterError(
                "Diffusion: replacement is no parameter any more. With 'oldest' a full list of gradients let "
                "go of the one that leads to the sink, and nothing arrived; leave it out"
            )
        Protocol.__init__(self, **settings)
        taken = []
        for one in self.filters:
            if not hasattr(one, "instance"):
                raise ParameterError("Diffusion: filters has %r; write Filter(name, key=200, ...)" % (one,))
            if (one.messages, one.key) in taken:
                raise ParameterError(
                    "Diffusion: two filters for %s messages have the key %d; keys order them, so each needs its own"
                    % (one.messages, one.key)
                )
            taken.append((one.messages, one.key))

    def sizes_in_c(self):
        """The sizes of the definition file; None where these settings make nodes of another class."""
        if self.kind_of_node() is not DiffusionNode:
            return None
        limits = {name.upper(): value for name, value in self.settings.items() if name.startswith("max_")}
        del limits["MAX_REPEATS"]  # a setting, and the size of nothing
        limits["MESSAGE_B"] = PROFILES[self.profile]
        return limits

    def room_in_c(self, nodes):
        """Room for the filters of a node, their windows, and the sources that each remembers.

        In Python a filter remembers all sources, in C 255 at most.
        """
        if not self.filters:
            return {}
        everywhere = len([one for one in self.filters if one.at is None])
        places = [node for one in self.filters if one.at is not None for node in one.at]
        filters = everywhere + max([places.count(node) for node in set(places)] or [0])
        window = max([one.in_c().get("window", 1) for one in self.filters])
        sources = FEW_SOURCES if nodes <= FEW_SOURCES else MOST_SOURCES
        return {"MAX_FILTERS": filters, "MAX_FILTER_SOURCES": sources, "MAX_FILTER_WINDOW": window}

    def on_a_mote(self, address=None):
        """A mote is told of the filters that it carries alone."""
        settings = Protocol.on_a_mote(self, address)
        carried = [one for one in self.filters if address is None or one.at is None or address in one.at]
        settings["filters"] = [plain(one.on_a_mote()) for one in sorted(carried, key=lambda one: one.key)]
        return settings

    @classmethod
    def settings_from_plain(cls, values):
        """Filters come as objects of plain values."""
        if "filters" not in values:
            return values
        if not isinstance(values["filters"], list):
            raise ParameterError("protocol: filters is %r; it must be a list" % (values["filters"],))
        settings = dict(values)
        settings["filters"] = tuple([Filter.from_dict(one) for one in values["filters"]])
        return settings
