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

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from struct import pack
from typing import Any, NamedTuple, TypeAlias

from workbench.errors import DecodeError, EncodeError
from workbench.protocols.dps.bloom import FUZZY_HASH_B, BitVector
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


class Publication(NamedTuple):
    """A publication. Of ``port`` and ``path`` one says where answers go, and the other is None.

    ttl_s            seconds that remain; -1 ends a retained publication
    lifetime_s       seconds that it began with
    topics, data     None if they are encrypted or signed
    protected, body  bytes of the protected map and of the fifth item as they came; empty in a message of this node's
                     own, where they are made from the other fields
    """

    port: int | None
    path: str | None
    ttl_s: int
    hops: int
    lifetime_s: int
    publication_id: bytes
    sequence: int
    acknowledge: bool
    filter: BitVector
    topics: Sequence[str] | None
    data: bytes | None
    protected: bytes = b""
    body: bytes = b""


class Subscription(NamedTuple):
    """Interests for a neighbor, with their needs (32 bytes); None where a message has neither."""

    port: int | None
    path: str | None
    sequence: int
    flags: int
    mesh_id: bytes
    needs: bytes | None
    interests: BitVector | None


class SubscriptionAcknowledgement(NamedTuple):
    """The answer to a subscription, with that message's number; it may bring interests in turn."""

    port: int | None
    path: str | None
    sequence: int
    flags: int
    mesh_id: bytes
    needs: bytes | None
    interests: BitVector | None
    acknowledged: int


class Acknowledgement(NamedTuple):
    """A subscriber's answer to the publication of a number. ``data`` is None if it is encrypted or signed."""

    publication_id: bytes
    acknowledged: int
    data: bytes | None
    protected: bytes = b""
    body: bytes = b""


Securable: TypeAlias = Publication | Acknowledgement
LinkMessage: TypeAlias = Subscription | SubscriptionAcknowledgement
Message: TypeAlias = Securable | LinkMessage
Values: TypeAlias = dict[int, Any]
KIND_OF: dict[type, int] = {
    Publication: PUBLICATION,
    Subscription: SUBSCRIPTION,
    Acknowledgement: ACKNOWLEDGEMENT,
    SubscriptionAcknowledgement: SUBSCRIPTION_ACKNOWLEDGEMENT,
}
_HEADS = {
    message: cbor.array(_ELEMENTS) + cbor.unsigned(VERSION) + cbor.unsigned(kind) for message, kind in KIND_OF.items()
}


def encode(message: Message) -> bytes:
    """Return the bytes of a message. ``protected`` and ``body`` go as they are.

    Raises EncodeError if a field is out of range.
    """
    protected = body = unprotected = _EMPTY
    if isinstance(message, Acknowledgement):
        protected, body = protected_map(message), message.body or body_map(message)
    elif isinstance(message, Publication):
        protected, body = protected_map(message), message.body or body_map(message)
        port, path = _port_and_path(message)
        hops = fields.number(fields.HOPS, message.hops, fields.U16)
        unprotected = cbor.mapping(3) + port + fields.seconds(message.ttl_s) + path + hops
    elif isinstance(message, Subscription):
        unprotected = _link_map(message, b"")
    elif isinstance(message, SubscriptionAcknowledgement):
        unprotected = _link_map(message, fields.number(fields.ACKNOWLEDGED, message.acknowledged, fields.U32))
    else:
        raise EncodeError(f"{message!r} is not a message of DPS")
    return b"".join((_HEADS[type(message)], unprotected, protected, body))


def decode(frame: bytes, filter_bits: int | None = None) -> Message:
    """The message in a frame; DecodeError, and nothing else, for bytes that the C implementation would drop.

    With ``filter_bits``, the length of filters in this mesh, one of another length is refused before it is unpacked.
    """
    reader = cbor.Reader(frame)
    kind = _kind(reader)
    if kind == PUBLICATION:
        return _decode_publication(reader, filter_bits)
    return _decode_acknowledgement(reader) if kind == ACKNOWLEDGEMENT else _decode_link(reader, kind, filter_bits)


def forwarded(publication: Publication, port: int, ttl_s: int, path: str | None = None) -> Publication:
    """The publication as the next node gets it from us: one hop more, our port, and the ttl that remains."""
    return publication._replace(port=port, path=path, ttl_s=ttl_s, hops=publication.hops + 1)


def protected_map(message: Securable) -> bytes:
    """The bytes of the protected map of a Publication or an Acknowledgement: what encryption and signatures cover."""
    if message.protected:
        return message.protected
    identity = fields.byte_string(fields.ID, message.publication_id, fields.ID_B)
    if isinstance(message, Acknowledgement):
        return cbor.mapping(2) + identity + fields.number(fields.ACKNOWLEDGED, message.acknowledged, fields.U32)
    return b"".join(
        (
            cbor.mapping(5),
            fields.seconds(message.lifetime_s),
            identity,
            fields.number(fields.SEQUENCE, message.sequence, fields.U32),
            cbor.unsigned(fields.ACKNOWLEDGE) + cbor.boolean(message.acknowledge),
            cbor.unsigned(fields.FILTER) + message.filter.encode(),
        )
    )


def body_map(message: Securable) -> bytes:
    """The bytes of the fifth item before encryption: topics and data, or data."""
    if isinstance(message, Publication):
        assert message.topics is not None, "the body of a secured publication is its COSE item"
        head = cbor.mapping(2) + cbor.unsigned(fields.TOPICS) + cbor.array(len(message.topics))
        return head + b"".join(map(fields.text, message.topics)) + fields.byte_string(fields.DATA, message.data)
    return cbor.mapping(1) + fields.byte_string(fields.DATA, message.data)


def secured(message: Securable, body: bytes) -> Securable:
    """The message with ``body``, the bytes of a COSE item, in the place of what it says."""
    protected = protected_map(message)
    if isinstance(message, Publication):
        return message._replace(topics=None, data=None, protected=protected, body=body)
    return message._replace(data=None, protected=protected, body=body)


def opened(message: Securable, plain: bytes) -> Securable:
    """The message with what was encrypted or signed in it, from ``plain``, the bytes of that map.

    ``body`` stays as it came, so it is passed on as it came. DecodeError if the map is not what it should be.
    """
    reader = cbor.Reader(plain)
    if isinstance(message, Publication):
        topics, data = _decode_body(reader)
        return message._replace(topics=topics, data=data)
    return message._replace(data=_decode_data(reader))


def make_publication_id(address: int, series: int, draw: bytes) -> bytes:
    """16 bytes: the address, the number of the series at this node, and 8 bytes that are drawn."""
    if not (0 <= address <= fields.I31 and 0 <= series <= fields.I31 and len(draw) == 8):
        raise EncodeError(f"address {address} or series {series} does not fit 31 bits, or the draw not 8 bytes")
    return pack(">II", address, series) + draw


def describe(frame: bytes, broadcast: bool = True) -> tuple[str, int, int]:
    """(message name, origin, sequence) of a frame this module encoded, for traces.

    Of a publication and its acknowledgement the sequence is its series and its number, ``series << 32 | number``, if
    the publication id is of `make_publication_id`; other ids give numbers that say nothing. Others: their revision.
    """
    reader = cbor.Reader(frame)
    kind = _kind(reader)
    if kind in (SUBSCRIPTION, SUBSCRIPTION_ACKNOWLEDGEMENT):
        return NAMES[kind], NOBODY, _short_values(reader)[fields.SEQUENCE]
    reader.skip("unprotected map")
    values = _short_values(reader)
    origin, series = origin_of(values[fields.ID])
    number = values[fields.SEQUENCE if kind == PUBLICATION else fields.ACKNOWLEDGED]
    return NAMES[kind], origin, series << 32 | number


def origin_of(publication_id: bytes) -> tuple[int, int]:
    """(address, series) of an id of `make_publication_id`."""
    high = int.from_bytes(publication_id[:8], "big")
    return high >> 32 & fields.I31, high & fields.I31


def _short_values(reader: cbor.Reader) -> Values:
    """{key: value} of a map, without the values that take time to read."""
    values = {}
    for _ in range(reader.mapping("map")):
        key = reader.unsigned("key")
        if key == fields.ID:
            values[key] = reader.byte_string("publication id", fields.ID_B)
        elif reader.peek() == cbor.UNSIGNED:
            values[key] = reader.unsigned("value")
        else:
            reader.skip("value")
    return values


# Encoding


def _port_and_path(message: Publication | LinkMessage) -> tuple[bytes, bytes]:
    """(the port's field, the path's field): one of them is b""."""
    if (message.port is None) == (message.path is None):
        raise EncodeError(f"port {message.port!r} and path {message.path!r}: one of them must be given")
    if message.path is None:
        return fields.number(fields.PORT, message.port, fields.U16), b""
    return b"", cbor.unsigned(fields.PATH) + fields.text(message.path)


def _link_map(message: LinkMessage, acknowledged: bytes) -> bytes:
    port, path = _port_and_path(message)
    if (message.needs is None) != (message.interests is None):
        raise EncodeError("needs without interests or interests without needs; give both or neither")
    parts = [
        port,
        fields.number(fields.SEQUENCE, message.sequence, fields.U32),
        fields.number(fields.FLAGS, message.flags, fields.U8),
        fields.byte_string(fields.MESH, message.mesh_id, fields.ID_B),
    ]
    if message.needs is not None and message.interests is not None:
        parts.append(fields.byte_string(fields.NEEDS, message.needs, FUZZY_HASH_B))
        parts.append(cbor.unsigned(fields.INTERESTS) + message.interests.encode())
    parts += [acknowledged, path]
    return cbor.mapping(len([part for part in parts if part])) + b"".join(parts)


# Decoding


def _kind(reader: cbor.Reader) -> int:
    reader.array("a message", _ELEMENTS)
    version = reader.unsigned("version")
    if version != VERSION:
        raise DecodeError(f"a message of version {version}; this is version {VERSION}")
    kind = reader.unsigned("type")
    if kind not in NAMES:
        raise DecodeError(f"a message of type {kind}; there are 1 to 4")
    return kind


_OUTER_KEYS = (fields.PORT, fields.TTL, fields.PATH, fields.HOPS)
_PROTECTED_KEYS = (fields.TTL, fields.ID, fields.SEQUENCE, fields.ACKNOWLEDGE, fields.FILTER)
_protected_values = itemgetter(*_PROTECTED_KEYS)


def _decode_publication(reader: cbor.Reader, filter_bits: int | None) -> Publication:
    where = "unprotected map of the publication"
    outer = fields.read_map(reader, where, _OUTER_KEYS)
    fields.require(outer, (fields.TTL, fields.HOPS), where)
    if fields.PORT not in outer and fields.PATH not in outer:
        raise DecodeError(f"the {where} has neither port nor path")
    protected, inner = _decode_protected(reader, "publication", _PROTECTED_KEYS, filter_bits)
    if not inner[fields.SEQUENCE]:
        raise DecodeError("the sequence number of the publication is 0; the first one is 1")
    start = reader.at
    topics, data = (None, None) if _skip_secured(reader) else _decode_body(reader)
    port, path = outer.get(fields.PORT), outer.get(fields.PATH)
    ttl_s, hops = outer[fields.TTL], outer[fields.HOPS]
    body = bytes(reader.data[start : reader.at])
    values = (port, path if port is None else None, ttl_s, hops, *_protected_values(inner))
    return Publication._make((*values, topics, data, protected, body))


def _decode_protected(
    reader: cbor.Reader, name: str, keys: tuple[int, ...], filter_bits: int | None = None
) -> tuple[bytes, Values]:
    """(bytes, fields) of the protected map, which has all these keys."""
    start = reader.at
    values = _read_whole(reader, "protected map of the " + name, keys, filter_bits)
    return bytes(reader.data[start : reader.at]), values


def _read_whole(reader: cbor.Reader, where: str, keys: tuple[int, ...], filter_bits: int | None = None) -> Values:
    """Return the fields of a map that has all these keys."""
    values = fields.read_map(reader, where, keys, filter_bits)
    fields.require(values, keys, where)
    return values


def _skip_secured(reader: cbor.Reader) -> bool:
    """Whether the next item is a tag of COSE, which is passed over then."""
    if reader.peek() != cbor.TAG:
        return False
    at = reader.at
    number = reader.tag("encrypted item")
    if number not in TAGS:
        raise DecodeError(f"byte {at}: the fifth item has tag {number}; those of COSE are 16, 18 and 96")
    reader.skip("encrypted item")
    return True


def _decode_body(reader: cbor.Reader) -> tuple[tuple[str, ...], bytes]:
    values = _read_whole(reader, "last map of the publication", (fields.TOPICS, fields.DATA))
    return values[fields.TOPICS], values[fields.DATA]


def _decode_data(reader: cbor.Reader) -> bytes:
    return _read_whole(reader, "last map of the acknowledgement", (fields.DATA,))[fields.DATA]


def _decode_acknowledgement(reader: cbor.Reader) -> Acknowledgement:
    reader.skip_mapping("unprotected map of the acknowledgement")
    protected, inner = _decode_protected(reader, "acknowledgement", (fields.ID, fields.ACKNOWLEDGED))
    if not inner[fields.ACKNOWLEDGED]:
        raise DecodeError("the acknowledged sequence number is 0; the first one is 1")
    start = reader.at
    data = None if _skip_secured(reader) else _decode_data(reader)
    body = bytes(reader.data[start : reader.at])
    return Acknowledgement(inner[fields.ID], inner[fields.ACKNOWLEDGED], data, protected, body)


_LINK_KEYS = (
    fields.PORT,
    fields.PATH,
    fields.SEQUENCE,
    fields.FLAGS,
    fields.MESH,
    fields.NEEDS,
    fields.INTERESTS,
)


def _decode_link(reader: cbor.Reader, kind: int, filter_bits: int | None) -> LinkMessage:
    name, is_answer = NAMES[kind], kind == SUBSCRIPTION_ACKNOWLEDGEMENT
    keys = (*_LINK_KEYS, fields.ACKNOWLEDGED) if is_answer else _LINK_KEYS
    values = fields.read_map(reader, "unprotected map of the " + name, keys, filter_bits)
    fields.require(values, (fields.SEQUENCE, fields.FLAGS, fields.MESH), name)
    if (fields.PORT in values) == (fields.PATH in values):
        raise DecodeError(f"the {name} must have a port or a path, and not both")
    flags = values[fields.FLAGS]
    if flags & SAK_REQUESTED and not flags & UNLINK:
        fields.require(values, (fields.NEEDS, fields.INTERESTS), name)
    if (fields.NEEDS in values) != (fields.INTERESTS in values):
        raise DecodeError(f"the {name} has needs without interests or interests without needs")
    reader.skip_mapping("protected map of the " + name)
    reader.skip_mapping("last map of the " + name)
    contents: tuple[Any, ...] = tuple(map(values.get, _LINK_KEYS))
    if is_answer:
        return SubscriptionAcknowledgement._make((*contents, values.get(fields.ACKNOWLEDGED, 0)))
    if not flags & SAK_REQUESTED:
        raise DecodeError(f"a subscription with flags {flags} that requests no answer; each one must")
    return Subscription(*contents)
