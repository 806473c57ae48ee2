"""DPS's messages: bytes <-> publications, subscriptions and their acknowledgements, as the C implementation has them.

Layout (CBOR: definite lengths, shortest integers)
    [version 1, type, unprotected map, protected map, fifth item]; the keys of a map ascend:

    1 port u16    4 sequence u32          7 flags u8      10 interests    13 acknowledged sequence u32
    2 ttl i16, s  5 ack requested, bool   8 mesh id 16 B  11 topics       14 path, where there is no port
    3 id 16 B     6 Bloom filter          9 needs 32 B    12 data         15 hop count u16

    type                  unprotected                      protected      fifth item
    1 publication         1 or 14, 2, 15                   2, 3, 4, 5, 6  {11, 12}, or COSE (tag 16, 18 or 96)
    2 subscription        1 or 14, 4, 7, 8, (9, 10)        {}             {}
    3 acknowledgement     {}                               3, 13          {12}, or COSE
    4 subscription ack    1 or 14, 4, 7, 8, (9, 10), 13    {}             {}

    Bit vectors are `workbench.protocols.dps.bloom`'s. Needs and interests are there if the flags ask for an answer
    (SAK_REQUESTED), but not in an unlink. A multicast message is in an envelope of CoAP (protocols/dps/wire/coap.py).

Theory of operation
    Protected map and fifth item of a publication and an acknowledgement are kept as they came: a node that passes them
    on sends the same bytes (`forwarded`), which is what encryption and signatures are over.

    Decoding is as strict as the C implementation, which walks the maps: unknown keys are skipped, keys out of order are
    refused, so are more or fewer than five items, indefinite lengths, a missing field, a number 0 of a publication or
    in an acknowledgement. Bytes behind the array are ignored, and so is what is in a map that should be empty.

Differs from the message layout that the project's documentation draws
    flags               1 delta, 2 answer requested, 4 unlink, 8 mute, 16 unmute; there, mute is 2 and answer 4. 32 is
                        this project's: the sender counts hops in mesh ids. The C implementation ignores it.
    unlink              it has flags and mesh id; needs and interests alone are missing.
    subscription ack    it has sequence, flags and mesh id, and may have needs and interests.
    acknowledgement     its data is never missing; an empty payload is an empty byte string.
    bit vectors         run lengths or bytes by the load, not by what is shorter.

Limits
    A datagram over UDP holds 65,507 bytes. Times are whole seconds, up to 32,767.

    A mote has neither BitVector nor the memory: a node of DPS runs on CPython.

Reference
    https://github.com/intel/dps-for-iot, commit b92a83660427.
"""

from collections import namedtuple
from struct import pack

from workbench.errors import DecodeError, EncodeError
from workbench.protocols.dps.bloom import FUZZY_HASH_B
from workbench.protocols.dps.wire import cbor, fields

PUBLICATION, SUBSCRIPTION, ACKNOWLEDGEMENT, SUBSCRIPTION_ACKNOWLEDGEMENT = 1, 2, 3, 4
NAMES = {
    PUBLICATION: "publication",
    SUBSCRIPTION: "subscription",
    ACKNOWLEDGEMENT: "acknowledgement",
    SUBSCRIPTION_ACKNOWLEDGEMENT: "subscription ack",
}
# Flags of a subscription and its acknowledgement.
DELTA, SAK_REQUESTED, UNLINK, MUTE, UNMUTE, COUNTS_HOPS = 1, 2, 4, 8, 16, 32

VERSION = 1
NOBODY = -1
LARGEST_DATAGRAM_B = 65507
LONGEST_TTL_S = fields.LONGEST_TTL_S
TAGS = (16, 18, 96)  # COSE: encrypted, signed, encrypted with recipients
_ELEMENTS = 5
_EMPTY = cbor.mapping(0)
# port: None if path says where answers go, and the other way round. ttl_s: what remains, -1 ends a retained
# publication; lifetime_s: what it began with. topics (texts), data: None if encrypted or signed. protected, body: the
# bytes of the protected map and of the fifth item as they came; b"" in a message of our own, and made from the other
# fields then.
Publication = namedtuple(
    "Publication",
    (
        "port",
        "path",
        "ttl_s",
        "hops",
        "lifetime_s",
        "publication_id",
        "sequence",
        "acknowledge",
        "filter",
        "topics",
        "data",
        "protected",
        "body",
    ),
    defaults=(b"", b""),
)
# needs (32 bytes), interests (a BitVector): None where there are none.
Subscription = namedtuple("Subscription", ("port", "path", "sequence", "flags", "mesh_id", "needs", "interests"))
SubscriptionAcknowledgement = namedtuple(
    "SubscriptionAcknowledgement",
    ("port", "path", "sequence", "flags", "mesh_id", "needs", "interests", "acknowledged"),
)
# acknowledged: the sequence number of the publication. data: None if encrypted or signed.
Acknowledgement = namedtuple(
    "Acknowledgement",
    ("publication_id", "acknowledged", "data", "protected", "body"),
    defaults=(b"", b""),
)


def encode(message):
    """The bytes of a message; EncodeError if a field is out of range. ``protected`` and ``body`` go as they are."""
    encode_parts = _ENCODERS.get(type(message))
    if encode_parts is None:
        raise EncodeError("%r is no message of DPS" % (message,))
    kind, unprotected, protected, body = encode_parts(message)
    return b"".join((cbor.array(_ELEMENTS), cbor.unsigned(VERSION), cbor.unsigned(kind), unprotected, protected, body))


def decode(frame, filter_bits=None):
    """The message in a frame; DecodeError, and nothing else, for bytes that the C implementation would drop.

    With ``filter_bits``, the length of filters in this mesh, one of another length is refused before it is unpacked.
    """
    reader = cbor.Reader(frame)
    decode_parts = _DECODERS[_kind(reader)]
    return decode_parts(reader, filter_bits)


def forwarded(publication, port, ttl_s, path=None):
    """The publication as the next node gets it from us: one hop more, our port, and the ttl that remains."""
    return publication._replace(port=port, path=path, ttl_s=ttl_s, hops=publication.hops + 1)


def protected_map(message):
    """The bytes of the protected map of a Publication or an Acknowledgement: what encryption and signatures cover."""
    return message.protected or _PROTECTED[type(message)](message)


def body_map(message):
    """The bytes of the fifth item before encryption: topics and data, or data."""
    if isinstance(message, Publication):
        return _encode_topics(message.topics) + fields.byte_string(fields.DATA, message.data)
    return cbor.mapping(1) + fields.byte_string(fields.DATA, message.data)


def secured(message, body):
    """The message with ``body``, the bytes of a COSE item, in the place of what it says."""
    plain = {"data": None, "body": body, "protected": protected_map(message)}
    if isinstance(message, Publication):
        plain["topics"] = None
    return message._replace(**plain)


def opened(message, plain):
    """The message with what was encrypted or signed in it, from ``plain``, the bytes of that map.

    ``body`` stays as it came, so it is passed on as it came. DecodeError if the map is not what it should be.
    """
    reader = cbor.Reader(plain)
    if isinstance(message, Publication):
        topics, data = _decode_body(reader)
        return message._replace(topics=topics, data=data)
    return message._replace(data=_decode_data(reader))


def make_publication_id(address, series, draw):
    """16 bytes: the address, the number of the series at this node, and 8 bytes that are drawn."""
    if not (0 <= address <= fields.I31 and 0 <= series <= fields.I31 and len(draw) == 8):
        raise EncodeError("address %d or series %d does not fit 31 bits, or the draw not 8 bytes" % (address, series))
    return pack(">II", address, series) + draw


def describe(frame, broadcast=True):
    """(message name, origin, sequence) of a frame this module encoded, for traces.

    Of a publication and its acknowledgement the sequence is its series and its number, ``series << 32 | number``, if
    the publication id is of `make_publication_id`; other ids give numbers that say nothing. Others: their revision.
    """
    reader = cbor.Reader(frame)
    kind = _kind(reader)
    if kind in (SUBSCRIPTION, SUBSCRIPTION_ACKNOWLEDGEMENT):
        return NAMES[kind], NOBODY, _short_values(reader)[fields.SEQUENCE]
    reader.skip("unprotected map")
    found = _short_values(reader)
    origin, series = origin_of(found[fields.ID])
    number = found[fields.SEQUENCE if kind == PUBLICATION else fields.ACKNOWLEDGED]
    return NAMES[kind], origin, series << 32 | number


def origin_of(publication_id):
    """(address, series) of an id of `make_publication_id`."""
    high = int.from_bytes(publication_id[:8], "big")
    return high >> 32 & fields.I31, high & fields.I31


def _short_values(reader):
    """{key: value} of a map, without the values that take time to read."""
    found = {}
    for _ in range(reader.mapping("map")):
        key = reader.unsigned("key")
        if key == fields.ID:
            found[key] = reader.byte_string("publication id", fields.ID_B)
        elif reader.peek() == cbor.UNSIGNED:
            found[key] = reader.unsigned("value")
        else:
            reader.skip("value")
    return found


# Encoding


def _port_and_path(message):
    """(the port's field, the path's field): one of them is b""."""
    if (message.port is None) == (message.path is None):
        raise EncodeError("port %r and path %r: one of them must be given" % (message.port, message.path))
    if message.path is None:
        return fields.number(fields.PORT, message.port, fields.U16), b""
    return b"", cbor.unsigned(fields.PATH) + fields.text(message.path)


def _encode_publication(publication):
    port, path = _port_and_path(publication)
    ttl = fields.seconds(publication.ttl_s)
    unprotected = cbor.mapping(3) + port + ttl + path + fields.number(fields.HOPS, publication.hops, fields.U16)
    return PUBLICATION, unprotected, protected_map(publication), publication.body or body_map(publication)


def _protected_publication(publication):
    return b"".join(
        (
            cbor.mapping(5),
            fields.seconds(publication.lifetime_s),
            fields.byte_string(fields.ID, publication.publication_id, fields.ID_B),
            fields.number(fields.SEQUENCE, publication.sequence, fields.U32),
            cbor.unsigned(fields.ACKNOWLEDGE) + cbor.boolean(publication.acknowledge),
            cbor.unsigned(fields.FILTER) + publication.filter.encode(),
        )
    )


def _encode_topics(topics):
    head = cbor.mapping(2) + cbor.unsigned(fields.TOPICS) + cbor.array(len(topics))
    return head + b"".join([fields.text(topic) for topic in topics])


def _encode_acknowledgement(acknowledgement):
    body = acknowledgement.body or body_map(acknowledgement)
    return ACKNOWLEDGEMENT, _EMPTY, protected_map(acknowledgement), body


def _protected_acknowledgement(acknowledgement):
    identity = fields.byte_string(fields.ID, acknowledgement.publication_id, fields.ID_B)
    return cbor.mapping(2) + identity + fields.number(fields.ACKNOWLEDGED, acknowledgement.acknowledged, fields.U32)


def _encode_subscription(subscription):
    return SUBSCRIPTION, _encode_link(subscription, b""), _EMPTY, _EMPTY


def _encode_subscription_acknowledgement(acknowledgement):
    acknowledged = fields.number(fields.ACKNOWLEDGED, acknowledgement.acknowledged, fields.U32)
    return SUBSCRIPTION_ACKNOWLEDGEMENT, _encode_link(acknowledgement, acknowledged), _EMPTY, _EMPTY


def _encode_link(message, acknowledged):
    port, path = _port_and_path(message)
    if (message.needs is None) != (message.interests is None):
        raise EncodeError("needs without interests or interests without needs; give both or neither")
    parts = [
        port,
        fields.number(fields.SEQUENCE, message.sequence, fields.U32),
        fields.number(fields.FLAGS, message.flags, fields.U8),
        fields.byte_string(fields.MESH, message.mesh_id, fields.ID_B),
    ]
    if message.needs is not None:
        parts.append(fields.byte_string(fields.NEEDS, message.needs, FUZZY_HASH_B))
        parts.append(cbor.unsigned(fields.INTERESTS) + message.interests.encode())
    parts += [acknowledged, path]
    return cbor.mapping(len([part for part in parts if part])) + b"".join(parts)


_ENCODERS = {
    Publication: _encode_publication,
    Subscription: _encode_subscription,
    Acknowledgement: _encode_acknowledgement,
    SubscriptionAcknowledgement: _encode_subscription_acknowledgement,
}
_PROTECTED = {Publication: _protected_publication, Acknowledgement: _protected_acknowledgement}


# Decoding


def _kind(reader):
    reader.array("a message", _ELEMENTS)
    version = reader.unsigned("version")
    if version != VERSION:
        raise DecodeError("a message of version %d; this is version %d" % (version, VERSION))
    kind = reader.unsigned("type")
    if kind not in NAMES:
        raise DecodeError("a message of type %d; there are 1 to 4" % (kind,))
    return kind


def _decode_publication(reader, filter_bits):
    where = "unprotected map of the publication"
    outer = fields.read_map(reader, where, (fields.PORT, fields.TTL, fields.PATH, fields.HOPS))
    fields.require(outer, (fields.TTL, fields.HOPS), where)
    if fields.PORT not in outer and fields.PATH not in outer:
        raise DecodeError("the %s has neither port nor path" % (where,))
    protected, inner = _decode_protected(
        reader, "publication", (fields.TTL, fields.ID, fields.SEQUENCE, fields.ACKNOWLEDGE, fields.FILTER), filter_bits
    )
    if not inner[fields.SEQUENCE]:
        raise DecodeError("the sequence number of the publication is 0; the first one is 1")
    start = reader.at
    topics, data = (None, None) if _skip_secured(reader) else _decode_body(reader)
    return Publication(
        outer.get(fields.PORT),
        outer.get(fields.PATH) if fields.PORT not in outer else None,
        outer[fields.TTL],
        outer[fields.HOPS],
        inner[fields.TTL],
        inner[fields.ID],
        inner[fields.SEQUENCE],
        inner[fields.ACKNOWLEDGE],
        inner[fields.FILTER],
        topics,
        data,
        protected,
        bytes(reader.data[start : reader.at]),
    )


def _decode_protected(reader, name, keys, filter_bits=None):
    """(bytes, fields) of the protected map, which has all these keys."""
    where = "protected map of the " + name
    start = reader.at
    found = fields.read_map(reader, where, keys, filter_bits)
    fields.require(found, keys, where)
    return bytes(reader.data[start : reader.at]), found


def _skip_secured(reader):
    """Whether the next item is a tag of COSE, which is passed over then."""
    if reader.peek() != cbor.TAG:
        return False
    at = reader.at
    number = reader.tag("encrypted item")
    if number not in TAGS:
        raise DecodeError("byte %d: the fifth item has tag %d; those of COSE are 16, 18 and 96" % (at, number))
    reader.skip("encrypted item")
    return True


def _decode_body(reader):
    where = "last map of the publication"
    found = fields.read_map(reader, where, (fields.TOPICS, fields.DATA))
    fields.require(found, (fields.TOPICS, fields.DATA), where)
    return found[fields.TOPICS], found[fields.DATA]


def _decode_data(reader):
    where = "last map of the acknowledgement"
    found = fields.read_map(reader, where, (fields.DATA,))
    fields.require(found, (fields.DATA,), where)
    return found[fields.DATA]


def _decode_acknowledgement(reader, filter_bits):
    reader.skip_mapping("unprotected map of the acknowledgement")
    protected, inner = _decode_protected(reader, "acknowledgement", (fields.ID, fields.ACKNOWLEDGED))
    if not inner[fields.ACKNOWLEDGED]:
        raise DecodeError("the acknowledged sequence number is 0; the first one is 1")
    start = reader.at
    data = None if _skip_secured(reader) else _decode_data(reader)
    body = bytes(reader.data[start : reader.at])
    return Acknowledgement(inner[fields.ID], inner[fields.ACKNOWLEDGED], data, protected, body)


_LINK_KEYS = (fields.PORT, fields.SEQUENCE, fields.FLAGS, fields.MESH, fields.NEEDS, fields.INTERESTS, fields.PATH)


def _decode_subscription(reader, filter_bits):
    found = _decode_link(reader, "subscription", _LINK_KEYS, filter_bits)
    if not found[fields.FLAGS] & SAK_REQUESTED:
        raise DecodeError(
            "a subscription with flags %d that requests no answer; each one must" % (found[fields.FLAGS],)
        )
    return Subscription(*_link_values(found))


def _decode_subscription_acknowledgement(reader, filter_bits):
    found = _decode_link(reader, "subscription ack", _LINK_KEYS + (fields.ACKNOWLEDGED,), filter_bits)
    return SubscriptionAcknowledgement(*(_link_values(found) + (found.get(fields.ACKNOWLEDGED, 0),)))


def _link_values(found):
    return (
        found.get(fields.PORT),
        found.get(fields.PATH),
        found[fields.SEQUENCE],
        found[fields.FLAGS],
        found[fields.MESH],
        found.get(fields.NEEDS),
        found.get(fields.INTERESTS),
    )


def _decode_link(reader, name, keys, filter_bits):
    found = fields.read_map(reader, "unprotected map of the " + name, keys, filter_bits)
    fields.require(found, (fields.SEQUENCE, fields.FLAGS, fields.MESH), name)
    if (fields.PORT in found) == (fields.PATH in found):
        raise DecodeError("the %s must have a port or a path, and not both" % (name,))
    if found[fields.FLAGS] & SAK_REQUESTED and not found[fields.FLAGS] & UNLINK:
        fields.require(found, (fields.NEEDS, fields.INTERESTS), name)
    if (fields.NEEDS in found) != (fields.INTERESTS in found):
        raise DecodeError("the %s has needs without interests or interests without needs" % (name,))
    reader.skip_mapping("protected map of the " + name)
    reader.skip_mapping("last map of the " + name)
    return found


_DECODERS = {
    PUBLICATION: _decode_publication,
    SUBSCRIPTION: _decode_subscription,
    ACKNOWLEDGEMENT: _decode_acknowledgement,
    SUBSCRIPTION_ACKNOWLEDGEMENT: _decode_subscription_acknowledgement,
}
