"""Captures of IEEE 802.15.4 as a table, one row for each packet: `read_capture`.

Columns
    time_us      int64    time in µs since 1970, or since the start of a simulated run; null for a packet without a time
    interface    text     name of the interface in the capture, or ""
    link_type    int32    195 (with checksum), 230 (without) or 283 (TAP header)
    frame        binary   the MAC frame, without TAP header and checksum
    rssi_dBm     float    from the TAP header, else null
    lqi          int32    from the TAP header, else null
    channel      int32    from the TAP header, else null
    fcs_valid    bool     whether the checksum (16 bits) fits the frame; null if the capture has no checksum
    pan          int32    from the MAC header: PAN id, sequence number and addresses; null if absent
    sequence     int32
    source       uint64   65535 is the broadcast address
    destination  uint64
    payload      binary   the bytes after the MAC header, null if the frame is not a MAC frame with addresses
    comment      text     the packet's comment, as `Run.save_pcapng` writes it, or ""

Limits
    Checksums of four bytes (TAP, FCS type 2) are removed, and not checked. The payload of a secured frame begins with
    its auxiliary security header. Addresses of frames of version 2 (IEEE 802.15.4-2015) are not read.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from workbench.captures.blocks import Packet, packets
from workbench.captures.ieee802154 import FCS_B, TAP, WITH_FCS, WITHOUT_FCS, fcs, read_addresses, read_tap
from workbench.errors import DataError

SCHEMA = pa.schema(
    [
        ("time_us", pa.int64()),
        ("interface", pa.string()),
        ("link_type", pa.int32()),
        ("frame", pa.binary()),
        ("rssi_dBm", pa.float32()),
        ("lqi", pa.int32()),
        ("channel", pa.int32()),
        ("fcs_valid", pa.bool_()),
        ("pan", pa.int32()),
        ("sequence", pa.int32()),
        ("source", pa.uint64()),
        ("destination", pa.uint64()),
        ("payload", pa.binary()),
        ("comment", pa.string()),
    ]
)
_ROWS_PER_BATCH = 100_000
_LARGEST_US = (1 << 63) - 1


def read_capture(path: str | os.PathLike[str]) -> pa.Table:
    """Return the frames of a capture (pcapng or pcap) as a table; `workbench.captures.reading` lists the columns.

    Each packet gives a row, whatever its bytes; columns of fields that the packet lacks are null. Raises DataError,
    with the path, for a file that is not a capture or is damaged, and for a packet of another link type than 195, 230
    and 283.
    """
    batches: list[pa.RecordBatch] = []
    rows: list[dict[str, Any]] = []
    try:
        with Path(path).open("rb") as file:
            for row in frame_rows(packets(file)):
                rows.append(row)
                if len(rows) == _ROWS_PER_BATCH:
                    batches.append(pa.RecordBatch.from_pylist(rows, SCHEMA))
                    rows.clear()
    except DataError as error:
        raise DataError(f"{os.fspath(path)}: {error}") from None
    batches.append(pa.RecordBatch.from_pylist(rows, SCHEMA))
    return pa.Table.from_batches(batches, SCHEMA)


def frame_rows(captured: Iterator[Packet]) -> Iterator[dict[str, Any]]:
    """Yield {column: value} for each packet of a capture; columns that are null may be missing.

    ``captured``: the packets. Raises DataError for a packet of another link type than 195, 230 and 283.
    """
    for number, packet in enumerate(captured, 1):
        if packet.link_type not in (WITH_FCS, WITHOUT_FCS, TAP):
            raise DataError(
                f"packet {number} has link type {packet.link_type}; it must be one of IEEE 802.15.4: {WITH_FCS}, "
                f"{WITHOUT_FCS} or {TAP}"
            )
        yield _make_row(packet)


def _make_row(packet: Packet) -> dict[str, Any]:
    row: dict[str, Any] = {
        "interface": packet.interface,
        "link_type": packet.link_type,
        "comment": packet.comment,
    }
    if 0 <= packet.time_us <= _LARGEST_US:
        row["time_us"] = packet.time_us
    frame, fcs_B = packet.data, FCS_B if packet.link_type == WITH_FCS else 0
    if packet.link_type == TAP:
        tap = read_tap(frame)
        if tap is None:
            return {**row, "frame": frame}
        row |= {"rssi_dBm": tap.rssi_dBm, "lqi": tap.lqi, "channel": tap.channel}
        frame, fcs_B = frame[tap.size_B :], tap.fcs_B
    if 0 < fcs_B <= len(frame):
        frame, checksum = frame[:-fcs_B], frame[-fcs_B:]
        if fcs_B == FCS_B:
            row["fcs_valid"] = struct.pack("<H", fcs(frame)) == checksum
    row["frame"] = frame
    addresses = read_addresses(frame)
    if addresses is not None:
        row |= {
            "pan": addresses.pan,
            "sequence": addresses.sequence,
            "source": addresses.source,
            "destination": addresses.destination,
            "payload": frame[addresses.end :],
        }
    return row
