"""DPS's messages: encoding and decoding of publications, subscriptions and their acknowledgements.

The bytes are those of the C implementation.

Layout (CBOR: definite lengths, shortest integers)
    [version 1, type, unprotected map, protected map, fifth item]; the keys of a map ascend.

    The tables FIELDS and MAPS of ``fields.py`` describe the fields and the maps of each message; docs/FRAMES.md shows
    them. The fifth item of a publication or an acknowledgement is a map, or COSE (tag 16, 18 or 96). A message contains
    the port of its sender or, in place of it, a path: the name of a pipe, which a C node may use instead of UDP.

    Bit vectors are encoded by `workbench.protocols.dps.bloom`. Needs and interests are present if the flags request an
    answer (SAK_REQUESTED), except in an unlink. A multicast message has a CoAP envelope (protocols/dps/wire/coap.py).

Theory of operation
    The decoder keeps the bytes of the protected map and the fifth item of a publication or acknowledgement. A node that
    forwards the message (`with_next_hop`) sends the same bytes, as encryption and signatures cover them.

    Decoding is as strict as in the C implementation, which reads the maps in order. Unknown keys are skipped. Keys out
    of order are refused, and so are more or fewer than five items, indefinite lengths, missing fields, and the sequence
    number 0. Bytes after the array are ignored, and so are the contents of a map that should be empty.

Differs from the message layout in the documentation of the C implementation
    flags               1 delta, 2 answer requested, 4 unlink, 8 mute, 16 unmute; in the documentation, mute is 2 and
                        answer requested is 4. Only this project uses the flag 32: the sender counts hops in mesh ids.
                        The C implementation ignores this flag.
    unlink              the message has flags and mesh id; only needs and interests are missing.
    subscription ack    the message has sequence, flags and mesh id, and may have needs and interests.
    acknowledgement     the data are always present; an empty payload is an empty byte string.
    bit vectors         the share of set bits decides whether run lengths or plain bytes are sent, not the size. Unlike
                        the C implementation, this project also sends plain bytes if run lengths would be longer.

Limits
    A UDP datagram holds 65,507 bytes. Times are whole seconds, up to 32,767.

    A DPS node runs on CPython only: motes have neither BitVector nor the memory for it.

Reference
    https://github.com/intel/dps-for-iot, commit b92a83660427.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from struct import pack
from typing import Any, NamedTuple, TypeAlias

from workbench.errors import DecodeError, EncodeError
from workbench.protocols.dps.bloom import BitVector
from workbench.protocols.dps.wire import cbor, fields

NAMES = {kind: maps.name for kind, maps in fields.MAPS.items()}
PUBLICATION, SUBSCRIPTION, ACKNOWLEDGEMENT, SUBSCRIPTION_ACKNOWLEDGEMENT = range(1, 5)
# Flags of a subscription and its acknowledgement.
DELTA, SAK_REQUESTED, UNLINK, MUTE, UNMUTE, COUNTS_HOPS = 1, 2, 4, 8, 16, 32

VERSION = 1
NOBODY = -1
LARGEST_DATAGRAM_B = 65507
LONGEST_TTL_S = fields.LONGEST_TTL_S
TAGS = (16, 18, 96)  # of COSE: encrypted, signed, encrypted with recipients
_ELEMENTS = 5
_EMPTY = cbor.mapping(0)


class Publication(NamedTuple):
    """A publication message.

    port, path       UDP port, or name of a pipe, to which answers are sent; exactly one of the two is not None
    ttl_s            remaining lifetime in seconds; -1 ends a retained publication
    lifetime_s       initial lifetime in seconds
    topics, data     None if they are encrypted or signed
    protected, body  received bytes of the protected map and of the fifth item. In a new message both are empty, and
                     `encode` computes these bytes from the other fields
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
    """A subscription message, by which a node sends its interests and needs to a neighbor.

    Interests are the union of the Bloom filters of subscriptions. Needs are the bits that the fuzzy hashes of these
    filters share, in 32 bytes. Both are None if the message ends the link.
    """

    port: int | None
    path: str | None
    sequence: int
    flags: int
    mesh_id: bytes
    needs: bytes | None
    interests: BitVector | None


class SubscriptionAcknowledgement(NamedTuple):
    """An acknowledgement of the subscription message with the sequence number ``acknowledged``.

    ``interests`` and ``needs``: as in `Subscription`, of the node that acknowledges; None if the message lacks them.
    """

    port: int | None
    path: str | None
    sequence: int
    flags: int
    mesh_id: bytes
    needs: bytes | None
    interests: BitVector | None
    acknowledged: int


class Acknowledgement(NamedTuple):
    """A subscriber's acknowledgement of the publication with the sequence number ``acknowledged``.

    ``data`` is None if the message is encrypted or signed. ``protected`` and ``body``: as in `Publication`.
    """

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
_MESSAGE_HEADS = {
    message: cbor.array(_ELEMENTS) + cbor.unsigned(VERSION) + cbor.unsigned(kind) for message, kind in KIND_OF.items()
}


def encode(message: Message) -> bytes:
    """Return the encoded bytes of a message.

    A received publication or acknowledgement has the received bytes of its protected map (``protected``) and of its
    fifth item (``body``); these bytes are used unchanged. If the two fields are empty, both parts are encoded from the
    message's other fields. Raises EncodeError if a field is out of range.
    """
    encoded_protected = encoded_body = unprotected = _EMPTY
    if isinstance(message, Acknowledgement):
        encoded_protected, encoded_body = protected_map(message), message.body or body_map(message)
    elif isinstance(message, Publication):
        encoded_protected, encoded_body = protected_map(message), message.body or body_map(message)
        port, path = _encode_port_and_path(message)
        hops = fields.number(fields.HOPS, message.hops)
        unprotected = cbor.mapping(3) + port + fields.seconds(message.ttl_s) + path + hops
    elif isinstance(message, Subscription):
        unprotected = _encode_link_map(message, b"")
    elif isinstance(message, SubscriptionAcknowledgement):
        unprotected = _encode_link_map(message, fields.number(fields.ACKNOWLEDGED, message.acknowledged))
    else:
        raise EncodeError(
            f"{message!r} is not a message; its type must be one of "
            f"{', '.join(message_class.__name__ for message_class in KIND_OF)}"
        )
    return b"".join((_MESSAGE_HEADS[type(message)], unprotected, encoded_protected, encoded_body))


def decode(frame: bytes, filter_bits: int | None = None) -> Message:
    """Return the message in a frame; raise DecodeError for bytes that the C implementation would drop.

    ``filter_bits`` is the length of filters in this mesh, in bits. A filter of another length is refused before it is
    unpacked; None accepts any length.
    """
    reader = cbor.Reader(frame)
    message_type = _read_kind(reader)
    if message_type == PUBLICATION:
        return _decode_publication(reader, filter_bits)
    return (
        _decode_acknowledgement(reader)
        if message_type == ACKNOWLEDGEMENT
        else _decode_link(reader, message_type, filter_bits)
    )


def with_next_hop(publication: Publication, port: int, ttl_s: int, path: str | None = None) -> Publication:
    """Return a publication as this node forwards it: with one more hop and the remaining lifetime ``ttl_s``.

    ``port``, ``path``: the UDP port, or the name of the pipe, of this node, to which acknowledgements are sent. Exactly
    one of the two must not be None.
    """
    return publication._replace(port=port, path=path, ttl_s=ttl_s, hops=publication.hops + 1)


def protected_map(message: Securable) -> bytes:
    """Return a message's encoded protected map: the header fields that nodes on the path must not change."""
    if message.protected:
        return message.protected
    id_field = fields.byte_string(fields.ID, message.publication_id)
    if isinstance(message, Acknowledgement):
        return cbor.mapping(2) + id_field + fields.number(fields.ACKNOWLEDGED, message.acknowledged)
    return b"".join(
        (
            cbor.mapping(5),
            fields.seconds(message.lifetime_s),
            id_field,
            fields.number(fields.SEQUENCE, message.sequence),
            cbor.unsigned(fields.ACKNOWLEDGE) + cbor.boolean(message.acknowledge),
            cbor.unsigned(fields.FILTER) + message.filter.encode(),
        )
    )


def body_map(message: Securable) -> bytes:
    """Return the encoded body (fifth item) of a message, unencrypted: a map with data and, in a publication, topics."""
    if isinstance(message, Publication):
        assert message.topics is not None, "the body of a secured publication is its COSE item"
        topics_head = cbor.mapping(2) + cbor.unsigned(fields.TOPICS) + cbor.array(len(message.topics))
        return topics_head + b"".join(map(fields.text, message.topics)) + fields.byte_string(fields.DATA, message.data)
    return cbor.mapping(1) + fields.byte_string(fields.DATA, message.data)


def with_secured_body(message: Securable, body: bytes) -> Securable:
    """Return a message in which ``body``, the bytes of a COSE item, replaces the topics and the data."""
    protected = protected_map(message)
    if isinstance(message, Publication):
        return message._replace(topics=None, data=None, protected=protected, body=body)
    return message._replace(data=None, protected=protected, body=body)


def with_plain_body(message: Securable, plain: bytes) -> Securable:
    """Return an encrypted or signed message with its topics and data set from ``plain``, its decrypted body.

    The field ``body`` keeps the received bytes, so that the message is forwarded unchanged. Raises DecodeError if
    ``plain`` is invalid.
    """
    reader = cbor.Reader(plain)
    if isinstance(message, Publication):
        topics, data = _decode_body(reader)
        return message._replace(topics=topics, data=data)
    return message._replace(data=_decode_data(reader))


def make_publication_id(address: int, series: int, draw: bytes) -> bytes:
    """Return a publication id, 16 bytes, in which ``series`` is the number of a series at the node ``address``.

    ``draw``: 8 random bytes, the second half of the id.
    """
    if not (0 <= address <= fields.I31 and 0 <= series <= fields.I31 and len(draw) == 8):
        raise EncodeError(
            f"the publication id has address {address}, series {series} and {len(draw)} random bytes; "
            "address and series must be 0 to 2147483647, and there must be 8 random bytes"
        )
    return pack(">II", address, series) + draw


def describe(frame: bytes, broadcast: bool = True) -> tuple[str, int, int]:
    """Return (message name, origin, sequence) of a frame from `encode`, for traces.

    For a publication and its acknowledgement, the origin is the address of the publisher, and the sequence is
    ``series << 32 | sequence number``. Both are meaningful only if the publication id is from `make_publication_id`.
    For other messages, the origin is -1 and the sequence is the sequence number. ``broadcast``, whether the frame was
    broadcast, makes no difference.
    """
    reader = cbor.Reader(frame)
    message_type = _read_kind(reader)
    if message_type in (SUBSCRIPTION, SUBSCRIPTION_ACKNOWLEDGEMENT):
        return NAMES[message_type], NOBODY, _read_scalars(reader)[fields.SEQUENCE]
    reader.skip("unprotected map")
    header_fields = _read_scalars(reader)
    origin, series = origin_of(header_fields[fields.ID])
    sequence_number = header_fields[fields.SEQUENCE if message_type == PUBLICATION else fields.ACKNOWLEDGED]
    return NAMES[message_type], origin, series << 32 | sequence_number


def origin_of(publication_id: bytes) -> tuple[int, int]:
    """Return (node's address, number of the series at the node) of an id from `make_publication_id`."""
    first_64_bits = int.from_bytes(publication_id[:8], "big")
    return first_64_bits >> 32 & fields.I31, first_64_bits & fields.I31


def _read_scalars(reader: cbor.Reader) -> Values:
    """Read a map of header fields; return {field key: value} for the publication id and all unsigned integers.

    The publication id is returned as bytes. Fields of other types are skipped.
    """
    header_fields = {}
    for _ in range(reader.mapping("map")):
        field_key = reader.unsigned("key")
        if field_key == fields.ID:
            header_fields[field_key] = reader.byte_string("publication id", fields.ID_B)
        elif reader.peek() == cbor.UNSIGNED:
            header_fields[field_key] = reader.unsigned("value")
        else:
            reader.skip("value")
    return header_fields


# Encoding


def _encode_port_and_path(message: Publication | LinkMessage) -> tuple[bytes, bytes]:
    """Return the encoded fields (port, path) of a message; b"" for the field that the message lacks.

    Raises EncodeError unless the message has exactly one of the two fields.
    """
    if (message.port is None) == (message.path is None):
        raise EncodeError(f"the message has port {message.port!r} and path {message.path!r}; give exactly one of them")
    if message.path is None:
        return fields.number(fields.PORT, message.port), b""
    return b"", cbor.unsigned(fields.PATH) + fields.text(message.path)


def _encode_link_map(message: LinkMessage, acknowledged: bytes) -> bytes:
    port, path = _encode_port_and_path(message)
    if (message.needs is None) != (message.interests is None):
        raise EncodeError("the message has only one of needs and interests; give both or neither")
    encoded_fields = [
        port,
        fields.number(fields.SEQUENCE, message.sequence),
        fields.number(fields.FLAGS, message.flags),
        fields.byte_string(fields.MESH, message.mesh_id),
    ]
    if message.needs is not None and message.interests is not None:
        encoded_fields.append(fields.byte_string(fields.NEEDS, message.needs))
        encoded_fields.append(cbor.unsigned(fields.INTERESTS) + message.interests.encode())
    encoded_fields += [acknowledged, path]
    return cbor.mapping(len([encoded_field for encoded_field in encoded_fields if encoded_field])) + b"".join(
        encoded_fields
    )


# Decoding


def _read_kind(reader: cbor.Reader) -> int:
    reader.array("a message", _ELEMENTS)
    version = reader.unsigned("version")
    if version != VERSION:
        raise DecodeError(f"the message has version {version}; this node reads version {VERSION}")
    message_type = reader.unsigned("type")
    if message_type not in NAMES:
        raise DecodeError(f"the message has type {message_type}; it must be 1 to 4")
    return message_type


_OF_PUBLICATION, _OF_ACKNOWLEDGEMENT = fields.MAPS[PUBLICATION], fields.MAPS[ACKNOWLEDGEMENT]
_protected_values = itemgetter(*_OF_PUBLICATION.protected)


def _decode_publication(reader: cbor.Reader, filter_bits: int | None) -> Publication:
    map_name = "unprotected map of the publication"
    unprotected_fields = fields.read_map(reader, map_name, _OF_PUBLICATION.unprotected)
    fields.require(unprotected_fields, (fields.TTL, fields.HOPS), map_name)
    if fields.PORT not in unprotected_fields and fields.PATH not in unprotected_fields:
        raise DecodeError(f"the {map_name} has neither port nor path; it must have one of them")
    protected, protected_fields = _decode_protected(reader, "publication", _OF_PUBLICATION.protected, filter_bits)
    if not protected_fields[fields.SEQUENCE]:
        raise DecodeError("the sequence number of the publication is 0; sequence numbers start at 1")
    body_start = reader.at
    topics, plain_data = (None, None) if _skip_cose_item(reader) else _decode_body(reader)
    port, path = unprotected_fields.get(fields.PORT), unprotected_fields.get(fields.PATH)
    ttl_s, hops = unprotected_fields[fields.TTL], unprotected_fields[fields.HOPS]
    body_bytes = bytes(reader.data[body_start : reader.at])
    header_fields = (port, path if port is None else None, ttl_s, hops, *_protected_values(protected_fields))
    return Publication._make((*header_fields, topics, plain_data, protected, body_bytes))


def _decode_protected(
    reader: cbor.Reader, name: str, keys: tuple[int, ...], filter_bits: int | None = None
) -> tuple[bytes, Values]:
    """Read the protected map, which must have all ``keys``; return (bytes of the map, {key: value}).

    ``name``: type of the message, for errors; ``filter_bits``: required length of filters, None for any length.
    """
    map_start = reader.at
    map_fields = _read_required_map(reader, "protected map of the " + name, keys, filter_bits)
    return bytes(reader.data[map_start : reader.at]), map_fields


def _read_required_map(
    reader: cbor.Reader, where: str, keys: tuple[int, ...], filter_bits: int | None = None
) -> Values:
    """Read a map that must have all ``keys``; return {key: value}.

    ``where``: name of the map, for errors; ``filter_bits``: required length of filters, None for any length.
    """
    map_fields = fields.read_map(reader, where, keys, filter_bits)
    fields.require(map_fields, keys, where)
    return map_fields


def _skip_cose_item(reader: cbor.Reader) -> bool:
    """Return whether the next item is a COSE item (RFC 8152), and skip it if so."""
    if reader.peek() != cbor.TAG:
        return False
    tag_at = reader.at
    tag_number = reader.tag("encrypted item")
    if tag_number not in TAGS:
        raise DecodeError(f"byte {tag_at}: the fifth item has tag {tag_number}; a COSE item has tag 16, 18 or 96")
    reader.skip("encrypted item")
    return True


def _decode_body(reader: cbor.Reader) -> tuple[tuple[str, ...], bytes]:
    body_fields = _read_required_map(reader, "last map of the publication", _OF_PUBLICATION.last)
    return body_fields[fields.TOPICS], body_fields[fields.DATA]


def _decode_data(reader: cbor.Reader) -> bytes:
    return _read_required_map(reader, "last map of the acknowledgement", _OF_ACKNOWLEDGEMENT.last)[fields.DATA]


def _decode_acknowledgement(reader: cbor.Reader) -> Acknowledgement:
    reader.skip_mapping("unprotected map of the acknowledgement")
    protected, protected_fields = _decode_protected(reader, "acknowledgement", _OF_ACKNOWLEDGEMENT.protected)
    if not protected_fields[fields.ACKNOWLEDGED]:
        raise DecodeError("the acknowledged sequence number is 0; sequence numbers start at 1")
    body_start = reader.at
    plain_data = None if _skip_cose_item(reader) else _decode_data(reader)
    body_bytes = bytes(reader.data[body_start : reader.at])
    return Acknowledgement(
        protected_fields[fields.ID], protected_fields[fields.ACKNOWLEDGED], plain_data, protected, body_bytes
    )


_LINK_KEYS = (fields.PORT, fields.PATH, fields.SEQUENCE, fields.FLAGS, fields.MESH, fields.NEEDS, fields.INTERESTS)


def _decode_link(reader: cbor.Reader, kind: int, filter_bits: int | None) -> LinkMessage:
    message_name, is_answer = NAMES[kind], kind == SUBSCRIPTION_ACKNOWLEDGEMENT
    where = "unprotected map of the " + message_name
    map_fields = fields.read_map(reader, where, fields.MAPS[kind].unprotected, filter_bits)
    fields.require(map_fields, (fields.SEQUENCE, fields.FLAGS, fields.MESH), message_name)
    if (fields.PORT in map_fields) == (fields.PATH in map_fields):
        raise DecodeError(f"the {message_name} must have a port or a path, and not both")
    flags = map_fields[fields.FLAGS]
    if flags & SAK_REQUESTED and not flags & UNLINK:
        fields.require(map_fields, (fields.NEEDS, fields.INTERESTS), message_name)
    if (fields.NEEDS in map_fields) != (fields.INTERESTS in map_fields):
        raise DecodeError(f"the {message_name} has only one of needs and interests; it must have both or neither")
    reader.skip_mapping("protected map of the " + message_name)
    reader.skip_mapping("last map of the " + message_name)
    link_fields: tuple[Any, ...] = tuple(map(map_fields.get, _LINK_KEYS))
    if is_answer:
        return SubscriptionAcknowledgement._make((*link_fields, map_fields.get(fields.ACKNOWLEDGED, 0)))
    if not flags & SAK_REQUESTED:
        raise DecodeError(
            f"the flags of a subscription are {flags}; bit {SAK_REQUESTED}, answer requested, must be set"
        )
    return Subscription(*link_fields)
