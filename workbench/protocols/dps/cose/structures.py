"""The COSE structures that DPS uses: their encoding, decoding, and the bytes that are authenticated or signed.

Layout (CBOR; RFC 8152)
    Encrypt0  16([h'a10103', {5: iv, ?7: countersignature}, ciphertext])
    Encrypt   96([h'a10103', {5: iv, ?7: countersignature}, ciphertext, [recipient, ...]])
    Sign1     18([h'a1' 01 algorithm, {4: kid}, payload, signature])
    recipient            [h'', {1: algorithm, 4: kid}, wrapped key]
                         [h'a101381e', {-1: {1: 2, -1: curve, -2: x, -3: y}, 4: kid}, wrapped key] with ECDH
    countersignature     [h'a1' 01 algorithm, {4: kid}, signature]

    Unknown keys of a header are skipped.
"""

from typing import Any, NamedTuple

from workbench.errors import DecodeError
from workbench.protocols.dps.wire import cbor

ENCRYPT0, SIGN1, ENCRYPT = 16, 18, 96
A256GCM, A256KW, DIRECT, ECDH_ES_A256KW, ES384, ES512 = 3, -5, -6, -31, -35, -36

_ALGORITHM, _KID, _IV, _COUNTERSIGNATURE, _EPHEMERAL = 1, 4, 5, 7, -1
_KEY_TYPE, _CURVE, _X, _Y, _TYPE_EC2 = 1, -1, -2, -3, 2
_LOWEST, _HIGHEST = -(1 << 31), (1 << 31) - 1
_CONTEXTS = {ENCRYPT0: b"Encrypt0", ENCRYPT: b"Encrypt"}


class Signature(NamedTuple):
    """The signature of a signed item (Sign1), or the countersignature of an encrypted item.

    ``protected`` is the encoded header of the signature, ``algorithm`` the COSE number of the signature algorithm,
    ``kid`` the identifier of the signing key, and ``value`` the signature itself.
    """

    protected: bytes
    algorithm: int
    kid: bytes
    value: bytes


class Point(NamedTuple):
    """A public key on an elliptic curve: the curve's number in COSE, and the big-endian coordinates."""

    curve: int
    x: bytes
    y: bytes


class Recipient(NamedTuple):
    """A recipient of an encrypted item.

    kid        identifier of the recipient's key
    ephemeral  public key of the sender's fresh key pair for ECDH; None for other algorithms
    wrapped    the content's key, encrypted (wrapped) with ``algorithm``; b"" for DIRECT, which uses a shared key
    """

    algorithm: int
    kid: bytes
    ephemeral: Point | None
    wrapped: bytes


class CoseItem(NamedTuple):
    """An encrypted or signed item of COSE (RFC 8152).

    tag        16 (Encrypt0), 96 (Encrypt) or 18 (Sign1)
    protected  encoded protected header
    iv         nonce; b"" if the item lacks it
    content    ciphertext of an encrypted item, payload of a signed item
    signature  signature of a signed item, or countersignature of an encrypted item; None: not signed
    """

    tag: int
    protected: bytes
    iv: bytes
    content: bytes
    recipients: tuple[Recipient, ...]
    signature: Signature | None


def _encode_header(*pairs: tuple[int, bytes]) -> bytes:
    return cbor.mapping(len(pairs)) + b"".join(cbor.integer(key) + value for key, value in pairs)


def signature_header(algorithm: int) -> bytes:
    """Return the encoded protected header of a signature; ``algorithm`` is the number of its algorithm in COSE."""
    return _encode_header((_ALGORITHM, cbor.integer(algorithm)))


CONTENT_HEADER = _encode_header((_ALGORITHM, cbor.integer(A256GCM)))
ECDH_HEADER = _encode_header((_ALGORITHM, cbor.integer(ECDH_ES_A256KW)))


def encryption_structure(tag: int, protected: bytes, external: bytes) -> bytes:
    """Return the bytes that are authenticated with the ciphertext (COSE's Enc_structure).

    ``tag``: tag of the item; ``protected``: its protected header; ``external``: further authenticated bytes.
    """
    return cbor.sequence(cbor.text(_CONTEXTS[tag]), cbor.byte_string(protected), cbor.byte_string(external))


def signature_structure(
    context: str, body_protected: bytes | None, protected: bytes, external: bytes, content: bytes
) -> bytes:
    """Return the bytes that are signed (COSE's Sig_structure).

    ``context``: "Signature1" or "CounterSignature"; ``protected``: header of the signature; ``body_protected``: header
    of the countersigned item, None for a Sign1; ``external``: further signed bytes; ``content``: payload or ciphertext.
    """
    byte_strings = (
        [protected, external, content] if body_protected is None else [body_protected, protected, external, content]
    )
    return cbor.sequence(cbor.text(context.encode()), *map(cbor.byte_string, byte_strings))


def key_derivation_structure() -> bytes:
    """Return the COSE_KDF_Context from which ECDH-ES+A256KW derives the wrapping key.

    Its fields for the identities of sender and recipient are empty.
    """
    no_party = cbor.sequence(cbor.NULL, cbor.NULL, cbor.NULL)
    public_info = cbor.sequence(cbor.unsigned(256), cbor.byte_string(ECDH_HEADER))
    return cbor.sequence(cbor.integer(A256KW), no_party, no_party, public_info)


def encode(item: CoseItem) -> bytes:
    """Return the bytes of an encrypted COSE item (Encrypt0 or Encrypt)."""
    unprotected_headers = [(_IV, cbor.byte_string(item.iv))]
    if item.signature is not None:
        unprotected_headers.append((_COUNTERSIGNATURE, _encode_signature(item.signature)))
    encoded_items = [
        cbor.byte_string(item.protected),
        _encode_header(*unprotected_headers),
        cbor.byte_string(item.content),
    ]
    if item.tag == ENCRYPT:
        encoded_items.append(cbor.sequence(*map(_encode_recipient, item.recipients)))
    return cbor.tag(item.tag) + cbor.sequence(*encoded_items)


def encode_signed(signature: Signature, payload: bytes) -> bytes:
    """Return the bytes of a signed COSE item (Sign1)."""
    return cbor.tag(SIGN1) + _encode_signature(signature, cbor.byte_string(payload))


def _encode_signature(signature: Signature, *payload: bytes) -> bytes:
    """Return the CBOR array of a signed item (Sign1) or of a countersignature.

    ``payload``: the payload of the signed item, already encoded in CBOR; absent for a countersignature.
    """
    kid_header = _encode_header((_KID, cbor.byte_string(signature.kid)))
    return cbor.sequence(cbor.byte_string(signature.protected), kid_header, *payload, cbor.byte_string(signature.value))


def _encode_recipient(recipient: Recipient) -> bytes:
    kid_header = (_KID, cbor.byte_string(recipient.kid))
    if recipient.ephemeral is None:
        protected_header, unprotected_header = (
            b"",
            _encode_header((_ALGORITHM, cbor.integer(recipient.algorithm)), kid_header),
        )
    else:
        curve, x, y = recipient.ephemeral
        ephemeral_key = _encode_header(
            (_KEY_TYPE, cbor.unsigned(_TYPE_EC2)),
            (_CURVE, cbor.unsigned(curve)),
            (_X, cbor.byte_string(x)),
            (_Y, cbor.byte_string(y)),
        )
        protected_header, unprotected_header = ECDH_HEADER, _encode_header((_EPHEMERAL, ephemeral_key), kid_header)
    return cbor.sequence(cbor.byte_string(protected_header), unprotected_header, cbor.byte_string(recipient.wrapped))


def decode(data: bytes) -> CoseItem:
    """Return the COSE item in ``data``; raise DecodeError for other bytes, and for items that DPS does not use."""
    reader = cbor.Reader(data)
    tag = reader.tag("a COSE item")
    if tag == SIGN1:
        signature, payload = _read_signature(reader, "a signed item", True)
        return CoseItem(SIGN1, signature.protected, b"", payload, (), signature)
    if tag not in (ENCRYPT0, ENCRYPT):
        raise DecodeError(f"a COSE item has tag {tag}; DPS uses 16 (Encrypt0), 18 (Sign1) and 96 (Encrypt)")
    reader.array("an encrypted item", 4 if tag == ENCRYPT else 3)
    protected_header = reader.byte_string("protected header")
    algorithm = _read_algorithm(protected_header)
    if algorithm != A256GCM:
        raise DecodeError(f"the content is encrypted with algorithm {algorithm}; DPS uses 3, AES-256-GCM")
    headers = _read_headers(reader)
    ciphertext = reader.byte_string("ciphertext")
    recipients = []
    if tag == ENCRYPT:
        recipients = [_decode_recipient(reader) for _ in range(reader.array("recipients"))]
    return CoseItem(tag, protected_header, headers.iv, ciphertext, tuple(recipients), headers.countersignature)


def _decode_recipient(reader: cbor.Reader) -> Recipient:
    reader.array("a recipient", 3)
    protected_header = reader.byte_string("protected header of a recipient")
    headers = _read_headers(reader)
    wrapped_key = reader.byte_string("wrapped key")
    algorithm = _read_algorithm(protected_header) if protected_header else headers.algorithm
    if algorithm not in (DIRECT, A256KW, ECDH_ES_A256KW):
        raise DecodeError(
            f"a recipient has algorithm {algorithm}; DPS uses -5 (A256KW), -6 (direct) and -31 (ECDH-ES+A256KW)"
        )
    return Recipient(algorithm, headers.kid, headers.ephemeral, wrapped_key)


class _Headers(NamedTuple):
    algorithm: int = 0
    kid: bytes = b""
    iv: bytes = b""
    ephemeral: Point | None = None
    countersignature: Signature | None = None


def _read_headers(reader: cbor.Reader, countersigned: bool = True) -> _Headers:
    """Read a map of headers and return their values; a missing header has its default value.

    Unknown headers are skipped. If ``countersigned`` is False, a countersignature is skipped, too.
    """
    headers: dict[str, Any] = {}
    for _ in range(reader.mapping("headers")):
        header_key = _read_key(reader)
        if header_key == _ALGORITHM:
            headers["algorithm"] = reader.integer("algorithm", _LOWEST, _HIGHEST)
        elif header_key == _KID:
            headers["kid"] = reader.byte_string("key identifier")
        elif header_key == _IV:
            headers["iv"] = reader.byte_string("initialization vector", 12)
        elif header_key == _EPHEMERAL:
            headers["ephemeral"] = _read_point(reader)
        elif header_key == _COUNTERSIGNATURE and countersigned:
            headers["countersignature"] = _read_signature(reader, "countersignature", False)[0]
        else:
            reader.skip("a header")
    return _Headers(**headers)


def _read_key(reader: cbor.Reader) -> int | None:
    """Read and return the integer key of an entry of a header map; skip a key of another type, and return None."""
    if reader.peek() in (cbor.UNSIGNED, cbor.NEGATIVE):
        return reader.integer("key of a header", _LOWEST, _HIGHEST)
    reader.skip("key of a header")
    return None


def _read_point(reader: cbor.Reader) -> Point:
    curve, coordinates = 0, {_X: b"", _Y: b""}
    for _ in range(reader.mapping("ephemeral key")):
        parameter_key = _read_key(reader)
        if parameter_key == _CURVE:
            curve = reader.unsigned("curve", _HIGHEST)
        elif parameter_key in (_X, _Y):
            coordinates[parameter_key] = reader.byte_string("coordinate")
        else:
            reader.skip("a parameter of a key")
    return Point(curve, coordinates[_X], coordinates[_Y])


def _read_signature(reader: cbor.Reader, name: str, is_item: bool) -> tuple[Signature, bytes]:
    """Read a signed item (Sign1) or a countersignature, and return (signature, payload).

    ``is_item``: True for a signed item, False for a countersignature, whose payload is returned as b"". ``name``: name
    for error messages.
    """
    reader.array(name, 4 if is_item else 3)
    protected_header = reader.byte_string("protected header of " + name)
    headers = _read_headers(reader, countersigned=is_item)
    payload = reader.byte_string("payload") if is_item else b""
    return Signature(
        protected_header, _read_algorithm(protected_header), headers.kid, reader.byte_string("signature")
    ), payload


def _read_algorithm(protected: bytes) -> int:
    """Return the COSE number of the algorithm in an encoded protected header; 0 if the header lacks it."""
    if not protected:
        return 0
    reader = cbor.Reader(protected)
    headers = _read_headers(reader, countersigned=False)
    reader.end()
    return headers.algorithm
