"""Fill the memory of a node of coded diffusion through its own interface: an event that it decodes.

Theory of operation
    A node receives coded packets until it has decoded an event. The node stores all rows of the decoder's matrix until
    a timer fires. Decoding also allocates temporary objects: the last frame and its message, the event's bytes and
    attributes. They are returned with the node, because a mote has all of them in memory at the same time. The node's
    clock is at one hour, because integers above 2^30 take memory of their own on a mote.

This file runs on a mote (hardware/memory.py).
"""

from workbench.attributes.model import GE, IS, Attribute, with_payload
from workbench.coding.rlnc import Encoder, split
from workbench.draws import Stream
from workbench.protocols.coded_diffusion import wire
from workbench.protocols.coded_diffusion.node import CodedDiffusionNode
from workbench.protocols.contract import Settings

NOW_US = 3600 * 1000000
TEMP = 51


def empty_node(settings):
    """Return a node that has a subscription and has received no frame."""
    node = CodedDiffusionNode(1, Settings(settings), Stream(1))
    node.start(NOW_US)
    node.subscribe((Attribute(TEMP, GE, 2500),), NOW_US)
    return node


def decoding_node(settings, payload_B):
    """Return [node, temporary objects of decoding...]; the node has decoded an event of `payload_B` bytes."""
    node = empty_node(settings)
    generation_size, order = settings["generation_size"], settings["field"]
    attributes = with_payload((Attribute(TEMP, IS, 2600),), bytes([index & 255 for index in range(payload_B)]))
    data = wire.coded_bytes(9, 0, attributes)
    encoder = Encoder(split(data, generation_size, order), order, Stream(2))
    while not _has_decoded(node):
        vector, information = encoder.encode()
        length_B = len(data) - wire.CHECKSUM_B
        frame = wire.encode_coded(wire.Coded(9, 0, 3, generation_size, order, length_B, vector, information))
        node.receive(frame, 4, NOW_US)
        node.take_events()
    return [node, frame, wire.decode(frame), data, wire.coded_attributes(9, 0, data)]


def _has_decoded(node):
    return (9, 0) in node.generations and node.generations[(9, 0)].decoder.is_complete
