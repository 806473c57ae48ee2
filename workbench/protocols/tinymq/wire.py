"""TinyMQ's frames: the encoding of infos, joins, grants, queries, events and notifications in bytes.

Layout (little-endian, packed)
    The table of fields in ``dissector.py`` describes it; docs/FRAMES.md shows it. All frames but infos, acks and
    refusals are unicast, and contain the number of the frame at its sender. An ack or a refusal contains the number of
    the frame that it answers. A probe only requests an ack.

    In the type of a query, an event or a notification, a further bit shows the *direction*: the role in the tree that
    the sender assumes of the receiver. 0x80 (UP): the sender's parent. 0x20 (DOWN): a node whose key is a prefix of the
    strings in the message's region, or of the sink's key. A receiver without that role does not acknowledge.

    Without the bit 0x40 the type requests no ack: the sender's radio reports whether the frame arrived. Then a receiver
    without the assumed role answers with a refusal. To a frame that requests an ack, a receiver answers with a refusal
    if it has no room for the message.

    A tree is the index of its root in the list of roots, which all nodes have. The link layer provides the sender.

This file runs on a mote too (MicroPython's subset of Python).
"""

from collections import namedtuple
from struct import calcsize, pack, unpack_from

from workbench.attributes.wire import decode_attributes, decode_readings, encode_attributes, encode_readings
from workbench.errors import DecodeError, EncodeError
from workbench.protocols.contract import NOBODY

INFO, ACK, JOIN, GRANT, QUERY, EVENT, NOTIFICATION = 0x49, 0x41, 0x4A, 0x47, 0x51, 0x45, 0x4E
PROBE, REFUSAL = 0x50, 0x52
_ACK_BIT = 0x40
# The role of a receiver in the tree: any; the sender's parent; a node whose universe holds the target.
OPEN, UP, DOWN = 0, 1, 2
_DIRECTION_BITS = (0x00, 0x80, 0x20)
NAMES = {
    INFO: "info",
    ACK: "ack",
    JOIN: "join",
    GRANT: "grant",
    QUERY: "query",
    EVENT: "event",
    NOTIFICATION: "notification",
    PROBE: "probe",
    REFUSAL: "refusal",
}
U8, U16, U32 = 0xFF, 0xFFFF, 0xFFFFFFFF
LEASE_FOREVER_S = U16
LONGEST_KEY = U16
MOST_INTERVALS = U8
WIDEST_KEY_SPACE = 127  # bits; the paper: less than 128

# The position of an info's sender in a tree. parent: its address, or `NOBODY` if the sender is the root; key: a text
# of 0 and 1.
InfoPosition = namedtuple("InfoPosition", ("tree", "epoch", "parent", "key"))
# The distance from an info's sender to the root of a tree.
InfoDistance = namedtuple("InfoDistance", ("tree", "epoch", "hops"))
# heard: the addresses of some neighbors that the sender hears.
Info = namedtuple("Info", ("positions", "distances", "heard"))
Ack = namedtuple("Ack", ("number",))
Refusal = namedtuple("Refusal", ("number",))
Join = namedtuple("Join", ("tree",))
Probe = namedtuple("Probe", ())
Grant = namedtuple("Grant", ("tree", "epoch", "key"))
# region: ((lowest, highest), ...), ascending and disjoint, in a key space of 2 ** key_bits strings.
Query = namedtuple(
    "Query",
    (
        "tree",
        "sink",
        "query",
        "round",
        "lease_s",
        "hops",
        "sink_tree",
        "sink_key",
        "key_bits",
        "region",
        "attributes",
    ),
)
Event = namedtuple("Event", ("tree", "publisher", "sequence", "hops", "key_bits", "region", "attributes"))
Notification = namedtuple(
    "Notification",
    ("tree", "sink", "query", "by_key", "publisher", "sequence", "hops", "sink_tree", "sink_key", "attributes"),
)

# Unicast message -> (its type; the format in struct of the type, the frame's number and the first fields; the parts
# that follow): K a key, R a region, A an interest's attributes, D data.
LAYOUTS = {
    Probe: (PROBE, "<BH", ""),
    Join: (JOIN, "<BHB", ""),
    Grant: (GRANT, "<BHBI", "K"),
    Query: (QUERY, "<BHBIIBHHB", "KRA"),
    Event: (EVENT, "<BHBIIH", "RD"),
    Notification: (NOTIFICATION, "<BHBIIBIIHB", "KD"),
}
POSITION_LAYOUT = "<BII"
DISTANCE_LAYOUT = "<BIH"
_RANGES = {"B": U8, "H": U16, "I": U32}


# Indexes of fields in the tuples: on a mote, named tuples cannot replace a field by its name.
_HOPS_AT = {Query: 5, Event: 3, Notification: 6}
_REGION_AT = {Query: 9, Event: 5}


def with_hops(message, hops):
    """Return a copy of a query, event or notification with another hop count."""
    return _replace_field(message, _HOPS_AT[type(message)], hops)


def with_region(message, region):
    """Return a copy of a query or event with another region."""
    return _replace_field(message, _REGION_AT[type(message)], region)


def with_tree(message, tree):
    """Return a copy of a query or event for another tree."""
    return _replace_field(message, 0, tree)


def with_lease(query, lease_s):
    """Return a copy of a query with another lease, in seconds."""
    return _replace_field(query, 4, lease_s)


def by_key(notification):
    """Return a copy of a notification, to be routed by its sink's key instead of its query's reverse path."""
    return _replace_field(notification, 3, True)


def _replace_field(message, index, value):
    return type(message)(*(message[:index] + (value,) + message[index + 1 :]))


def encode_info(info):
    """Return the frame of an Info. Raises EncodeError if a field is out of range."""
    if len(info.positions) > U8 or len(info.distances) > U8 or len(info.heard) > U8:
        counts = len(info.positions), len(info.distances), len(info.heard)
        raise EncodeError(
            "the info has %d positions, %d distances and %d neighbors; it must have at most 255 of each" % counts
        )
    frame_parts = [bytes((INFO, len(info.positions)))]
    for tree, epoch, parent, position_key in info.positions:
        frame_parts.append(_pack(POSITION_LAYOUT, tree, epoch, U32 if parent == NOBODY else parent))
        frame_parts.append(_encode_key(position_key))
    frame_parts.append(bytes((len(info.distances),)))
    for distance in info.distances:
        frame_parts.append(_pack(DISTANCE_LAYOUT, *distance))
    if info.heard:
        frame_parts.append(bytes((len(info.heard),)))
        frame_parts += [_pack("<I", address) for address in info.heard]
    return b"".join(frame_parts)


def encode_ack(number):
    """Return the frame (an ack) that acknowledges a neighbor's frame; ``number``: that frame's sequence number."""
    return _pack("<BH", ACK, number)


def encode_refusal(number):
    """Return the frame (a refusal) that refuses a neighbor's frame; ``number``: that frame's sequence number."""
    return _pack("<BH", REFUSAL, number)


def without_ack(frame):
    """Return a copy of a unicast frame, changed to request no ack."""
    return bytes((frame[0] & ~_ACK_BIT,)) + frame[1:]


def wants_ack(frame):
    """Return whether a unicast frame requests an ack."""
    return bool(frame[0] & _ACK_BIT)


def number_of(frame):
    """Return the sequence number of a unicast frame, or None if it is an info, an ack, a refusal or invalid."""
    return unpack_from("<H", frame, 1)[0] if len(frame) >= 3 and frame[0] in KINDS else None


def encode(number, message, direction=OPEN):
    """Return the unicast frame of a message other than Info, Ack and Refusal; ``number``: its sequence number.

    ``direction``: OPEN, or for a Query, an Event or a Notification also UP or DOWN. Raises EncodeError if a field is
    out of range.
    """
    kind, layout, parts = LAYOUTS[type(message)]
    at = len(layout) - 3
    frame = _pack(layout, kind | _DIRECTION_BITS[direction], number, *message[:at])
    for part in parts:
        value = message[at]
        if part == "K":
            frame += _encode_key(value)
        elif part == "R":
            at += 1
            frame += _encode_region(value, message[at])
        else:
            frame += _pack("<B", len(value)) + (encode_attributes if part == "A" else encode_readings)(value)
        at += 1
    return frame


def direction_of(frame):
    """Return the direction in the type byte of a valid unicast frame: OPEN, UP or DOWN."""
    return KINDS[frame[0]][1]


def _pack(layout, *values):
    for code, value in zip(layout[1:], values):
        if not 0 <= value <= _RANGES[code]:
            raise EncodeError("a field of the frame is %r; it must be from 0 to %d" % (value, _RANGES[code]))
    return pack(layout, *values)


def _encode_key(key):
    if len(key) > LONGEST_KEY:
        raise EncodeError("the key has %d bits; it must have at most %d" % (len(key), LONGEST_KEY))
    size_B = (len(key) + 7) // 8
    padded_bits = int(key, 2) << (8 * size_B - len(key)) if key else 0
    return pack("<H", len(key)) + padded_bits.to_bytes(size_B, "big")


def _encode_region(key_bits, region):
    if not 1 <= key_bits <= WIDEST_KEY_SPACE or not 1 <= len(region) <= MOST_INTERVALS:
        raise EncodeError(
            "the region has %d intervals of %d-bit strings; a frame holds 1 to %d intervals of at most %d bits"
            % (len(region), key_bits, MOST_INTERVALS, WIDEST_KEY_SPACE)
        )
    if not ascends(region, key_bits):
        raise EncodeError(
            "region is %r; its intervals must be disjoint, in ascending order, with ends of %d bits"
            % (region, key_bits)
        )
    size_B = (key_bits + 7) // 8
    interval_parts = [low.to_bytes(size_B, "big") + high.to_bytes(size_B, "big") for low, high in region]
    return bytes((key_bits, len(region))) + b"".join(interval_parts)


def ascends(region, key_bits):
    """Return whether the intervals of ``region`` are disjoint, in ascending order, and within the key space."""
    previous_high = -1
    for low, high in region:
        if not previous_high < low <= high < 1 << key_bits:
            return False
        previous_high = high
    return True


def decode(frame):
    """Return (sequence number, message) of a frame; the number is None for an Info, an Ack or a Refusal.

    Raises DecodeError, and no other error, for bytes that are not a frame of TinyMQ.
    """
    type_byte = frame[0] if len(frame) else 0
    if type_byte == INFO:
        return None, _decode_info(_Reader(frame, 1))
    if type_byte in (ACK, REFUSAL):
        reader = _Reader(frame, 1)
        (frame_number,) = reader.read_fields("<H")
        reader.expect_end()
        return None, Ack(frame_number) if type_byte == ACK else Refusal(frame_number)
    if type_byte not in KINDS:
        raise DecodeError("the frame begins with %r, which is not a TinyMQ message type" % (bytes(frame[:1]),))
    kind = KINDS[type_byte][0]
    message_class, layout, parts = _CLASSES[kind]
    reader = _Reader(frame, 0)
    fields = reader.read_fields(layout)
    values = list(fields[2:])
    if kind == NOTIFICATION:
        if values[3] > 1:
            raise DecodeError("the notification's field by_key is %d; it must be 0 or 1" % values[3])
        values[3] = values[3] == 1
    for part in parts:
        if part == "K":
            values.append(reader.read_key())
        elif part == "R":
            values += reader.read_region()
        else:
            values.append(reader.read_attributes(decode_attributes if part == "A" else decode_readings))
    if not parts or part == "K":  # attributes end the frame
        reader.expect_end()
    return fields[1], message_class(*values)


class _Reader:
    """A cursor that decodes a frame from left to right. Its methods raise DecodeError for invalid bytes."""

    def __init__(self, frame, offset):
        self.frame = frame
        self.offset = offset

    def read_fields(self, layout):
        """Read the fields of a struct layout; return them as a tuple."""
        size_B = calcsize(layout)
        self._check_length(size_B)
        self.offset += size_B
        return unpack_from(layout, self.frame, self.offset - size_B)

    def read_number(self, size_B):
        """Read and return a big-endian integer of ``size_B`` bytes."""
        self._check_length(size_B)
        self.offset += size_B
        return int.from_bytes(bytes(self.frame[self.offset - size_B : self.offset]), "big")

    def read_key(self):
        """Read a key; return its bits as a text of 0 and 1."""
        (length,) = self.read_fields("<H")
        size_B = (length + 7) // 8
        padded_bits = self.read_number(size_B)
        padding_bits = 8 * size_B - length
        if padded_bits & ((1 << padding_bits) - 1):
            raise DecodeError("the padding bits after a key are not zero")
        return bits(padded_bits >> padding_bits, length)

    def read_region(self):
        """Read a region, a set of strings; return (bits per string, tuple of intervals (lowest, highest))."""
        key_bits, interval_count = self.read_fields("<BB")
        if not 1 <= key_bits <= WIDEST_KEY_SPACE or interval_count < 1:
            raise DecodeError(
                "invalid region: %d intervals of %d-bit strings; allowed: 1 or more intervals, of 1 to %d bits"
                % (interval_count, key_bits, WIDEST_KEY_SPACE)
            )
        size_B = (key_bits + 7) // 8
        region = tuple([(self.read_number(size_B), self.read_number(size_B)) for _ in range(interval_count)])
        if not ascends(region, key_bits):
            raise DecodeError(
                "invalid region: its %d intervals must be disjoint, in ascending order, with ends of %d bits"
                % (interval_count, key_bits)
            )
        return key_bits, region

    def read_attributes(self, decode_list):
        """Read the number of attributes and the attributes, which end the frame; return the decoded attributes.

        ``decode_list``: a function (frame, offset of the first attribute, number) that decodes them. The cursor stays
        at the first attribute.
        """
        self._check_length(1)
        self.offset += 1
        return decode_list(self.frame, self.offset, self.frame[self.offset - 1])

    def is_at_end(self):
        return self.offset == len(self.frame)

    def expect_end(self):
        """Raise DecodeError if the frame has bytes after the cursor."""
        if not self.is_at_end():
            raise DecodeError("the frame has %d bytes after the end of its message" % (len(self.frame) - self.offset))

    def _check_length(self, size_B):
        """Raise DecodeError if fewer than ``size_B`` bytes are left."""
        if self.offset + size_B > len(self.frame):
            raise DecodeError("the frame is truncated after %d bytes" % len(self.frame))


def bits(number, count):
    """Return the number as a text of ``count`` binary digits, the highest digit first."""
    digits = bin(number)[2:] if number else ""
    return "0" * (count - len(digits)) + digits


def _decode_info(reader):
    positions, distances, heard_addresses = [], [], []
    (entry_count,) = reader.read_fields("<B")
    for _ in range(entry_count):
        tree, epoch, parent = reader.read_fields(POSITION_LAYOUT)
        positions.append(InfoPosition(tree, epoch, NOBODY if parent == U32 else parent, reader.read_key()))
    (entry_count,) = reader.read_fields("<B")
    for _ in range(entry_count):
        distances.append(InfoDistance(*reader.read_fields(DISTANCE_LAYOUT)))
    if not reader.is_at_end():
        (entry_count,) = reader.read_fields("<B")
        if not entry_count:
            raise DecodeError("the info has a list of 0 neighbors; without neighbors the list must be absent")
        heard_addresses = [reader.read_fields("<I")[0] for _ in range(entry_count)]
        reader.expect_end()
    return Info(tuple(positions), tuple(distances), tuple(heard_addresses))


# Type of a unicast message -> (its class, its first fields, the parts that follow).
_CLASSES = {kind: (message_class, layout, parts) for message_class, (kind, layout, parts) in LAYOUTS.items()}

# The first byte of a unicast frame -> (its type, its direction).
KINDS = {kind: (kind, OPEN) for kind in _CLASSES}
for _kind in (QUERY, EVENT, NOTIFICATION):
    KINDS[_kind | _DIRECTION_BITS[UP]] = _kind, UP
    KINDS[_kind | _DIRECTION_BITS[DOWN]] = _kind, DOWN
for _byte in list(KINDS):
    KINDS[_byte & ~_ACK_BIT] = KINDS[_byte]

# Offset in bytes of the origin, which the sequence number follows, in the frames that have both.
_ORIGIN_AT = {QUERY: 4, EVENT: 4, NOTIFICATION: 13}


def describe(frame, broadcast=True):
    """Return (message name, origin, sequence) of a frame that this module encoded, for traces.

    For a message without an origin, the origin is `NOBODY` and the sequence 0. ``broadcast`` has no effect.
    """
    origin, sequence = NOBODY, 0
    type_byte = KINDS[frame[0]][0] if frame[0] in KINDS else frame[0]
    if type_byte in _ORIGIN_AT:
        origin, sequence = unpack_from("<II", frame, _ORIGIN_AT[type_byte])
    return NAMES[type_byte], origin, sequence
