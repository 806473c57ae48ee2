"""TinyDiffusion's frames: bytes <-> interest and data messages.

Layout (little-endian, packed, as on the motes; A9)
    Every frame begins with one byte, the packet type (TinyOS's AM type): INTEREST 1, DATA 2. Then

    interest   sequence u32, sink u16, round u8, previous hop u16, ttl u8, expiration u16 (s), AttNum u8     13 bytes
    data       sequence u32, source u16, previous hop u16, ttl u8, flags and AttNum u8                       10 bytes
    list       only if its flag is set: count u8, then a sink u16 each                              1 + 2 x count
    attribute  as `attributes/wire.py` lays it out                                                        4 bytes

    The two highest bits of a data message's AttNum are flags. AGGREGATE: the message holds several readings, one after
    the other. LISTED: between header and attributes is the list of the sinks that other copies of the message serve. A
    message without a list is for all sinks, so with one sink no frame has a list.

    A reinforcement is an interest message that is sent to one neighbor alone (A19), so it has no type of its own.

Limits
    A message has to fit its profile: ``strict`` is TinyOS's 29-byte payload, which holds exactly four attributes after
    an interest's header (A1); ``wide`` is 60 bytes. Sizes count the message without the type byte.

Differs from the original in
    A26  a bit of AttNum says whether data is an aggregate. In the original a sink has to guess that from a first key
         that comes again, and takes apart a reading that has its first key twice.
    --   another bit announces the list of sinks. A data message counts to 63 attributes.

This file runs on a mote too (MicroPython's subset of Python).
"""

import struct
from collections import namedtuple

from workbench.attributes.wire import decode_attributes, decode_readings, encode_attributes, encode_readings
from workbench.errors import DecodeError, EncodeError

INTEREST = 1
DATA = 2

# name -> largest message in bytes
PROFILES = {"strict": 29, "wide": 60}

Interest = namedtuple("Interest", ("sequence", "sink", "round", "previous_hop", "ttl", "expiration_s", "attributes"))
Data = namedtuple("Data", ("sequence", "source", "previous_hop", "ttl", "is_aggregate", "others", "attributes"))

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
    """The frame of an Interest; EncodeError if it does not fit the profile or a field is out of range."""
    sequence, sink, round_, previous_hop, ttl, expiration_s, attributes = interest
    _check_range("interest", interest, (U32, U16, U8, U16, U8, U16), U8)
    fields = (INTEREST, sequence, sink, round_, previous_hop, ttl, expiration_s, len(attributes))
    head = struct.pack(INTEREST_LAYOUT, *fields)
    return _fitted(head + encode_attributes(attributes), profile, "interest")


def encode_data(data, profile="wide"):
    """The frame of a Data message; EncodeError if it does not fit the profile or a field is out of range.

    ``others``: the sinks that other copies serve; without any the frame has no list.
    """
    sequence, source, previous_hop, ttl, is_aggregate, others, attributes = data
    _check_range("data", data, (U32, U16, U16, U8, 1), MOST_ATTRIBUTES)
    count = len(attributes) | (AGGREGATE if is_aggregate else 0) | (LISTED if others else 0)
    head = struct.pack(DATA_LAYOUT, DATA, sequence, source, previous_hop, ttl, count)
    if others:
        if len(others) > U8:
            raise EncodeError("the list of a data message has %d sinks; it counts to %d" % (len(others), U8))
        head += bytes((len(others),))
    for sink in others:
        if not 0 <= sink <= U16:
            raise EncodeError("sink %r in the list of a data message must be from 0 to %d" % (sink, U16))
        head += bytes((sink & U8, sink >> 8))
    return _fitted(head + encode_readings(attributes), profile, "data")


def room_for_others(size, profile):
    """Return how many sinks fit in the list of a data message beside attributes of so many bytes."""
    return max(0, (PROFILES[profile] - DATA_HEADER_B - 1 - size) // 2)


def _check_range(name, message, largest, most_attributes):
    # Not left to struct: MicroPython's packs the low bits of a value that is too large without a word.
    for i in range(len(largest)):
        if not 0 <= message[i] <= largest[i]:
            raise EncodeError(
                "field %d of %s %r is %r; it must be from 0 to %d" % (i, name, message, message[i], largest[i])
            )
    if len(message[-1]) > most_attributes:
        raise EncodeError("%s has %d attributes; a message counts to %d" % (name, len(message[-1]), most_attributes))


def _fitted(frame, profile, name):
    room = PROFILES[profile]
    if len(frame) - 1 > room:
        raise EncodeError(
            "%s message of %d bytes does not fit the %s profile's %d; use fewer attributes%s"
            % (
                "an interest" if name == "interest" else "a " + name,
                len(frame) - 1,
                profile,
                room,
                " or profile='wide'" if profile == "strict" else "",
            )
        )
    return frame


def decode(frame):
    """The Interest or Data message in a frame; DecodeError, and nothing else, for any other bytes."""
    if len(frame) > 0 and frame[0] == INTEREST:
        if len(frame) < 1 + INTEREST_HEADER_B:
            raise DecodeError("an interest of %d bytes ends within its header" % len(frame))
        _, sequence, sink, round_, previous_hop, ttl, expiration_s, count = struct.unpack_from(
            INTEREST_LAYOUT, frame, 0
        )
        attributes = decode_attributes(frame, 1 + INTEREST_HEADER_B, count)
        return Interest(sequence, sink, round_, previous_hop, ttl, expiration_s, attributes)
    if len(frame) > 0 and frame[0] == DATA:
        if len(frame) < 1 + DATA_HEADER_B:
            raise DecodeError("a data message of %d bytes ends within its header" % len(frame))
        _, sequence, source, previous_hop, ttl, count = struct.unpack_from(DATA_LAYOUT, frame, 0)
        start, others = 1 + DATA_HEADER_B, ()
        if count & LISTED:
            if len(frame) <= start or len(frame) < start + 1 + 2 * frame[start]:
                raise DecodeError("a data message of %d bytes ends within its list of sinks" % len(frame))
            if frame[start] == 0:
                raise DecodeError("the list of sinks of a data message is empty; such a message has no list")
            end = start + 1 + 2 * frame[start]
            others = tuple([frame[i] | frame[i + 1] << 8 for i in range(start + 1, end, 2)])
            start = end
        attributes = decode_readings(frame, start, count & MOST_ATTRIBUTES)
        return Data(sequence, source, previous_hop, ttl, count >= AGGREGATE, others, attributes)
    raise DecodeError("a frame that begins with %s is neither interest (1) nor data (2)" % (frame[:1] or b"nothing",))


def describe(frame, broadcast=True):
    """(message name, origin, sequence) of a frame this module encoded, for traces. Costs no full decoding."""
    sequence, origin = struct.unpack_from("<IH", frame, 1)
    if frame[0] == DATA:
        return "data", origin, sequence
    return ("interest" if broadcast else "reinforcement"), origin, sequence
