"""Simulated neighbors of one node under test: they send messages to the node, and collect its reaction."""

from workbench import draws
from workbench.attributes.text import parse
from workbench.protocols.contract import NOBODY, Dropped
from workbench.protocols.diffusion import Diffusion
from workbench.protocols.diffusion.wire import Data, Interest, decode, encode_data, encode_interest


def make_node(address=5, **settings):
    return Diffusion(**settings).make_node(address, draws.Stream(1))


def interest(constraints="TEMP GE 25", hop=2, sink=9, sequence=1, round=0, ttl=50, expiration_s=100):
    return Interest(sequence, sink, round, hop, ttl, expiration_s, parse(constraints))


def data(attributes="TEMP IS 26", hop=3, source=8, sequence=1, ttl=50, is_aggregate=False, others=()):
    return Data(sequence, source, hop, ttl, is_aggregate, others, parse(attributes))


def hear(node, message, now=0, unicast=False):
    """Pass a node a message from its previous hop; return the events of the node."""
    is_data = isinstance(message, Data)
    frame = (encode_data if is_data else encode_interest)(message)
    node.receive(frame, message.previous_hop, now, not (is_data or unicast))
    return node.take_events()


def sent(node):
    """Return [(destination or None, message), ...] that the node sent since the previous call."""
    return [(destination, decode(frame)) for destination, frame in node.take_frames()]


def data_hops(node):
    """Return the neighbors to which the node sent data since the previous call."""
    return [destination for destination, message in sent(node) if isinstance(message, Data)]


def listed_hops(node):
    """Return {neighbor: sinks listed in the frame} of the data that the node sent since the previous call."""
    return {destination: message.listed_sinks for destination, message in sent(node) if isinstance(message, Data)}


def next_hops(entry, now=0, exploratory=1):
    """Return the preferred neighbor for each copy of new data that an entry of the interest cache requests."""
    paths = []
    entry.add_paths(paths, now, NOBODY, [], exploratory)
    return [near[0] for _, near, _ in paths]


def gradients(node):
    """Return [(sink, neighbor), ...] of the cached interests."""
    return [[(gradient.sink, gradient.neighbor) for gradient in entry.gradients] for entry in node.cache.entries]


def reasons(events):
    """Return the reasons for which messages were dropped, in order."""
    return [event.detail for event in events if isinstance(event, Dropped)]


def of(kind, events):
    """Return the events of one kind."""
    return [event for event in events if isinstance(event, kind)]
