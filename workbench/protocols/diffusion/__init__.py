"""TinyDiffusion: directed diffusion for motes, with one-phase pull, reinforcement and filters in a few kilobytes.

Theory of operation
    A sink floods an *interest*. Every node that hears it stores it in its *interest cache*, with *gradients* towards
    the neighbors from which it heard the interest, in order of arrival. A source whose samples match a cached interest
    sends them as *data*, by unicast and hop by hop, along the first gradient of each list: the reverse of the path on
    which the interest came fastest. For each source, a node remembers the neighbor that first brought the newest data
    (the *data gradient*). Along the data gradients, hop by hop, the sink sends a *reinforcement* to the source. The
    gradients that a reinforcement sets precede all others. The sink repeats its interest with the next *round*, which
    clears the old gradients, so that paths follow changes of the network.

Several sinks
    Data is for all sinks whose interests match it. Where the paths to these sinks separate, a node sends several
    copies. A node *serves* a sink by sending a copy towards it. Each copy lists the sinks that *other* copies serve. A
    node serves each sink that has a gradient in a matching entry of its interest cache. It leaves out the source,
    itself, the sinks in the received list, and the sinks that it has already served with this message:

    1. Each sink has one or more candidates for the next hop. The first is the neighbor of the sink's first gradient.
       Unless a reinforcement has chosen this gradient, all other neighbors that are at least as near to the sink as the
       first candidate are candidates, too. The ttl of the interest shows a neighbor's distance. The previous hop of the
       data is never a candidate.
    2. The neighbor that is a candidate for the largest number of these sinks gets a copy for them. If several neighbors
       tie, the one to which the first gradients of more sinks lead is chosen, then the lower address. This is repeated
       for the remaining sinks, for up to ``max_next_hops`` neighbors. If sinks remain after that, no copy lists them,
       so all receivers of copies try to serve them.
    3. A copy first lists the sinks that the node serves with its other copies. After them it lists the sinks in the
       list of the received message, the sinks that the node served with earlier copies, and the node itself if its own
       interests match the data. The receiver of the copy is left out. If a list does not fit the frame, its end is cut
       off. Then some sinks get unnecessary copies, but no reading is lost.

    With a single sink, frames therefore have no list. A later copy of a known message is forwarded for the sinks that
    no copy has served yet. If no such sink is left, the copy is dropped as a duplicate. A node remembers the served
    sinks as long as it remembers the message (``max_data``).

    A copy has circled if it is for a sink that the node has already served, and its ttl is at least three hops below
    that of the first copy. The cause is a reinforcement that has moved the path meanwhile. The node then forgets which
    sinks it has served, and forwards the copy as if it were new. It does not deliver the message again.

    If the radio reports that a data frame was not acknowledged, the node sends the message again within a second. For
    each sink, the message now goes along the first of the sink's gradients that leads to another neighbor. If there is
    no such gradient, it goes to the same neighbor again. A node does this up to three times for a message; a copy that
    has circled counts as one of these times. At most four frames wait to be sent again; any further frame goes at once.

INTERVAL
    An interest with ``INTERVAL IS t`` requests at most one reading every t seconds from each source. A source does not
    send a reading to a sink whose INTERVAL has not passed since the last reading that it sent there. It lists the sink
    in the copies for other sinks, as if another copy served it. A reading that no sink needs is dropped with the reason
    ``interval``. A reading that comes up to a sixteenth of the interval early is sent, as timers are not exact. If
    several interests of a sink match, a reading is sent if it is due for one of them. Subscriptions of a sink with the
    same constraints share an interest, which has the shortest of their INTERVALs. A reinforcement has an INTERVAL of
    its own. So ``reinforce`` with narrower constraints can request more readings from some of the sources, until the
    gradients that the reinforcement sets expire. A sink that relays data for other sinks delivers what it relays, so it
    may get more readings than it requests.

Merged interests
    With ``merge_interests=True`` a sink floods no interest that another of its own interests *covers*: the wider
    interest requests all data of the covered one, ends no earlier, and has no INTERVAL (`covers` in
    attributes/interests.py). Of two interests that cover each other, the newer one is covered. Gradients lead to a
    sink, so an interest never covers that of another sink.

    The sink delivers data to the subscriptions of a covered interest as before. It reinforces paths for the wider
    interest only. An explicit ``reinforce`` of a covered subscription is a further constrained reinforcement of the
    wider interest, which relays accept (A20).

    If an interest becomes covered after it was flooded, its refreshes end and its gradients expire. They are not
    cancelled: that would cost a flood, and a node that missed the flood of the wider interest would have no gradient
    until the next refresh (grid of 100 nodes with the radio ``cc2420``: 1.6 % of the readings of the next minute are
    lost instead of 0.2 %). Meanwhile a reading may take two paths; the sink delivers it once. If the wider interest is
    cancelled, or its end comes closer, the sink floods the covered one in a new round. It does so before it cancels the
    wider one, so that nodes on the path always have a gradient if no flood is lost. A covered interest that ends is
    cancelled only if it was flooded before. If a wider interest expires, no covered interest has to be flooded, as
    covered interests end no later than the wider one.

    A filter that drops or changes the wider interest also affects the data of the covered ones, and so does an explicit
    reinforcement of the wider interest with an INTERVAL. The floods of several interests make up for each other's
    losses, also without refreshes (``refresh_s=0``): merged interests lose more readings if floods are often lost.

Messages (protocols/diffusion/wire.py)
    interest        broadcast: sink, sequence, round, previous hop, ttl, expiration, attributes
    reinforcement   the same message, sent to one neighbor only
    data            unicast: source, sequence, previous hop, ttl, sinks that other copies serve, attributes

Limits
    Addresses have 16 bits. All memories have fixed sizes, see the parameter table. Links are assumed symmetric: on
    a link that works in one direction only, an interest may set a gradient that data cannot use. The black list
    prevents that.
    The black list uses the link layer's estimates of delivery ratios. With ``link_quality="true"``, the default of
    `wb.Radio`, these are exact from the start. With the presets of radios, nodes learn them from beacons. A mote has to
    learn them, too, so a simulation with exact ratios shows the best case. A node whose links all lose more than
    ``blacklist_loss`` is cut off; a network of such links needs a limit of 1. If there are more than
    ``max_seen_interests`` interests at a time, nodes forget some of them and flood these again and again, until their
    ttl ends. Beside a reading of one attribute, a frame has room for a list of 22 sinks with ``profile="wide"`` (60
    bytes), and of 7 sinks with "strict" (29 bytes). With more sinks copies multiply, and a node that publishes or
    receives more messages at once than ``max_data`` may send a message twice. A filter processes a message once. So a
    node whose filter changes a message sends the result to all sinks whose interests match it, even to sinks that the
    received message listed. It drops later copies. With such filters at many nodes and several sinks, data floods along
    the first gradients of all sinks. While a reinforcement moves a path, a reading may reach a node whose only gradient
    leads back to the sender, and is dropped there. That happens only if frames overtake each other. Each sink gets a
    single copy, also if there are several sinks. If the radio has no acknowledgements, a lost copy is not sent again;
    ``exploratory_gradients`` above 1 sends more copies. After a burst of more messages than ``max_data``, a sink may
    get a reading twice, as a copy for another sink may pass through it. If a relay fails, its neighbors still send each
    reading to it first, until the next refresh. Some of the detours that they use afterwards lead back to these
    neighbors.

Differs from the original in (A1, A2, ...: this project numbers the gaps in the original's description; other files
                              list the gaps that are missing here)
    A1   a message has room for (size - header) / 4 attributes, where ``profile`` determines the size. The node's
         methods accept at most ``max_attributes``.
    A11  if a publication repeats a key, different values may meet the constraints on this key: "TEMP GE 25, TEMP LE 30"
         matches "TEMP IS 20, TEMP IS 35". With ``matching="strict"`` a single value has to meet all constraints of its
         key. All nodes of a network need the same rule. Publications have no constraints, unless
         ``matching="two-way"``, which is the rule of ISI's diffusion3: the IS attributes of each side have to meet the
         constraints of the other side. So "TEMP IS 22, INSTANCE EQ 4" is only for subscriptions with "INSTANCE IS 4". A
         publication needs at least one IS attribute. It must not constrain INTERVAL, as interests that differ in their
         INTERVAL share a cache entry. A reinforcement matches data by the same rule: to select data with a constraint,
         it must contain an IS attribute that meets the constraint, as the subscription does. Filters select data by its
         IS attributes only.
    A14  the first gradient for a sink carries data. If data matches several interests or sinks, it goes to the
         neighbors of all their first gradients, never back to the previous hop. If ``exploratory_gradients`` is above
         1, each sink gets that many copies, one along each of its first gradients, until a reinforcement has chosen
         one. Otherwise copies for several sinks share neighbors (see above). In the original, data for one sink spreads
         along the gradients of all sinks.
    A15  the round counts refreshes modulo 256. An interest of a newer round clears the sink's gradients; an interest of
         an older round is dropped. A node that has not heard an interest for two refreshes accepts any of its rounds as
         new; see interest_cache.py.
    --   INTERVAL is obeyed by sources only. The original describes it as an attribute that reinforcements may change,
         but not what nodes do with it; in directed diffusion relays also convert rates. Here a source remembers the
         INTERVAL of as many sinks as its cache has entries; a further sink gets all readings.
    A16  an interest is a duplicate if sink, sequence and round are equal. Interests with the same constraints share a
         cache entry. An interest whose constraints lie within those of another interest is still flooded, unless
         ``merge_interests`` is set and both are interests of the same sink (see above).
    A19  an interest message is a reinforcement if it was sent by unicast.
    A20, A21  reinforcement.py describes which reinforcements a node accepts, and where it forwards them.
    A23  data is checked against the duplicate list first, then the filters, then the interest cache.
    A24  a node has two lists of data: recent (source, sequence) pairs, to recognize duplicates, and samples waiting to
         be sent.
    A25  samples are matched with interests when they are published. A sample without a match waits. Waiting samples are
         matched again ``tick_s`` after the cache changed or the node itself subscribed. A sample for which no interest
         arrived within ``sample_lifetime_s`` is dropped.
    A26  samples are aggregated at the source only, one after the other in one message with the flag AGGREGATE (see
         wire.py). The sink splits the message where its first key repeats, and filters each reading separately. A
         reading that has its first key twice is sent alone, and not split. A reading with constraints is sent alone,
         too: its constraints hold for a whole message.
    A27  a neighbor is put on the black list when its two-way loss is above ``blacklist_loss``. It is taken off when the
         loss is below ``blacklist_loss`` - ``blacklist_hysteresis``. The loss is the link layer's estimate
         (`link_quality`); a neighbor without an estimate is not on the list.
         With a loss at the default limit, a frame and its acknowledgement take four tries on average: the first one and
         three retries of the radio. On the links of two IoT-LAB sites, also with 30 to 40 dB less power, the worst run
         delivers 99 %; with ``blacklist_loss`` .95 it delivers 95 %, without a black list 88 %. These shares were
         measured before nodes sent unacknowledged data again.
    A28  sequence numbers have 32 bits and sources 16, so a new message is never taken for a known one.
    --   a sink that hears no neighbor forward its interest sends it again, up to ``max_repeats`` times a round. Sinks
         that subscribed at the same time refresh at the same time: their frames collide. In the original they collide
         again at the next refresh.
    --   with ``exploratory_gradients`` above 1, a node sends several copies for a sink only if its memory of messages
         reaches back at least a second. Copies of a message that meet at a node do so within a second. With a shorter
         memory, the node would not recognize the later copy, and copies would circle and multiply.
    --   each list has a fixed size. The reason ``full`` means that something was dropped for lack of room: a
         reinforcement, if ``max_sinks`` sinks have already reinforced the path to the source; data and reinforcements
         for more than ``max_next_hops`` neighbors; a neighbor beyond ``max_black`` on the black list. A subscription
         beyond ``max_subscriptions`` or ``max_interests`` raises an error.
    --   interests already seen are remembered separately from the cache, or an evicted interest would be flooded for
         ever. ``unsubscribe`` floods the interest with expiration 0. That cancels the interest and the reinforcements
         within it, but no later interest of the sink. Data has a ttl as well.

Reference
    TinyDiffusion design note (2003); C. Intanagonwiwat et al.: Directed diffusion for wireless sensor networking,
    IEEE/ACM ToN 11(1), 2003; J. Heidemann et al.: Matching data dissemination algorithms to application requirements,
    SenSys 2003 (one-phase pull).

The node (`node.py`) also runs on a mote; this file, which describes the protocol, is used on the host only.
"""

from workbench.attributes.interests import is_within
from workbench.attributes.model import matching_samples
from workbench.errors import ParameterError
from workbench.protocols.diffusion.filters.on_node import DROP, REPLACE
from workbench.protocols.diffusion.filters.value import Filter
from workbench.protocols.diffusion.node import DiffusionNode
from workbench.protocols.diffusion.wire import PROFILES
from workbench.protocols.protocol import Parameter, Protocol, plain

PARAMETERS = (
    Parameter("max_interests", 10, 1, 255, "entries", "MAX_INTERESTS of the definition file"),
    Parameter("max_gradients", 10, 1, 255, "per interest", "MAX_GRADIENTS: a mote's usual degree"),
    Parameter("max_reinforcements", 10, 1, 255, "per interest", "MAX_REINFORCEMENTS: data gradients, one a source"),
    Parameter("max_attributes", 10, 1, 255, "per call", "MAX_ATT"),
    Parameter("max_data", 20, 1, 65535, "entries", "MAX_DATA: duplicate list, and waiting samples"),
    Parameter("max_sinks", 10, 1, 255, "per data gradient", "as many as gradients, if each leads to another sink"),
    Parameter("max_next_hops", 10, 1, 255, "per data message", "a mote's usual degree"),
    Parameter("max_subscriptions", 20, 1, 65535, "per node", "two for each interest, if half of them share one"),
    Parameter("max_black", 255, 1, 65535, "neighbors", "the black list; a dense testbed has mostly weak links"),
    Parameter("max_seen_interests", 50, 1, 65535, "entries", "five caches: an evicted interest is still known"),
    Parameter("ttl", 50, 1, 255, "hops", "TTL of the definition file"),
    Parameter("profile", "wide", ("strict", "wide"), None, "", "29 B is TinyOS's; a region takes five attributes"),
    Parameter("refresh_s", 30.0, 0, 65535, "s", "diffusion3's interest refresh; 0 never refreshes"),
    Parameter("max_repeats", 3, 0, 255, "per round", "of an interest that no neighbor is heard to forward"),
    Parameter("gradient_lifetime_s", 150.0, 1, 65535, "s", "diffusion3's: five refreshes may be lost"),
    Parameter("tick_s", 1.0, 0.001, 3600, "s", "waiting samples are matched this long after the interests changed"),
    Parameter("sample_lifetime_s", 60.0, 0.001, 65535, "s", "two refreshes: by then every interest has arrived"),
    Parameter("reinforce_after", 1, 0, 65535, "messages", "new data of a source before it is reinforced; 0 never"),
    Parameter("exploratory_gradients", 1, 1, 255, "per sink", "only the first gradient carries data until reinforced"),
    Parameter(
        "matching",
        "any",
        ("any", "strict", "two-way"),
        None,
        "",
        "A11: strict if one value has to meet all constraints of its key, two-way if publications may have constraints",
    ),
    Parameter(
        "merge_interests", False, None, None, "", "True: a sink floods no interest that another of its own covers (A16)"
    ),
    Parameter("blacklist_loss", 0.75, 0, 1, "share", "above it, 802.15.4's four tries are too few; 1: no list"),
    Parameter("blacklist_hysteresis", 0.1, 0, 1, "share", "a link on the edge does not flap"),
    Parameter("filters", (), None, None, "Filter", "none: the network forwards messages unchanged"),
)


# Sizes of the definition file are the defaults.
PRESETS = {
    "TinyOS's frames of 29 B": {"profile": "strict"},
    "lesson 1": {"exploratory_gradients": 2, "blacklist_loss": 0.5},
    "no black list (A27)": {"blacklist_loss": 1.0},
}


# Sources that a filter in C remembers: if the network has few nodes, or at most.
FEW_SOURCES, MOST_SOURCES = 10, 255


class Diffusion(Protocol):
    """The protocol TinyDiffusion with its parameters: ``Diffusion(max_gradients=10, filters=(Filter(...),), ...)``."""

    node = DiffusionNode
    parameters = PARAMETERS
    added = ("matching", "merge_interests")
    largest_address = 0xFFFE
    fast = "workbench.protocols.diffusion.fast"
    metrics = "workbench.protocols.diffusion.metrics"
    dissector = "workbench.protocols.diffusion.dissector"
    explain = "workbench.protocols.diffusion.explain"
    catalogue = "workbench.protocols.diffusion.filters.catalogue"
    presets = PRESETS
    natures = {"interest": "upkeep", "reinforcement": "upkeep"}
    changes = ("filtered", REPLACE)
    drops = ("filtered", DROP)
    withholds = "withheld"
    narrows_matching = True

    def __init__(self, **settings):
        # Scenario files of version 0.1 have this parameter, nearly all of them with the remaining behaviour.
        if settings.pop("replacement", "newcomer") != "newcomer":
            raise ParameterError(
                "Diffusion: the parameter replacement was removed; leave it out. Its value 'oldest' made a "
                "full list of gradients drop the gradient that leads to the sink, so no data arrived"
            )
        Protocol.__init__(self, **settings)
        used_keys = []
        for filter_ in self.filters:
            if not hasattr(filter_, "instance"):
                raise ParameterError(
                    "Diffusion: filters contains %r; each element must be a Filter, like Filter('rate_limit')"
                    % (filter_,)
                )
            if (filter_.messages, filter_.key) in used_keys:
                raise ParameterError(
                    "Diffusion: two filters for %s messages have the key %d; give each filter a key of its own, as "
                    "nodes apply filters in the order of their keys" % (filter_.messages, filter_.key)
                )
            used_keys.append((filter_.messages, filter_.key))

    def matching_samples(self, subscription, publication):
        """Return [publication] if the publication matches the subscription, else [].

        The parameter ``matching`` selects the rule. With "strict" a single value must meet all constraints on its key;
        otherwise different values may meet them. With "two-way" the IS attributes of the subscription must also meet
        the constraints of the publication. ``subscription``, ``publication``: sequences of Attribute.
        """
        return matching_samples(subscription, publication, self.matching)

    @property
    def allows_constrained_data(self):
        """True if the parameter ``matching`` is "two-way"; only then publications may have constraints."""
        return self.matching == "two-way"

    def measured_keys(self):
        """Return the numbers of the attribute keys that the filters of data messages read or change.

        The keys are in the order in which nodes apply the filters.
        """
        data_filters = [filter_ for filter_ in self.filters if filter_.messages == "data"]
        data_filters.sort(key=lambda filter_: filter_.key)
        return [key for filter_ in data_filters for key in filter_.measured_keys()]

    def reinforce(self, node, attributes, now):
        """Let ``node``, a sink, reinforce the paths to the sources whose data matches ``attributes``.

        The node sends a reinforcement for each own interest whose constraints are the same as ``attributes`` or less
        strict. An interest that another own interest covers is left out, because the reinforcement of the wider
        interest suffices. ``now``: the time in µs.
        """
        for own_interest in list(node.own_interests):
            if own_interest.is_flooded and is_within(attributes, own_interest.attributes):
                node.reinforce(node.subscriptions.of(own_interest)[0], now, attributes)

    def sizes_in_c(self):
        """Return the sizes of lists and messages of the node in C: {name of the C constant: size}.

        The names are those of TinyDiffusion's design note, such as MAX_GRADIENTS. The result is None if the nodes are
        not of the class DiffusionNode, the only one that has a version in C.
        """
        if self.kind_of_node() is not DiffusionNode:
            return None
        constants = {name.upper(): value for name, value in self.settings.items() if name.startswith("max_")}
        del constants["MAX_REPEATS"]  # a setting, not a size
        constants["MESSAGE_B"] = PROFILES[self.profile]
        return constants

    def room_in_c(self, nodes):
        """Return the sizes that filters need in C: {name of the C constant: size}; {} without filters.

        MAX_FILTERS is the largest number of filters on a node. MAX_FILTER_SOURCES is the number of sources that a
        filter remembers: 10 in a network of up to 10 nodes, else 255. In Python a filter remembers all sources.
        MAX_FILTER_WINDOW is the longest window of a filter, in readings. ``nodes``: number of nodes of the network.
        """
        if not self.filters:
            return {}
        everywhere = len([filter_ for filter_ in self.filters if filter_.at is None])
        nodes_with_filters = [node for filter_ in self.filters if filter_.at is not None for node in filter_.at]
        filters = everywhere + max([nodes_with_filters.count(node) for node in set(nodes_with_filters)] or [0])
        window = max([filter_.in_c().get("window", 1) for filter_ in self.filters])
        source_count = FEW_SOURCES if nodes <= FEW_SOURCES else MOST_SOURCES
        return {"MAX_FILTERS": filters, "MAX_FILTER_SOURCES": source_count, "MAX_FILTER_WINDOW": window}

    def on_a_mote(self, address=None):
        """Return {name: plain value}, the settings that the mote at ``address`` receives.

        "filters" contains only the filters that this mote carries; without an address, all filters.
        """
        settings = Protocol.on_a_mote(self, address)
        carried_filters = [
            filter_ for filter_ in self.filters if address is None or filter_.at is None or address in filter_.at
        ]
        settings["filters"] = [
            plain(filter_.on_a_mote()) for filter_ in sorted(carried_filters, key=lambda filter_: filter_.key)
        ]
        return settings

    @classmethod
    def settings_from_plain(cls, values):
        """Return the settings in ``values``, {name: plain value}, with "filters" converted to a tuple of Filter.

        Raises ParameterError if "filters" is not a list of valid filters.
        """
        if "filters" not in values:
            return values
        if not isinstance(values["filters"], list):
            raise ParameterError("protocol: filters is %r; it must be a list" % (values["filters"],))
        settings = dict(values)
        settings["filters"] = tuple([Filter.from_dict(filter_) for filter_ in values["filters"]])
        return settings
