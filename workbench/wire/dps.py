"""DPS's messages: bytes <-> publications, subscriptions and their acknowledgements, as the C implementation has them.

Layout (CBOR: definite lengths, shortest integers)
    [version 1, type, unprotected map, protected map, fifth item]; the keys of a map ascend:

    1 port u16, 2 ttl i16 (s), 3 publication id 16 B, 4 sequence u32, 5 acknowledgement requested, 6 Bloom filter, 7
    flags u8, 8 mesh id 16 B, 9 needs 32 B, 10 interests, 11 topics, 12 data, 13 acknowledged sequence u32, 14 path, 15
    hop count u16

                                  unprotected                 protected        fifth item
    publication            1      1 or 14, 2, 15              2, 3, 4, 5, 6    {11, 12} or COSE (tag 16, 18 or 96)
    subscription           2      1, 4, 7, 8, (9, 10), or 14  {}               {}
    acknowledgement        3      {}                          3, 13            {12} or COSE
    subscription ack       4      1, 4, 7, 8, (9, 10), 13, or 14  {}           {}

    Bit vectors are `workbench.bloom`'s. Needs and interests are there if the flags ask for an answer (SAK_REQUESTED),
    but not in an unlink. A multicast message is in an envelope of CoAP: `wrap`, `unwrap`.

Theory of operation
    Protected map and fifth item of a publication and an acknowledgement are kept as they came: a node that passes them
    on sends the same bytes (`forwarded`), which is what encryption and signatures are over.

    Decoding is as strict as the C implementation, which walks the maps: unknown keys are skipped, keys out of order are
    refused, so are more or fewer than five items, indefinite lengths, a missing field, a number 0 of a publication or
    in an acknowledgement. Bytes behind the array are ignored, and so is what is in a map that should be empty.

Differs from the message layout that the project's documentation draws
    flags         1 delta, 2 answer requested, 4 unlink, 8 mute, 16 unmute: the documentation has mute 2 and answer 4.
    unlink        it has flags and mesh id; needs and interests alone are missing.
    subscription ack    it has sequence, flags and mesh id, and may have needs and interests.
    acknowledgement     its data is never missing; an empty payload is an empty byte string.
    bit vectors   run lengths or bytes by the load, not by what is shorter.

Limits
    A datagram over UDP holds 65,507 bytes. Times are whole seconds, up to 32,767.

Reference
    https://github.com/intel/dps-for-iot, commit b92a83660427; RFC 7252 for the envelope.
"""

from collections import namedtuple
from struct import pack

from workbench.bloom import FUZZY_HASH_B, BitVector
from workbench.errors import DecodeError, EncodeError
from workbench.wire import cbor

PUBLICATION, SUBSCRIPTION, ACKNOWLEDGEMENT, SUBSCRIPTION_ACKNOWLEDGEMENT = 1, 2, 3, 4
NAMES = {
    PUBLICATION: "publication",
    SUBSCRIPTION: "subscription",
    ACKNOWLEDGEMENT: "acknowledgement",
    SUBSCRIPTION_ACKNOWLEDGEMENT: "subscription ack",
}
# Flags of a subscription and its acknowledgement.
DELTA, SAK_REQUESTED, UNLINK, MUTE, UNMUTE = 1, 2, 4, 8, 16

VERSION = 1
NOBODY = -1
ID_B = 16
LARGEST_DATAGRAM_B = 65507
LONGEST_TTL_S = 0x7FFF
TAGS = (16, 18, 96)  # COSE: encrypted, signed, encrypted with recipients
_U8, _U16, _U32, _I31 = 0xFF, 0xFFFF, 0xFFFFFFFF, 0x7FFFFFFF
_ELEMENTS = 5
_EMPTY = cbor.mapping(0)
(
    _PORT,
    _TTL,
    _ID,
    _SEQUENCE,
    _ACKNOWLEDGE,
    _FILTER,
    _FLAGS,
    _MESH,
    _NEEDS,
    _INTERESTS,
    _TOPICS,
    _DATA,
    _ACKNOWLEDGED,
    _PATH,
    _HOPS,
) = range(1, 16)

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
        return _encode_topics(message.topics) + _bytes(_DATA, message.data)
    return cbor.mapping(1) + _bytes(_DATA, message.data)


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
    if not (0 <= address <= _I31 and 0 <= series <= _I31 and len(draw) == 8):
        raise EncodeError("address %d or series %d does not fit 31 bits, or the draw not 8 bytes" % (address, series))
    return pack(">II", address, series) + draw


def describe(frame, broadcast=True):
    """(message name, origin, sequence) of a frame this module encoded, for traces.

    Of a publication and its acknowledgement the sequence is its series and its number, ``series << 32 | number``, if
    the publication id is of `make_publication_id`; other ids give numbers that say nothing. Others: their revision.
    """
    reader = cbor.Reader(frame)
    kind = _kind(reader)
    fields = {}
    if kind == PUBLICATION:
        reader.skip("unprotected map")
        fields = _short_fields(reader)
        number = fields.get(_SEQUENCE, 0)
    elif kind == ACKNOWLEDGEMENT:
        reader.skip("unprotected map")
        fields = _short_fields(reader)
        number = fields.get(_ACKNOWLEDGED, 0)
    else:
        return NAMES[kind], NOBODY, _short_fields(reader).get(_SEQUENCE, 0)
    origin, series = origin_of(fields.get(_ID, bytes(ID_B)))
    return NAMES[kind], origin, series << 32 | number


def origin_of(publication_id):
    """(address, series) of an id of `make_publication_id`."""
    high = int.from_bytes(publication_id[:8], "big")
    return high >> 32 & _I31, high & _I31


def _short_fields(reader):
    fields = {}
    for _ in range(reader.mapping("map")):
        key = reader.unsigned("key")
        major = reader.peek()
        if key == _ID:
            fields[key] = reader.byte_string("publication id", ID_B)
        elif major == cbor.UNSIGNED:
            fields[key] = reader.unsigned("value")
        else:
            reader.skip("value")
    return fields


# CoAP: non-confirmable PUT, Uri-Path (11) of 8 bytes, Content-Format (12) 60: CBOR. The NUL is the reference's.
_COAP_OPTIONS = b"\xb8dps/pub\x00\x11\x3c\xff"
_COAP_HEAD_B = 4
_COAP_VERSION_AND_TYPE, _COAP_NON_CONFIRMABLE = 0xF0, 0x50
_COAP_PAYLOAD = 0xFF


def wrap(frame, message_id):
    """A frame in the envelope of a multicast; message_id: counts from 1, 16 bits."""
    return b"\x50\x03" + pack(">H", message_id & _U16) + _COAP_OPTIONS + frame


def unwrap(datagram):
    """The frame in an envelope; DecodeError unless it is a non-confirmable CoAP message. Its options are ignored."""
    size = len(datagram)
    if size < _COAP_HEAD_B or datagram[0] & _COAP_VERSION_AND_TYPE != _COAP_NON_CONFIRMABLE:
        raise DecodeError("%d bytes that begin with %r are no non-confirmable CoAP message" % (size, datagram[:1]))
    at = _COAP_HEAD_B + (datagram[0] & 0x0F)
    if datagram[0] & 0x0F > 8:
        raise DecodeError("a CoAP token of %d bytes; it has 8 at most" % (datagram[0] & 0x0F,))
    while at < size and datagram[at] != _COAP_PAYLOAD:
        first = datagram[at]
        _, at = _coap_extended(datagram, first >> 4, at + 1)
        length, at = _coap_extended(datagram, first & 0x0F, at)
        at += length
    if at >= size - 1:
        raise DecodeError("a CoAP message of %d bytes without a payload" % (size,))
    return bytes(datagram[at + 1 :])


def _coap_extended(datagram, nibble, at):
    """(value, the next byte) of a number of an option, which goes on in 1 or 2 bytes if it begins with 13 or 14."""
    if nibble < 13:
        return nibble, at
    more = nibble - 12
    if nibble == 15 or at + more > len(datagram):
        raise DecodeError("byte %d: an option of a CoAP message is cut short or of a reserved length" % (at,))
    return int.from_bytes(datagram[at : at + more], "big") + (13 if more == 1 else 269), at + more


# Encoding


def _number(key, value, largest):
    if not (isinstance(value, int) and 0 <= value <= largest):
        raise EncodeError("field %d is %r; it may be 0 to %d" % (key, value, largest))
    return cbor.unsigned(key) + cbor.unsigned(value)


def _bytes(key, data, length=None):
    if not isinstance(data, (bytes, bytearray)) or (length is not None and len(data) != length):
        raise EncodeError("field %d is %r; it must be %s bytes" % (key, data, "some" if length is None else length))
    return cbor.unsigned(key) + cbor.byte_string(bytes(data))


def _seconds(value):
    if not -1 - LONGEST_TTL_S <= value <= LONGEST_TTL_S:
        raise EncodeError("a ttl of %r s; it may be up to %d" % (value, LONGEST_TTL_S))
    return cbor.unsigned(_TTL) + cbor.integer(value)


def _port_and_path(message):
    """(the port's field, the path's field): one of them is b""."""
    if (message.port is None) == (message.path is None):
        raise EncodeError("port %r and path %r: one of them must be given" % (message.port, message.path))
    if message.path is None:
        return _number(_PORT, message.port, _U16), b""
    return b"", cbor.unsigned(_PATH) + cbor.text(message.path.encode("utf-8", "surrogateescape"))


def _encode_publication(publication):
    port, path = _port_and_path(publication)
    ttl = _seconds(publication.ttl_s)
    unprotected = cbor.mapping(3) + port + ttl + path + _number(_HOPS, publication.hops, _U16)
    return PUBLICATION, unprotected, protected_map(publication), publication.body or body_map(publication)


def _protected_publication(publication):
    return b"".join(
        (
            cbor.mapping(5),
            _seconds(publication.lifetime_s),
            _bytes(_ID, publication.publication_id, ID_B),
            _number(_SEQUENCE, publication.sequence, _U32),
            cbor.unsigned(_ACKNOWLEDGE) + cbor.boolean(publication.acknowledge),
            cbor.unsigned(_FILTER) + publication.filter.encode(),
        )
    )


def _encode_topics(topics):
    parts = [cbor.mapping(2), cbor.unsigned(_TOPICS), cbor.array(len(topics))]
    for topic in topics:
        parts.append(cbor.text(topic if isinstance(topic, bytes) else topic.encode("utf-8", "surrogateescape")))
    return b"".join(parts)


def _encode_acknowledgement(acknowledgement):
    body = acknowledgement.body or body_map(acknowledgement)
    return ACKNOWLEDGEMENT, _EMPTY, protected_map(acknowledgement), body


def _protected_acknowledgement(acknowledgement):
    identity = _bytes(_ID, acknowledgement.publication_id, ID_B)
    return cbor.mapping(2) + identity + _number(_ACKNOWLEDGED, acknowledgement.acknowledged, _U32)


def _encode_subscription(subscription):
    return SUBSCRIPTION, _encode_link(subscription, b""), _EMPTY, _EMPTY


def _encode_subscription_acknowledgement(acknowledgement):
    acknowledged = _number(_ACKNOWLEDGED, acknowledgement.acknowledged, _U32)
    return SUBSCRIPTION_ACKNOWLEDGEMENT, _encode_link(acknowledgement, acknowledged), _EMPTY, _EMPTY


def _encode_link(message, acknowledged):
    port, path = _port_and_path(message)
    if (message.needs is None) != (message.interests is None):
        raise EncodeError("needs without interests or interests without needs; give both or neither")
    fields = [port, _number(_SEQUENCE, message.sequence, _U32), _number(_FLAGS, message.flags, _U8)]
    fields.append(_bytes(_MESH, message.mesh_id, ID_B))
    if message.needs is not None:
        fields.append(_bytes(_NEEDS, message.needs, FUZZY_HASH_B))
        fields.append(cbor.unsigned(_INTERESTS) + message.interests.encode())
    fields += [acknowledged, path]
    return cbor.mapping(len([field for field in fields if field])) + b"".join(fields)


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


def _fields(reader, where, known, filter_bits=None):
    """{key: value} of a map; the keys of ``known`` are read and the others skipped. All keys must ascend."""
    fields = {}
    last = None
    for _ in range(reader.mapping(where)):
        at = reader.at
        key = reader.integer("a key", -1 - _I31, _I31)
        if last is not None and key <= last:
            raise DecodeError("byte %d: key %d after key %d; the keys of a map must ascend" % (at, key, last))
        last = key
        if key in known:
            fields[key] = _READ[key](reader, filter_bits)
        else:
            reader.skip("the value of key %d" % (key,))
    return fields


def _required(fields, keys, where):
    for key in keys:
        if key not in fields:
            raise DecodeError("the %s is without %s" % (where, _FIELD_NAMES[key]))


def _read_ttl(reader, filter_bits):
    return reader.integer("ttl", -1 - LONGEST_TTL_S, LONGEST_TTL_S)


def _read_topics(reader, filter_bits):
    return tuple([_text(reader, "a topic") for _ in range(reader.array("topics"))])


def _text(reader, what):
    # What is no UTF-8 becomes lone surrogates, and the same bytes again when it is encoded.
    return reader.text(what).decode("utf-8", "surrogateescape")


_FIELD_NAMES = {
    _PORT: "port",
    _TTL: "ttl",
    _ID: "publication id",
    _SEQUENCE: "sequence number",
    _ACKNOWLEDGE: "acknowledgement request",
    _FILTER: "Bloom filter",
    _FLAGS: "flags",
    _MESH: "mesh id",
    _NEEDS: "needs",
    _INTERESTS: "interests",
    _TOPICS: "topics",
    _DATA: "data",
    _ACKNOWLEDGED: "acknowledged sequence number",
    _PATH: "path",
    _HOPS: "hop count",
}
_READ = {
    _PORT: lambda reader, filter_bits: reader.unsigned("port", _U16),
    _TTL: _read_ttl,
    _ID: lambda reader, filter_bits: reader.byte_string("publication id", ID_B),
    _SEQUENCE: lambda reader, filter_bits: reader.unsigned("sequence number", _U32),
    _ACKNOWLEDGE: lambda reader, filter_bits: reader.boolean("acknowledgement request"),
    _FILTER: lambda reader, filter_bits: BitVector.read(reader, filter_bits),
    _FLAGS: lambda reader, filter_bits: reader.unsigned("flags", _U8),
    _MESH: lambda reader, filter_bits: reader.byte_string("mesh id", ID_B),
    _NEEDS: lambda reader, filter_bits: reader.byte_string("needs", FUZZY_HASH_B),
    _INTERESTS: lambda reader, filter_bits: BitVector.read(reader, filter_bits),
    _TOPICS: _read_topics,
    _DATA: lambda reader, filter_bits: reader.byte_string("data"),
    _ACKNOWLEDGED: lambda reader, filter_bits: reader.unsigned("acknowledged sequence number", _U32),
    _PATH: lambda reader, filter_bits: _text(reader, "path"),
    _HOPS: lambda reader, filter_bits: reader.unsigned("hop count", _U16),
}


def _decode_publication(reader, filter_bits):
    where = "unprotected map of the publication"
    outer = _fields(reader, where, (_PORT, _TTL, _PATH, _HOPS))
    _required(outer, (_TTL, _HOPS), where)
    if _PORT not in outer and _PATH not in outer:
        raise DecodeError("the %s has neither port nor path" % (where,))
    protected, inner = _decode_protected(
        reader, "publication", (_TTL, _ID, _SEQUENCE, _ACKNOWLEDGE, _FILTER), filter_bits
    )
    if not inner[_SEQUENCE]:
        raise DecodeError("the sequence number of the publication is 0; the first one is 1")
    start = reader.at
    topics, data = (None, None) if _skip_secured(reader) else _decode_body(reader)
    return Publication(
        outer.get(_PORT),
        outer.get(_PATH) if _PORT not in outer else None,
        outer[_TTL],
        outer[_HOPS],
        inner[_TTL],
        inner[_ID],
        inner[_SEQUENCE],
        inner[_ACKNOWLEDGE],
        inner[_FILTER],
        topics,
        data,
        protected,
        bytes(reader.data[start : reader.at]),
    )


def _decode_protected(reader, name, keys, filter_bits=None):
    """(bytes, fields) of the protected map, which has all these keys."""
    where = "protected map of the " + name
    start = reader.at
    fields = _fields(reader, where, keys, filter_bits)
    _required(fields, keys, where)
    return bytes(reader.data[start : reader.at]), fields


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
    fields = _fields(reader, where, (_TOPICS, _DATA))
    _required(fields, (_TOPICS, _DATA), where)
    return fields[_TOPICS], fields[_DATA]


def _decode_data(reader):
    where = "last map of the acknowledgement"
    fields = _fields(reader, where, (_DATA,))
    _required(fields, (_DATA,), where)
    return fields[_DATA]


def _decode_acknowledgement(reader, filter_bits):
    reader.skip_mapping("unprotected map of the acknowledgement")
    protected, inner = _decode_protected(reader, "acknowledgement", (_ID, _ACKNOWLEDGED))
    if not inner[_ACKNOWLEDGED]:
        raise DecodeError("the acknowledged sequence number is 0; the first one is 1")
    start = reader.at
    data = None if _skip_secured(reader) else _decode_data(reader)
    body = bytes(reader.data[start : reader.at])
    return Acknowledgement(inner[_ID], inner[_ACKNOWLEDGED], data, protected, body)


_LINK_KEYS = (_PORT, _SEQUENCE, _FLAGS, _MESH, _NEEDS, _INTERESTS, _PATH)


def _decode_subscription(reader, filter_bits):
    fields = _decode_link(reader, "subscription", _LINK_KEYS, filter_bits)
    if not fields[_FLAGS] & SAK_REQUESTED:
        raise DecodeError("a subscription with flags %d that requests no answer; each one must" % (fields[_FLAGS],))
    return Subscription(*_link_values(fields))


def _decode_subscription_acknowledgement(reader, filter_bits):
    fields = _decode_link(reader, "subscription ack", _LINK_KEYS + (_ACKNOWLEDGED,), filter_bits)
    return SubscriptionAcknowledgement(*(_link_values(fields) + (fields.get(_ACKNOWLEDGED, 0),)))


def _link_values(fields):
    return (
        fields.get(_PORT),
        fields.get(_PATH),
        fields[_SEQUENCE],
        fields[_FLAGS],
        fields[_MESH],
        fields.get(_NEEDS),
        fields.get(_INTERESTS),
    )


def _decode_link(reader, name, keys, filter_bits):
    fields = _fields(reader, "unprotected map of the " + name, keys, filter_bits)
    _required(fields, (_SEQUENCE, _FLAGS, _MESH), name)
    if (_PORT in fields) == (_PATH in fields):
        raise DecodeError("the %s must have a port or a path, and not both" % (name,))
    if fields[_FLAGS] & SAK_REQUESTED and not fields[_FLAGS] & UNLINK:
        _required(fields, (_NEEDS, _INTERESTS), name)
    if (_NEEDS in fields) != (_INTERESTS in fields):
        raise DecodeError("the %s has needs without interests or interests without needs" % (name,))
    reader.skip_mapping("protected map of the " + name)
    reader.skip_mapping("last map of the " + name)
    return fields


_DECODERS = {
    PUBLICATION: _decode_publication,
    SUBSCRIPTION: _decode_subscription,
    ACKNOWLEDGEMENT: _decode_acknowledgement,
    SUBSCRIPTION_ACKNOWLEDGEMENT: _decode_subscription_acknowledgement,
}
