"""Reading of captures: those of sniffers, and any bytes."""

import io
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.captures.wireshark import needs_tshark, tshark
from tests.families import examples
from workbench.captures import blocks, read_capture
from workbench.captures.ieee802154 import (
    TAP,
    WITH_FCS,
    WITHOUT_FCS,
    data_frame,
    fcs,
    read_addresses,
    read_tap,
    tap_header,
)
from workbench.captures.reading import frame_rows
from workbench.errors import DataError

ACKNOWLEDGEMENT = bytes.fromhex("02006a")  # of IEEE 802.15.4-2006, 7.2.1.9
FRAME = data_frame(0xABCD, 7, 2, 1, True, b"payload")


def pcap(link_type, packets, order="<", magic=0xA1B2C3D4):
    """Return a pcap file with (seconds, ticks, bytes) of each packet."""
    head = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 65535, link_type)
    return head + b"".join(
        struct.pack(order + "IIII", s, ticks, len(data), len(data)) + data for s, ticks, data in packets
    )


def pcapng(link_type, data, order="<", name="sniffer", resolution=b"\x06"):
    """Return a pcapng file of one packet at 2 s, in any byte order."""
    ticks = 2 * (2 ** (resolution[0] & 127) if resolution[0] & 128 else 10 ** resolution[0])

    def block(kind, body):
        body += bytes(-len(body) % 4)
        size = struct.pack(order + "I", len(body) + 12)
        return struct.pack(order + "I", kind) + size + body + size

    options = struct.pack(order + "HH", 2, len(name)) + name.encode() + bytes(-len(name) % 4)
    options += struct.pack(order + "HH", 9, 1) + resolution + bytes(3) + bytes(4)
    return b"".join(
        [
            block(blocks.SECTION, struct.pack(order + "IHHq", blocks.BYTE_ORDER, 1, 0, -1)),
            block(blocks.INTERFACE, struct.pack(order + "HHI", link_type, 0, 0) + options),
            block(0x0BAD, b"an unknown block"),
            block(6, struct.pack(order + "IIIII", 0, ticks >> 32, ticks & 0xFFFFFFFF, len(data), len(data)) + data),
        ]
    )


def rows_of(data):
    return list(frame_rows(blocks.packets(io.BytesIO(data))))


def test_checksum_is_that_of_the_standard():
    assert fcs(ACKNOWLEDGEMENT) == 0x79E4


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize(("magic", "ticks"), [(0xA1B2C3D4, 500_000), (0xA1B23C4D, 500_000_000)])
def test_pcap_of_either_byte_order_and_resolution(order, magic, ticks):
    (row,) = rows_of(pcap(WITH_FCS, [(3, ticks, FRAME)], order, magic))
    assert row["time_us"] == 3_500_000 and row["fcs_valid"] is True
    assert (row["pan"], row["sequence"], row["source"], row["destination"]) == (0xABCD, 7, 1, 2)
    assert row["payload"] == b"payload"


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("resolution", [b"\x06", b"\x09", b"\x00", b"\x94"])
def test_pcapng_of_either_byte_order_and_resolution(order, resolution):
    (row,) = rows_of(pcapng(WITHOUT_FCS, FRAME[:-2], order, resolution=resolution))
    assert row["time_us"] == 2_000_000 and row["interface"] == "sniffer" and "fcs_valid" not in row
    assert row["frame"] == FRAME[:-2] and row["source"] == 1


def test_damaged_checksum_is_seen():
    (row,) = rows_of(pcap(WITH_FCS, [(0, 0, FRAME[:-1] + b"\0")]))
    assert row["fcs_valid"] is False and row["payload"] == b"payload"


def test_tap_header_has_signal_and_channel():
    (row,) = rows_of(pcap(TAP, [(0, 0, tap_header(15, -71.5, 200) + FRAME)]))
    assert (row["rssi_dBm"], row["lqi"], row["channel"], row["fcs_valid"]) == (-71.5, 200, 15, True)
    assert row["frame"] == FRAME[:-2]


def test_extended_and_absent_addresses():
    frame = struct.pack("<HBHQHQ", 0xCC01, 9, 0x1111, 0xA1A2A3A4A5A6A7A8, 0x2222, 5) + b"x"
    addresses = read_addresses(frame)
    assert addresses == (0x1111, 5, 0xA1A2A3A4A5A6A7A8, 9, len(frame) - 1)
    assert read_addresses(ACKNOWLEDGEMENT) == (None, None, None, 0x6A, 3)
    assert read_addresses(b"\x01\x20\x00") is None  # version 2


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "begins with no bytes"),
        (b"PK\3\4...", "begins with 50 4b 03 04"),
        (pcap(1, [(0, 0, b"")]), "packet 1 has link type 1"),
        (pcap(WITH_FCS, [(0, 0, FRAME)])[:-1], "ends within packet 1"),
        (pcap(WITH_FCS, [(0, 0, FRAME)])[:30], "ends within the header of packet 1"),
        (pcapng(WITH_FCS, FRAME)[:-1], "ends within block 4"),
        (pcapng(WITH_FCS, FRAME)[:-4] + b"\0\0\0\1", "block 4 is damaged: its two lengths differ"),
    ],
)
def test_files_that_are_not_captures_are_refused(data, message, tmp_path):
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(DataError, match=message):
        read_capture(tmp_path / "file")


@settings(max_examples=examples(500))
@given(st.binary(max_size=200))
def test_any_bytes_of_a_packet_give_a_row(data):
    for link_type in (WITH_FCS, WITHOUT_FCS, TAP):
        (row,) = rows_of(pcap(link_type, [(0, 0, data)]))
        assert isinstance(row["frame"], bytes)
    read_tap(data), read_addresses(data)


@settings(max_examples=examples(500))
@given(
    st.sampled_from(
        [pcapng(TAP, tap_header(26, -50, 9) + FRAME), pcapng(WITH_FCS, FRAME, ">"), pcap(TAP, [(0, 0, FRAME)])]
    ),
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 255)), max_size=4),
    st.integers(0, 300),
)
def test_damaged_captures_give_rows_or_an_error(data, changes, end):
    damaged = bytearray(data)
    for at, byte in changes:
        damaged[at % len(damaged)] = byte
    try:
        rows_of(bytes(damaged[:end]))
    except DataError as error:
        assert "\n" not in str(error)


@settings(max_examples=examples(500))
@given(st.binary(max_size=100))
def test_any_bytes_are_a_capture_or_an_error(data):
    for begin in (b"", b"\x0a\x0d\x0d\x0a", b"\xa1\xb2\xc3\xd4"):
        try:
            rows_of(begin + data)
        except DataError as error:
            assert "\n" not in str(error)


@needs_tshark
def test_wireshark_reads_the_same_addresses(tmp_path):
    path = tmp_path / "a.pcap"
    frames = [data_frame(5, n, None if n % 2 else n, n + 1, n < 3, b"") for n in range(6)]
    path.write_bytes(pcap(WITH_FCS, [(n, 0, frame) for n, frame in enumerate(frames)]))
    shown = tshark("-r", path, "-T", "fields", "-e", "wpan.fcs_ok", "-e", "wpan.src16", "-e", "wpan.src64")
    for line, row in zip(shown.splitlines(), read_capture(path).to_pylist(), strict=True):
        is_checked, short, extended = line.split("\t")
        assert is_checked == "1" and row["fcs_valid"]
        assert int(short or extended.replace(":", ""), 16) == row["source"]
