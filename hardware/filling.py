"""Fill the memory of a TinyDiffusion node through its own interface, with received and published messages.

Theory of operation
    A node receives the interests of several sinks, each from every neighbor, and the data of several sources, which
    match all these interests. It also publishes samples that match no interest. It stores as much of all this as its
    settings allow. The node's clock is at one hour, because integers above 2^30 take memory of their own on a mote.

This file runs on a mote (hardware/memory.py).
"""

from workbench.attributes.model import GE, IS, NE, Attribute
from workbench.draws import Stream
from workbench.protocols.contract import Settings
from workbench.protocols.diffusion import wire
from workbench.protocols.diffusion.node import DiffusionNode

NOW_US = 3600 * 1000000


def empty_node(settings):
    """Return a new node with these settings, which has received no frame."""
    return DiffusionNode(1, Settings(settings), Stream(1))


def used_node(settings):
    """Return a node that stores as much as after some minutes in a small network."""
    return _fill_node(empty_node(settings), sinks=3, neighbors=3, sources=4, messages=2, samples=2)


def full_node(settings):
    """Return a node whose lists are full if they have the default sizes or smaller ones."""
    return _fill_node(empty_node(settings), sinks=60, neighbors=12, sources=12, messages=3, samples=40)


def _fill_node(node, sinks, neighbors, sources, messages, samples):
    node.start(NOW_US)
    for sink in range(100, 100 + sinks):
        attributes = (Attribute(51, GE, 1000 + sink), Attribute(53, NE, 0))
        for neighbor in range(10, 10 + neighbors):
            interest = wire.Interest(sink, sink, 0, neighbor, 50, 65535, attributes)
            _receive_frame(node, wire.encode_interest(interest), neighbor, True)
    for message in range(messages):
        for source in range(300, 300 + sources):
            attributes = (Attribute(51, IS, 2600), Attribute(53, IS, source))
            neighbor = 10 + source % neighbors
            _receive_frame(
                node, wire.encode_data(wire.Data(message, source, neighbor, 50, False, (), attributes)), neighbor, False
            )
    for value in range(samples):
        node.publish((Attribute(52, IS, value),), NOW_US)
        _discard_output(node)
    return node


def _receive_frame(node, frame, neighbor, broadcast):
    node.receive(frame, neighbor, NOW_US, broadcast)
    _discard_output(node)


def _discard_output(node):
    """Discard the node's events and outgoing frames, as a driver does after each call."""
    node.take_events()
    node.take_frames()
