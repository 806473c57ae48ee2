"""The cryptographic algorithms of `workbench.protocols.dps.cose` on bytes, with the library `cryptography`.

If received bytes cause a failure, functions return None or False and raise no exception. Examples: a wrong key, a
forged text, or a point that is not on the curve.
"""

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.keywrap import InvalidUnwrap, aes_key_unwrap

from workbench.protocols.dps.cose.structures import ES384, ES512, Point, key_derivation_structure

KEY_B, NONCE_B = 32, 12

Curve = ec.SECP384R1 | ec.SECP521R1
# Name of a curve -> its number in COSE, size of a coordinate in bytes, signature algorithm, hash of that algorithm.
_CURVES: dict[str, tuple[int, int, int, hashes.HashAlgorithm]] = {
    "secp384r1": (2, 48, ES384, hashes.SHA384()),
    "secp521r1": (3, 66, ES512, hashes.SHA512()),
}
_BY_NUMBER: dict[int, tuple[Curve, int]] = {2: (ec.SECP384R1(), 48), 3: (ec.SECP521R1(), 66)}


def is_supported(curve: ec.EllipticCurve) -> bool:
    """Return whether DPS can use an elliptic curve: True for P-384 and P-521."""
    return curve.name in _CURVES


def decrypt(key: bytes, nonce: bytes, content: bytes, authenticated: bytes) -> bytes | None:
    """Decrypt ``content`` with AES-GCM; return None if the key, the nonce, ``authenticated`` or the content is wrong.

    ``authenticated``: the additional authenticated data, bytes that are not encrypted.
    """
    try:
        return AESGCM(key).decrypt(nonce, content, authenticated)
    except (InvalidTag, ValueError):
        return None


def unwrap(wrapping: bytes | None, wrapped: bytes) -> bytes | None:
    """Return the key that ``wrapped`` contains, decrypted with the key ``wrapping`` (AES key wrap).

    Return None if this fails, if the result does not have 32 bytes, or if ``wrapping`` is None.
    """
    if wrapping is None:
        return None
    try:
        unwrapped_key = aes_key_unwrap(wrapping, wrapped)
    except (InvalidUnwrap, ValueError):
        return None
    return unwrapped_key if len(unwrapped_key) == KEY_B else None


def agree_with(public: ec.EllipticCurvePublicKey) -> tuple[Point, bytes]:
    """Create a key pair; return (its public key, the wrapping key that ECDH derives from the pair and ``public``)."""
    curve_number, size_B, _, _ = _CURVES[public.curve.name]
    fresh_key = ec.generate_private_key(public.curve)
    public_numbers = fresh_key.public_key().public_numbers()
    point = Point(curve_number, public_numbers.x.to_bytes(size_B, "big"), public_numbers.y.to_bytes(size_B, "big"))
    return point, _derive_wrapping_key(fresh_key.exchange(ec.ECDH(), public))


def agree(private: ec.EllipticCurvePrivateKey, point: Point) -> bytes | None:
    """Return the wrapping key that ECDH derives from a private key and ``point``, the sender's public key.

    Return None if the point is not on the private key's curve.
    """
    curve, size_B = _BY_NUMBER.get(point.curve, (None, 0))
    if curve is None or curve.name != private.curve.name or not len(point.x) == len(point.y) == size_B:
        return None
    public_numbers = ec.EllipticCurvePublicNumbers(
        int.from_bytes(point.x, "big"), int.from_bytes(point.y, "big"), curve
    )
    try:
        return _derive_wrapping_key(private.exchange(ec.ECDH(), public_numbers.public_key()))
    except ValueError:
        return None


def _derive_wrapping_key(shared: bytes) -> bytes:
    return HKDF(hashes.SHA256(), KEY_B, salt=None, info=key_derivation_structure()).derive(shared)


def signature_algorithm(public: ec.EllipticCurvePublicKey) -> int:
    """Return the COSE number of a key's signature algorithm: ES384 or ES512."""
    return _CURVES[public.curve.name][2]


def sign(private: ec.EllipticCurvePrivateKey, signed: bytes) -> bytes:
    """Return the ECDSA signature of ``signed``: r and s, big-endian, each as long as a coordinate of the curve."""
    _, size_B, _, digest = _CURVES[private.curve.name]
    r, s = decode_dss_signature(private.sign(signed, ec.ECDSA(digest)))
    return r.to_bytes(size_B, "big") + s.to_bytes(size_B, "big")


def is_signed(public: ec.EllipticCurvePublicKey, value: bytes, signed: bytes) -> bool:
    """Return whether ``value`` is a valid signature of the bytes ``signed`` by the owner of the key ``public``."""
    _, size_B, _, digest = _CURVES[public.curve.name]
    if len(value) != 2 * size_B:
        return False
    r, s = int.from_bytes(value[:size_B], "big"), int.from_bytes(value[size_B:], "big")
    try:
        public.verify(encode_dss_signature(r, s), signed, ec.ECDSA(digest))
    except InvalidSignature:
        return False
    return True
