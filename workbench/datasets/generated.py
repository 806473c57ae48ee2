"""Synthetic logs in the formats of real ones, for lessons and tests without a data set.

The logs have the faults of real ones: foreign packets, wrong checksums, impossible counters, truncated lines, defective
sensors. The same arguments give the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from workbench import draws, purposes

_BEGIN = datetime(2026, 1, 5, 8, tzinfo=UTC)
_PACKET_S = 0.1
_RAW_HEADER = (
    "timestamp,mac,frequency,length,rssi,crc,expected,srcmac,transctr,pkctr,txnumpk,txpower,txifdur,txlength,txfillbyte"
)
_LENGTH_B = 100
_FOREIGN, _BROKEN, _IMPOSSIBLE = 0.004, 0.006, 0.002  # shares of the rows of a raw log
_CUT, _WILD = 0.002, 0.003  # shares of the lines of a log of readings


def make_raw_log(
    path: str | os.PathLike[str],
    topology: Any,
    packets: int = 50,
    channels: tuple[int, ...] = (11, 26),
    seed: int = 1,
) -> Path:
    """Write the log that the tool Mercator would record in a network, a line for each received packet; return ``path``.

    Each arc of ``topology`` has a delivery ratio (``pdr``). On each channel, one node after the other sends ``packets``
    packets, and the other nodes log those that they receive. On channels above 20, the delivery ratios are a tenth
    lower. ``seed`` determines the losses and the faulty lines.
    """
    path = Path(path)
    path.write_text(
        "\n".join([_RAW_HEADER, *_generate_lines(topology, packets, channels, seed)]) + "\n", encoding="ascii"
    )
    return path


def make_readings(
    path: str | os.PathLike[str], topology: Any, field: Any, every_s: float = 30.0, hours: float = 1.0, seed: int = 1
) -> Path:
    """Write readings of a field (`workbench.SensorField`) at the nodes' positions, in the Intel Lab's format.

    For ``hours`` hours, each node of ``topology`` has a reading every ``every_s`` seconds. Each line has date, time,
    epoch, mote, temperature (the field's value), humidity, light and voltage. ``seed`` determines the faulty lines.
    Returns ``path``.
    """
    draw = draws.Stream(draws.make_key(seed, purposes.LOG, 1))
    positions_m = dict(topology.nodes(data="pos"))
    extent_m = (max(x for x, _ in positions_m.values()), max(y for _, y in positions_m.values()))
    log_lines = []
    for epoch in range(round(hours * 3600 / every_s)):
        moment = _BEGIN + timedelta(seconds=epoch * every_s)
        for node, (x_m, y_m) in positions_m.items():
            reading = field.value(node, x_m, y_m, epoch * every_s, extent_m)
            reading = 122.153 if draw.uniform() < _WILD else reading
            line = f"{moment:%Y-%m-%d %H:%M:%S.%f} {epoch} {node} {reading:.2f} {60 - reading:.2f} 45.08 2.69"
            log_lines.append(line[: len(line) // 2] if draw.uniform() < _CUT else line)
    path = Path(path)
    path.write_text("\n".join(log_lines) + "\n", encoding="ascii")
    return path


def _generate_lines(topology: Any, packets: int, channels: tuple[int, ...], seed: int) -> Iterator[str]:
    draw = draws.Stream(draws.make_key(seed, purposes.LOG))
    transaction, at_s = 0, 0.0
    for channel in channels:
        for sender in topology:
            transaction += 1
            for packet in range(packets):
                at_s += _PACKET_S
                for receiver, arc in topology[sender].items():
                    if draw.uniform() < arc["pdr"] * (0.9 if channel > 20 else 1.0):
                        rssi_dBm = round(-91 + 22 * arc["pdr"] + 3 * draw.uniform())
                        yield _draw_line(draw, at_s, receiver, channel, rssi_dBm, sender, transaction, packet, packets)


def _draw_line(
    draw: Any, at_s: float, receiver: int, channel: int, rssi_dBm: int, sender: int, transaction: int, packet: int,
    packets: int,
) -> str:  # fmt: skip
    """Return the log line of a received packet, or at random that of a foreign or damaged packet.

    ``draw``: the source of random numbers. ``at_s``: seconds since the beginning of the log. ``transaction``: number of
    the sender's turn. ``packet``: number of the packet in this turn. ``packets``: how many packets each turn has.
    """
    moment = f"{_BEGIN + timedelta(seconds=at_s):%Y-%m-%d_%H.%M.%S}"
    crc, expected, length_B, source, flaw_draw = 1, 1, _LENGTH_B, _format_eui64(sender), draw.uniform()
    if flaw_draw < _FOREIGN:
        expected, length_B, source = 0, 27, _format_eui64(4000 + receiver)
    elif flaw_draw < _FOREIGN + _BROKEN:
        crc = 0
    elif flaw_draw < _FOREIGN + _BROKEN + _IMPOSSIBLE:
        packet = 0xFFFF - packet
    settings = (transaction, packet, packets, 0, round(1000 * _PACKET_S), _LENGTH_B, "0x0a")
    return ",".join(
        map(str, (moment, _format_eui64(receiver), channel, length_B, rssi_dBm, crc, expected, source, *settings))
    )


def _format_eui64(node: int) -> str:
    """Return the EUI-64 of a node in the form of Mercator's logs: eight bytes in hex, joined by "-"."""
    return f"14-15-92-00-12-91-{node >> 8:02x}-{node & 255:02x}"
