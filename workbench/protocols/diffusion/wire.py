"""Encode and decode TinyDiffusion's frames: interest and data messages.

Layout (little-endian, packed, as on the motes; this resolves gap A9 of the original's description)
    The table of fields in ``dissector.py`` describes it; docs/FRAMES.md shows it. Every frame begins with one byte, the
    packet type (TinyOS's AM type), which is not part of the message.

    The two highest bits of a data message's number of attributes (AttNum) are flags. AGGREGATE: the message contains
    several readings, one after the other. LISTED: between header and attributes is the list of the sinks that other
    copies of the message serve. A message without a list is for all sinks, so with one sink no frame has a list.

    A reinforcement is an interest message that is sent to one neighbor only (A19), so it has no type of its own.

Limits
    A profile is the largest size of a message without the type byte: ``strict`` is TinyOS's 29-byte payload, which
    holds exactly four attributes after an interest's header; ``wide`` is 60 bytes.

Differs from the original in
    A26  a bit of AttNum marks an aggregate. In the original a sink infers that from a repeated first key, and splits a
         single reading that has its first key twice.
    A11  data has IS attributes only; with ``matching="two-way"`` it has constraints, too.
    --   another bit announces the list of sinks. A data message has at most 63 attributes.

This file runs on a mote too (MicroPython's subset of Python).
"""

import struct
from collections import namedtuple

from workbench.attributes.wire import decode_attributes, decode_readings, encode_attributes, encode_readings
from workbench.errors import DecodeError, EncodeError

INTEREST = 1
DATA = 2

# profile -> size of the largest message (bytes)
PROFILES = {"strict": 29, "wide": 60}

Interest = namedtuple("Interest", ("sequence", "sink", "round", "previous_hop", "ttl", "expiration_s", "attributes"))
Data = namedtuple("Data", ("sequence", "source", "previous_hop", "ttl", "is_aggregate", "listed_sinks", "attributes"))

INTEREST_LAYOUT = "<BIHBHBHB"
DATA_LAYOUT = "<BIHHBB"
U8 = 0xFF
U16 = 0xFFFF
U32 = 0xFFFFFFFF
AGGREGATE = 0x80  # flags of a data message's AttNum
LISTED = 0x40
MOST_ATTRIBUTES = LISTED - 1  # of a data message
INTEREST_HEADER_B = 13
DATA_HEADER_B = 10


def encode_interest(interest, profile="wide"):
    """Encode an Interest and return its frame (bytes).

    ``profile``: "strict" (29 bytes) or "wide" (60 bytes), the largest size without the type byte. Raises EncodeError if
    the message does not fit the profile or a field is out of range.
    """
    sequence, sink, round_, previous_hop, ttl, expiration_s, attributes = interest
    _check_range("interest", interest, (U32, U16, U8, U16, U8, U16), U8)
    fields = (INTEREST, sequence, sink, round_, previous_hop, ttl, expiration_s, len(attributes))
    header = struct.pack(INTEREST_LAYOUT, *fields)
    return _check_size(header + encode_attributes(attributes), profile, "interest")


def encode_data(data, profile="wide", matching="any"):
    """Encode a Data message and return its frame; if ``data.listed_sinks`` is empty, the frame has no list of sinks.

    ``profile``: "strict" (29 bytes) or "wide" (60 bytes), the largest size without the type byte. ``matching``: the
    parameter of the protocol; data may have constraints only with "two-way". Raises EncodeError if the message does
    not fit the profile or a field is out of range.
    """
    sequence, source, previous_hop, ttl, is_aggregate, listed_sinks, attributes = data
    _check_range("data", data, (U32, U16, U16, U8, 1), MOST_ATTRIBUTES)
    count_and_flags = len(attributes) | (AGGREGATE if is_aggregate else 0) | (LISTED if listed_sinks else 0)
    header = struct.pack(DATA_LAYOUT, DATA, sequence, source, previous_hop, ttl, count_and_flags)
    if listed_sinks:
        if len(listed_sinks) > U8:
            raise EncodeError("the data message lists %d sinks; it may list at most %d" % (len(listed_sinks), U8))
        header += bytes((len(listed_sinks),))
    for sink in listed_sinks:
        if not 0 <= sink <= U16:
            raise EncodeError(
                "the data message lists sink %r; the address of a sink must be from 0 to %d" % (sink, U16)
            )
        header += bytes((sink & U8, sink >> 8))
    return _check_size(header + encode_readings(attributes, matching == "two-way"), profile, "data")


def max_listed_sinks(size, profile):
    """Return how many sinks a data message can list.

    ``size``: size of the message's attributes (bytes); ``profile``: "strict" or "wide", which limits a message's size.
    """
    return max(0, (PROFILES[profile] - DATA_HEADER_B - 1 - size) // 2)


def _check_range(name, message, largest, most_attributes):
    # Checked here, as MicroPython's struct silently packs the low bits of a value that is too large.
    for i in range(len(largest)):
        if not 0 <= message[i] <= largest[i]:
            raise EncodeError(
                "the %s message %r has %r in field %d (counted from 0); this field must be from 0 to %d"
                % (name, message, message[i], i, largest[i])
            )
    if len(message[-1]) > most_attributes:
        raise EncodeError(
            "the %s message has %d attributes; it may have at most %d" % (name, len(message[-1]), most_attributes)
        )


def _check_size(frame, profile, name):
    largest = PROFILES[profile]
    if len(frame) - 1 > largest:
        raise EncodeError(
            "%s message of %d bytes does not fit; with profile=%r it may have at most %d: use fewer attributes%s"
            % (
                "an interest" if name == "interest" else "a " + name,
                len(frame) - 1,
                profile,
                largest,
                " or profile='wide'" if profile == "strict" else "",
            )
        )
    return frame


def decode(frame, matching="any"):
    """Decode a frame and return its Interest or Data message. Raises DecodeError if the bytes are not valid.

    ``matching``: the parameter of the protocol; data may have constraints only with "two-way".
    """
    if len(frame) > 0 and frame[0] == INTEREST:
        if len(frame) < 1 + INTEREST_HEADER_B:
            raise DecodeError("the interest has %d bytes and ends within its header" % len(frame))
        _, sequence, sink, round_, previous_hop, ttl, expiration_s, count = struct.unpack_from(
            INTEREST_LAYOUT, frame, 0
        )
        attributes = decode_attributes(frame, 1 + INTEREST_HEADER_B, count)
        return Interest(sequence, sink, round_, previous_hop, ttl, expiration_s, attributes)
    if len(frame) > 0 and frame[0] == DATA:
        if len(frame) < 1 + DATA_HEADER_B:
            raise DecodeError("the data message has %d bytes and ends within its header" % len(frame))
        _, sequence, source, previous_hop, ttl, count = struct.unpack_from(DATA_LAYOUT, frame, 0)
        offset, listed_sinks = 1 + DATA_HEADER_B, ()
        if count & LISTED:
            if len(frame) <= offset or len(frame) < offset + 1 + 2 * frame[offset]:
                raise DecodeError("the data message has %d bytes and ends within its list of sinks" % len(frame))
            if frame[offset] == 0:
                raise DecodeError(
                    "the data message has an empty list of sinks; without listed sinks the flag LISTED must not be set"
                )
            list_end = offset + 1 + 2 * frame[offset]
            listed_sinks = tuple([frame[i] | frame[i + 1] << 8 for i in range(offset + 1, list_end, 2)])
            offset = list_end
        attributes = decode_readings(frame, offset, count & MOST_ATTRIBUTES, matching == "two-way")
        return Data(sequence, source, previous_hop, ttl, count >= AGGREGATE, listed_sinks, attributes)
    raise DecodeError(
        "the frame begins with %r; the first byte of an interest is 1, that of a data message 2" % (bytes(frame[:1]),)
    )


def describe(frame, broadcast=True):
    """Return (message name, origin, sequence number) of a frame that this module encoded, for a trace.

    ``broadcast``: whether the frame is broadcast; an interest message in a unicast frame is a reinforcement.
    """
    sequence, origin = struct.unpack_from("<IH", frame, 1)
    if frame[0] == DATA:
        return "data", origin, sequence
    return ("interest" if broadcast else "reinforcement"), origin, sequence
