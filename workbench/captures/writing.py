"""The capture of a run for Wireshark: ``run.save_pcapng(path)``.

Contents
    section     its comments are the scenario as JSON, in pieces of at most 65,000 bytes
    interfaces  one for each node, in ascending order of addresses; or only that of ``node``
    packets     one for each transmission, at the sender's interface (outbound), and one for each receiver that received
                or lost it, at the receiver's interface (inbound). All packets of one transmission have its number as
                packet id. Their time is the end of the airtime, in µs from the start, as in the trace
    comment     of each packet: "sent ...", "received ..." or "lost: REASON ...", with the message and its origin
    flags       inbound or outbound; a lost packet has the flag of a checksum error, which Wireshark shows and filters.
                The bytes of a lost frame are those that were sent, so that Wireshark decodes them

    A frame of the simulator has no MAC header. The capture adds one, with the PAN id of the protocol
    (`workbench.captures.ieee802154.pan_id`), the nodes' addresses, and a correct checksum.

    LQI is the delivery ratio of the arc at the time of the packet, in steps of 1/255. RSSI is 0 dBm, less the path
    loss. It is present only if the radio has ``capture_dB``, as other radios have no model of signal strength.

Cost
    The frames come from a replay (`workbench.analysis.frames`), and are written during it. So the memory does not
    depend on their number, except for 21 bytes a transmission with which the replay is checked.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, BinaryIO

from workbench.analysis.frames import replay_radio
from workbench.captures import blocks, ieee802154
from workbench.errors import ParameterError
from workbench.protocols.contract import NOBODY
from workbench.sim.channel import Channel
from workbench.sim.run import Run
from workbench.topology.propagation import Propagation

CHANNEL = 26  # the radio model has one channel; motes with TinyOS and Contiki use this one
_COMMENT_B = 65_000
_OUTBOUND, _INBOUND, _CHECKSUM_ERROR = 0b10, 0b01, 1 << 24
_AT_1_M_dBm = Propagation().transmit_power_dBm - Propagation().loss_1m_dB


def save_pcapng(run: Run, path: str | os.PathLike[str], node: int | None = None) -> Path:
    """Write the frames of a run as a capture for Wireshark, and return its path.

    `workbench.captures.writing` describes the packets. ``node``: write only the frames that this node sent, received or
    lost; None: those of all nodes. The file appears when it is complete. Raises ParameterError if ``node`` is not in
    the network, and ScenarioError if the run has no trace or cannot be replayed.
    """
    addresses = sorted(run.scenario.topology)
    if node is not None and (isinstance(node, bool) or node not in addresses):
        raise ParameterError(f"node is {node!r:.60}; it must be one of the network's {len(addresses)} nodes, or None")
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with draft.open("wb") as file:
            writer = _Writer(file, run.scenario, addresses if node is None else [node])
            replay_radio(run, writer.take)
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    return path


class _Writer:
    """A writer of a capture: it writes a packet for each row of the trace that concerns a radio."""

    def __init__(self, file: BinaryIO, scenario: Any, addresses: list[int]) -> None:
        self._write = file.write
        self._interfaces = {address: number for number, address in enumerate(addresses)}
        self._pan = ieee802154.pan_id(scenario.protocol)
        self._is_short = max(scenario.topology) <= ieee802154.LARGEST_SHORT
        self._number = -1  # of the transmission
        self._sequences: dict[int, int] = {}  # sender -> number of its frames so far
        self._mac_frame = b""
        self._text = ""
        scenario_json = scenario.to_json().encode()
        pieces = [scenario_json[at : at + _COMMENT_B] for at in range(0, len(scenario_json), _COMMENT_B)]
        self._write(blocks.section_block(pieces))
        positions = dict(scenario.topology.nodes(data="pos"))
        for address in addresses:
            description = _format_position(positions.get(address))
            self._write(blocks.interface_block(ieee802154.TAP, f"node {address}", description))

    def take(self, row: tuple[Any, ...], frame: bytes, channel: Channel) -> None:
        """Write the packet of a trace row "sent", "received" or "lost", if the row's node is in the capture.

        ``frame``: the bytes of the transmitted frame. ``channel``: the channel at the time of the row.
        """
        time_us, node, event, peer, message, origin, sequence, _, _, detail = row
        if event == "sent":
            self._number += 1
            count = self._sequences[node] = self._sequences.get(node, -1) + 1
            destination = None if peer == NOBODY else peer
            self._mac_frame = ieee802154.data_frame(self._pan, count, destination, node, self._is_short, bytes(frame))
            number_text = "" if origin == NOBODY else f", origin {origin}, number {sequence}"
            self._text = f"{message or 'frame'}{number_text}"
        if node not in self._interfaces:
            return
        if event == "sent":
            to = "all" if peer == NOBODY else f"node {peer}"
            comment, flags, rssi_dBm, lqi = f"sent to {to}: {self._text}", _OUTBOUND, None, None
        else:
            fate = "received" if event == "received" else f"lost: {detail};"
            comment, flags = f"{fate} from node {peer}: {self._text}", _INBOUND
            flags |= 0 if event == "received" else _CHECKSUM_ERROR
            rssi_dBm, lqi = _find_link_quality(channel, peer, node)
        options = [
            (blocks.COMMENT, comment.encode()),
            (blocks.FLAGS, flags.to_bytes(4, "little")),
            (blocks.PACKET_ID, self._number.to_bytes(8, "little")),
        ]
        data = ieee802154.tap_header(CHANNEL, rssi_dBm, lqi) + self._mac_frame
        self._write(blocks.packet_block(self._interfaces[node], time_us, data, options))


def _format_position(position: Any) -> str:
    return "" if position is None else f"at ({position[0]:.1f} m, {position[1]:.1f} m)"


def _find_link_quality(channel: Channel, sender: int, receiver: int) -> tuple[float | None, int | None]:
    """Return (RSSI in dBm, LQI from 0 to 255) of the arc from ``sender`` to ``receiver`` at the channel's current time.

    A value that the radio model does not have is None.
    """
    index = channel.kernel.index
    ends = index[sender], index[receiver]
    arc = channel.arcs.find(*ends)
    strength_ddB = channel.strengths_ddB.get(ends)
    rssi_dBm = None if strength_ddB is None else _AT_1_M_dBm + strength_ddB / 10
    return rssi_dBm, None if arc is None else round(255 * min(1.0, max(0.0, arc[1])))
