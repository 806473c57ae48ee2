"""Pollution attacks on coded diffusion: one hostile node sends noise that other nodes combine and forward.

    PollutedDiffusion(hostile=17, ...)    coded diffusion in which node 17 sends noise

Theory of operation
    The hostile node follows the protocol, but the information vectors of its packets are random. Headers, encoding
    vectors and checksums of frames are correct, so a single packet does not reveal the attack. A node is called
    polluted if it dropped a generation as ``corrupt``.
"""

from __future__ import annotations

from typing import Any

from workbench.coding.fields import field as field_of
from workbench.coding.rlnc import CodedPacket, draw_coefficients
from workbench.protocols.coded_diffusion import PARAMETERS, CodedDiffusion
from workbench.protocols.coded_diffusion.node import CodedDiffusionNode
from workbench.protocols.protocol import Parameter

HOSTILE = Parameter("hostile", 0, 0, 0xFFFFFFFF, "node", "number of the hostile node; any node will do")


class HostileNode(CodedDiffusionNode):
    """A node of coded diffusion whose packets have random information vectors."""

    def _send_coded_packet(self, event_id: Any, hops: int, header: Any, packet: Any) -> None:
        field: Any = field_of(header[1])
        symbols = 8 * len(packet.information_vector) // field.symbol_bits
        noise = bytes(field.pack(draw_coefficients(field, symbols, self.random)))
        super()._send_coded_packet(event_id, hops, header, CodedPacket(packet.encoding_vector, noise))


class PollutedDiffusion(CodedDiffusion):
    """Coded diffusion in which the node at the address ``hostile`` sends packets with random information vectors.

    All other settings are those of `CodedDiffusion`.
    """

    parameters = (*PARAMETERS, HOSTILE)
    fast = ""
    why_not_fast = "the packets of a hostile node need information vectors, which the fast engine does not compute"
    why_not_on_motes = "a hostile node is for experiments in the simulator"

    def make_node(self, address: int, random: Any) -> CodedDiffusionNode:
        """Return a new node: a HostileNode at the address ``hostile``, a CodedDiffusionNode at all other addresses."""
        kind = HostileNode if address == self.hostile else CodedDiffusionNode
        return kind(address, self, random)

    def named_nodes(self) -> dict[str, tuple[int, ...]]:
        """Return {"hostile": (address of the hostile node,)}.

        A scenario raises an error if its network lacks this node.
        """
        return {"hostile": (self.hostile,)}
