"""TinyMQ's frames: bytes <-> what nodes say about the overlay, queries, events and notifications.

Layout (little-endian, packed)
    info          0x49  number of places u8, each: tree u8, epoch u32, parent u32 (0xFFFFFFFF: none), key;
                        number of distances u8, each: tree u8, epoch u32, hops u16;
                        then, if there are any, number of neighbors that the sender hears u8, each: address u32
    ack           0x41  number u16

    All others are unicast, and begin with type u8, number u16 (of this frame at its sender, which the ack repeats):

    join          0x4A  tree u8
    grant         0x47  tree u8, epoch u32, key
    query         0x51  tree u8, sink u32, query u32, round u8, lease u16 (s; 0 ends it, 65535 never ends), hops u16,
                        sink's tree u8, sink's key, region, attributes
    event         0x45  tree u8, publisher u32, sequence u32, hops u16, region, attributes
    notification  0x4E  tree u8, sink u32, query u32, by_key u8 (0 or 1), publisher u32, sequence u32, hops u16,
                        sink's tree u8, sink's key, attributes

    probe         0x50  (nothing: all that is wanted is the ack)

    refusal       0x52  number u16: the sender has not taken the frame of that number

    The type of a query, an event or a notification has a bit more where the sender goes by the receiver's place in the
    tree: 0x80 (UP) if it takes the receiver for its parent, 0x20 (DOWN) if it takes what is left of the region, or the
    sink's key, for a part of the receiver's universe. A receiver of which that is not true does not acknowledge.

    Without 0x40 the type asks for no ack: the sender's radio reports whether the frame arrived. Then a receiver that
    is not what the sender takes it for answers with a refusal. To a frame that asks for an ack, a receiver answers with
    a refusal if it has no room for the message.

    key           bits u16, then the bits, the first one highest, padded with zeros to whole bytes
    region        bits of the key space u8, intervals u8, each: lowest, highest, big-endian, in whole bytes
    attributes    number u8, then as in every frame (attributes/wire.py)

    A tree is the index of its root in the list of roots, which all nodes have. The link layer says who sent a frame.

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
OPEN, UP, DOWN = 0, 1, 2  # what a sender takes its receiver for: nothing, its parent, a node of the target's branch
_WAY_BITS = (0x00, 0x80, 0x20)
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

# Where a node is in a tree; how far it is from a tree's root. parent: NOBODY at a root. A key is a text of 0 and 1.
InfoPlace = namedtuple("InfoPlace", ("tree", "epoch", "parent", "key"))
InfoDistance = namedtuple("InfoDistance", ("tree", "epoch", "hops"))
# heard: addresses of neighbors that the sender hears, some of them.
Info = namedtuple("Info", ("places", "distances", "heard"))
Ack = namedtuple("Ack", ("number",))
Refusal = namedtuple("Refusal", ("number",))
Join = namedtuple("Join", ("tree",))
Probe = namedtuple("Probe", ())
Grant = namedtuple("Grant", ("tree", "epoch", "key"))
# region: ((lowest, highest), ...), ascending and apart, of a key space of 2 ** key_bits.
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

HEAD_LAYOUT = "<BH"
GRANT_LAYOUT = "<BI"
QUERY_LAYOUT = "<BIIBHHB"
EVENT_LAYOUT = "<BIIH"
NOTIFICATION_LAYOUT = "<BIIBIIHB"
PLACE_LAYOUT = "<BII"
DISTANCE_LAYOUT = "<BIH"
_RANGES = {"B": U8, "H": U16, "I": U32}


# Where fields stand in the tuples: a mote's named tuples cannot replace one.
_HOPS_AT = {Query: 5, Event: 3, Notification: 6}
_REGION_AT = {Query: 9, Event: 5}


def with_hops(message, hops):
    """The same message with other hops."""
    return _changed(message, _HOPS_AT[type(message)], hops)


def with_region(message, region):
    """The same query or event with another region."""
    return _changed(message, _REGION_AT[type(message)], region)


def with_tree(message, tree):
    """The same query or event for another tree."""
    return _changed(message, 0, tree)


def with_lease(query, lease_s):
    """The same query with another lease."""
    return _changed(query, 4, lease_s)


def by_key(notification):
    """The same notification, to be routed by the sink's key from here on."""
    return _changed(notification, 3, True)


def _changed(message, at, value):
    return type(message)(*(message[:at] + (value,) + message[at + 1 :]))


def encode_info(info):
    """The frame of an Info; EncodeError if a field is out of range."""
    if len(info.places) > U8 or len(info.distances) > U8 or len(info.heard) > U8:
        counts = len(info.places), len(info.distances), len(info.heard)
        raise EncodeError("%d places, %d distances and %d neighbors: an info counts to 255" % counts)
    parts = [bytes((INFO, len(info.places)))]
    for tree, epoch, parent, key in info.places:
        parts.append(_pack(PLACE_LAYOUT, tree, epoch, U32 if parent == NOBODY else parent))
        parts.append(_encode_key(key))
    parts.append(bytes((len(info.distances),)))
    for distance in info.distances:
        parts.append(_pack(DISTANCE_LAYOUT, *distance))
    if info.heard:
        parts.append(bytes((len(info.heard),)))
        parts += [_pack("<I", address) for address in info.heard]
    return b"".join(parts)


def encode_ack(number):
    """The frame that acknowledges a neighbor's frame of this number."""
    return _pack("<BH", ACK, number)


def encode_refusal(number):
    """Encode the refusal of a neighbor's frame of this number."""
    return _pack("<BH", REFUSAL, number)


def without_ack(frame):
    """Return the same unicast frame, of `encode`, asking for no ack."""
    return bytes((frame[0] & ~_ACK_BIT,)) + frame[1:]


def wants_ack(frame):
    """Return whether a frame that `decode` takes asks for an ack."""
    return bool(frame[0] & _ACK_BIT)


def number_of(frame):
    """Return the number of a unicast frame; None for an info, an ack, a refusal, and for other bytes."""
    return unpack_from("<H", frame, 1)[0] if len(frame) >= 3 and frame[0] in KINDS else None


def encode(number, message, way=OPEN):
    """The unicast frame of a message that is no Info and no Ack; EncodeError if a field is out of range.

    way     OPEN, UP or DOWN, which only a Query, an Event or a Notification goes
    """
    kind, encode_body = ENCODERS[type(message)]
    return _pack(HEAD_LAYOUT, kind | _WAY_BITS[way], number) + encode_body(message)


def way_of(frame):
    """The way that a frame goes which `decode` takes: OPEN, UP or DOWN."""
    return KINDS[frame[0]][1]


def _encode_nothing(probe):
    return b""


def _encode_join(join):
    return _pack("<B", join.tree)


def _encode_grant(grant):
    return _pack(GRANT_LAYOUT, grant.tree, grant.epoch) + _encode_key(grant.key)


def _encode_query(query):
    tree, sink, number, round_, lease_s, hops, sink_tree, sink_key, key_bits, region, attributes = query
    head = _pack(QUERY_LAYOUT, tree, sink, number, round_, lease_s, hops, sink_tree) + _encode_key(sink_key)
    body = encode_attributes(attributes)
    return head + _encode_region(key_bits, region) + _pack("<B", len(attributes)) + body


def _encode_event(event):
    tree, publisher, sequence, hops, key_bits, region, attributes = event
    body = _encode_region(key_bits, region) + _pack("<B", len(attributes)) + encode_readings(attributes)
    return _pack(EVENT_LAYOUT, tree, publisher, sequence, hops) + body


def _encode_notification(notification):
    tree, sink, query, by_key, publisher, sequence, hops, sink_tree, sink_key, attributes = notification
    head = _pack(NOTIFICATION_LAYOUT, tree, sink, query, 1 if by_key else 0, publisher, sequence, hops, sink_tree)
    return head + _encode_key(sink_key) + _pack("<B", len(attributes)) + encode_readings(attributes)


ENCODERS = {
    Probe: (PROBE, _encode_nothing),
    Join: (JOIN, _encode_join),
    Grant: (GRANT, _encode_grant),
    Query: (QUERY, _encode_query),
    Event: (EVENT, _encode_event),
    Notification: (NOTIFICATION, _encode_notification),
}


def _pack(layout, *values):
    for code, value in zip(layout[1:], values):
        if not 0 <= value <= _RANGES[code]:
            raise EncodeError("%r does not fit its field, which holds 0 to %d" % (value, _RANGES[code]))
    return pack(layout, *values)


def _encode_key(key):
    if len(key) > LONGEST_KEY:
        raise EncodeError("a key of %d bits is too long; it has %d at most" % (len(key), LONGEST_KEY))
    size_B = (len(key) + 7) // 8
    number = int(key, 2) << (8 * size_B - len(key)) if key else 0
    return pack("<H", len(key)) + number.to_bytes(size_B, "big")


def _encode_region(key_bits, region):
    if not 1 <= key_bits <= WIDEST_KEY_SPACE or not 1 <= len(region) <= MOST_INTERVALS:
        raise EncodeError("a region of %d intervals of %d bits does not fit a frame" % (len(region), key_bits))
    if not ascends(region, key_bits):
        raise EncodeError("a region's intervals %r are not ascending within %d bits" % (region, key_bits))
    size_B = (key_bits + 7) // 8
    parts = [low.to_bytes(size_B, "big") + high.to_bytes(size_B, "big") for low, high in region]
    return bytes((key_bits, len(region))) + b"".join(parts)


def ascends(region, key_bits):
    """Return whether intervals are apart, in ascending order, and within the key space."""
    previous = -1
    for low, high in region:
        if not previous < low <= high < 1 << key_bits:
            return False
        previous = high
    return True


def decode(frame):
    """(number or None, the message) of a frame; DecodeError, and nothing else, for any other bytes."""
    kind = frame[0] if len(frame) else 0
    if kind == INFO:
        return None, _decode_info(_Reader(frame, 1))
    if kind in (ACK, REFUSAL):
        reader = _Reader(frame, 1)
        (number,) = reader.take("<H")
        reader.end()
        return None, Ack(number) if kind == ACK else Refusal(number)
    if kind not in KINDS:
        raise DecodeError("a frame that begins with %r is not one of TinyMQ's" % (bytes(frame[:1]),))
    reader = _Reader(frame, 1)
    (number,) = reader.take("<H")
    return number, _DECODERS[KINDS[kind][0]](reader)


class _Reader:
    """Takes a frame apart from left to right; DecodeError where it ends too soon or too late."""

    def __init__(self, frame, offset):
        self.frame = frame
        self.offset = offset

    def take(self, layout):
        """The fields of a struct."""
        self._check(calcsize(layout))
        fields = unpack_from(layout, self.frame, self.offset)
        self.offset += calcsize(layout)
        return fields

    def number(self, size_B):
        """An integer of so many bytes, big-endian."""
        self._check(size_B)
        self.offset += size_B
        return int.from_bytes(bytes(self.frame[self.offset - size_B : self.offset]), "big")

    def key(self):
        """A key."""
        (length,) = self.take("<H")
        size_B = (length + 7) // 8
        number = self.number(size_B)
        padding = 8 * size_B - length
        if number & ((1 << padding) - 1):
            raise DecodeError("bits behind the end of a key are not zero")
        return bits(number >> padding, length)

    def region(self):
        """(bits of the key space, intervals)"""
        key_bits, count = self.take("<BB")
        if not 1 <= key_bits <= WIDEST_KEY_SPACE or count < 1:
            raise DecodeError("a region of %d intervals of %d bits is none" % (count, key_bits))
        size_B = (key_bits + 7) // 8
        region = tuple([(self.number(size_B), self.number(size_B)) for _ in range(count)])
        if not ascends(region, key_bits):
            raise DecodeError("a region's intervals are not ascending within %d bits" % key_bits)
        return key_bits, region

    def attributes(self, decode_list):
        """The attributes to the end of the frame."""
        (count,) = self.take("<B")
        return decode_list(self.frame, self.offset, count)

    def is_at_end(self):
        """Whether nothing is left."""
        return self.offset == len(self.frame)

    def end(self):
        """The frame ends here."""
        if not self.is_at_end():
            raise DecodeError("%d bytes follow the end of a message" % (len(self.frame) - self.offset))

    def _check(self, size_B):
        if self.offset + size_B > len(self.frame):
            raise DecodeError("a frame of %d bytes is cut off" % len(self.frame))


def bits(number, count):
    """A number of ``count`` bits as text, the highest first."""
    digits = bin(number)[2:] if number else ""
    return "0" * (count - len(digits)) + digits


def _decode_info(reader):
    places, distances, heard = [], [], []
    (count,) = reader.take("<B")
    for _ in range(count):
        tree, epoch, parent = reader.take(PLACE_LAYOUT)
        places.append(InfoPlace(tree, epoch, NOBODY if parent == U32 else parent, reader.key()))
    (count,) = reader.take("<B")
    for _ in range(count):
        distances.append(InfoDistance(*reader.take(DISTANCE_LAYOUT)))
    if not reader.is_at_end():
        (count,) = reader.take("<B")
        if not count:
            raise DecodeError("an info counts the neighbors that it names, and names none")
        heard = [reader.take("<I")[0] for _ in range(count)]
        reader.end()
    return Info(tuple(places), tuple(distances), tuple(heard))


def _decode_probe(reader):
    reader.end()
    return Probe()


def _decode_join(reader):
    join = Join(*reader.take("<B"))
    reader.end()
    return join


def _decode_grant(reader):
    tree, epoch = reader.take(GRANT_LAYOUT)
    grant = Grant(tree, epoch, reader.key())
    reader.end()
    return grant


def _decode_query(reader):
    tree, sink, number, round_, lease_s, hops, sink_tree = reader.take(QUERY_LAYOUT)
    sink_key = reader.key()
    key_bits, region = reader.region()
    attributes = reader.attributes(decode_attributes)
    return Query(tree, sink, number, round_, lease_s, hops, sink_tree, sink_key, key_bits, region, attributes)


def _decode_event(reader):
    tree, publisher, sequence, hops = reader.take(EVENT_LAYOUT)
    key_bits, region = reader.region()
    return Event(tree, publisher, sequence, hops, key_bits, region, reader.attributes(decode_readings))


def _decode_notification(reader):
    tree, sink, query, by_key, publisher, sequence, hops, sink_tree = reader.take(NOTIFICATION_LAYOUT)
    if by_key > 1:
        raise DecodeError("a notification's flag is %d; it must be 0 or 1" % by_key)
    sink_key = reader.key()
    attributes = reader.attributes(decode_readings)
    return Notification(tree, sink, query, by_key == 1, publisher, sequence, hops, sink_tree, sink_key, attributes)


_DECODERS = {
    PROBE: _decode_probe,
    JOIN: _decode_join,
    GRANT: _decode_grant,
    QUERY: _decode_query,
    EVENT: _decode_event,
    NOTIFICATION: _decode_notification,
}

# The first byte of a unicast frame -> (its type, its way).
KINDS = {kind: (kind, OPEN) for kind in _DECODERS}
for _kind in (QUERY, EVENT, NOTIFICATION):
    KINDS[_kind | _WAY_BITS[UP]] = _kind, UP
    KINDS[_kind | _WAY_BITS[DOWN]] = _kind, DOWN
for _byte in list(KINDS):
    KINDS[_byte & ~_ACK_BIT] = KINDS[_byte]

# Where the origin and the sequence number stand in the frames that have them.
_ORIGIN_AT = {QUERY: 4, EVENT: 4, NOTIFICATION: 13}


def describe(frame, broadcast=True):
    """(message name, origin, sequence) of a frame this module encoded, for traces; NOBODY and 0 where it has none."""
    origin, sequence = NOBODY, 0
    kind = KINDS[frame[0]][0] if frame[0] in KINDS else frame[0]
    if kind in _ORIGIN_AT:
        origin, sequence = unpack_from("<II", frame, _ORIGIN_AT[kind])
    return NAMES[kind], origin, sequence
