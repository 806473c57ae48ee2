"""The keys of a node, by their identifiers: shared ones of 32 bytes, own key pairs, others' public keys."""

from typing import TypeVar

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from workbench.errors import ParameterError
from workbench.protocols.dps.cose.algorithms import KEY_B, is_supported

Key = TypeVar("Key")

_CERTIFICATE = b"-----BEGIN CERTIFICATE-----"


class KeyStore:
    """Keys by identifier. An identifier is any bytes, or a text for its bytes in UTF-8; what is asked for must be
    there.

    The example programs of DPS use UUIDs for shared keys and the common names of certificates for key pairs.
    """

    def __init__(self) -> None:
        self._symmetric: dict[bytes, bytes] = {}
        self._private: dict[bytes, ec.EllipticCurvePrivateKey] = {}
        self._public: dict[bytes, ec.EllipticCurvePublicKey] = {}

    def __repr__(self) -> str:
        # Never the keys: this ends up in logs.
        return f"KeyStore({len(self._symmetric)} shared, {len(self._private)} private, {len(self._public)} public keys)"

    def add_symmetric(self, kid: bytes | str, key: bytes) -> None:
        """A key that others have too: 32 bytes."""
        if len(key) != KEY_B:
            raise ParameterError(f"the shared key {kid!r} has {len(key)} bytes; it must have {KEY_B}")
        self._symmetric[kid_bytes(kid)] = bytes(key)

    def add_private(self, kid: bytes | str, pem: bytes, password: bytes | None = None) -> None:
        """A key pair of our own, on the curve P-384 or P-521, in PEM."""
        try:
            key = serialization.load_pem_private_key(pem, password)
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise ParameterError(f"the private key {kid!r} cannot be read: {error}") from None
        if not isinstance(key, ec.EllipticCurvePrivateKey) or not is_supported(key.curve):
            raise ParameterError(f"the private key {kid!r} is on no curve that DPS uses; it must be on P-384 or P-521")
        self._private[kid_bytes(kid)] = key
        self._public[kid_bytes(kid)] = key.public_key()

    def add_public(self, kid: bytes | str, pem: bytes) -> None:
        """A public key of someone else, or its certificate, in PEM."""
        try:
            is_certificate = _CERTIFICATE in pem
            certified = x509.load_pem_x509_certificate(pem).public_key() if is_certificate else None
            key = certified or serialization.load_pem_public_key(pem)
        except (ValueError, UnsupportedAlgorithm) as error:
            raise ParameterError(f"the public key {kid!r} cannot be read: {error}") from None
        if not isinstance(key, ec.EllipticCurvePublicKey) or not is_supported(key.curve):
            raise ParameterError(f"the public key {kid!r} is on no curve that DPS uses; it must be on P-384 or P-521")
        self._public[kid_bytes(kid)] = key

    def has_symmetric(self, kid: bytes) -> bool:
        """Whether there is a shared key of this name."""
        return kid in self._symmetric

    def has_private(self, kid: bytes) -> bool:
        """Whether there is a key pair of this name."""
        return kid in self._private

    def has_public(self, kid: bytes) -> bool:
        """Whether there is a public key of this name, or a key pair."""
        return kid in self._public

    def symmetric(self, kid: bytes) -> bytes:
        """A shared key; ParameterError if there is none."""
        return _found(self._symmetric, kid, "shared key")

    def private(self, kid: bytes) -> ec.EllipticCurvePrivateKey:
        """A private key; ParameterError if there is none."""
        return _found(self._private, kid, "private key")

    def public(self, kid: bytes) -> ec.EllipticCurvePublicKey:
        """A public key, of a key pair too; ParameterError if there is none."""
        return _found(self._public, kid, "public key")

    def all_symmetric(self) -> list[tuple[bytes, bytes]]:
        """(identifier, key) of all shared keys, in the order they were added."""
        return list(self._symmetric.items())


def kid_bytes(kid: bytes | str) -> bytes:
    """An identifier as bytes."""
    return kid.encode() if isinstance(kid, str) else bytes(kid)


def _found(keys: dict[bytes, Key], kid: bytes, kind: str) -> Key:
    if kid not in keys:
        raise ParameterError(f"there is no {kind} {kid!r} in the store; add it first")
    return keys[kid]
