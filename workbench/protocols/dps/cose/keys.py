"""The key store of a node: shared keys of 32 bytes, key pairs of its own, and public keys of others, by identifier."""

from typing import Any

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from workbench.errors import ParameterError
from workbench.protocols.dps.cose.algorithms import KEY_B, is_supported

_CERTIFICATE = b"-----BEGIN CERTIFICATE-----"


class _Keys(dict[bytes, Any]):
    """A dictionary {identifier: key} of keys of one kind, in the order in which they were added.

    Calling the object with an identifier returns the key, or raises ParameterError if no key has this identifier.
    """

    def __init__(self, kind: str) -> None:
        super().__init__()
        self._kind = kind

    def __call__(self, kid: bytes) -> Any:
        if kid not in self:
            raise ParameterError(f"{kid!r}: the key store has no {self._kind} with this identifier; add it first")
        return self[kid]


class KeyStore:
    """The keys of a node by identifier, which is a byte string, or a text that is encoded in UTF-8.

    ``symmetric`` has the shared keys, ``private`` the private keys, ``public`` the public keys, including those of the
    key pairs. The example programs of DPS use UUIDs for shared keys and the common names of certificates for key pairs.
    """

    def __init__(self) -> None:
        self.symmetric, self.private, self.public = _Keys("shared key"), _Keys("private key"), _Keys("public key")

    def __repr__(self) -> str:
        # Without the keys, as this text may appear in logs.
        return f"KeyStore({len(self.symmetric)} shared, {len(self.private)} private, {len(self.public)} public keys)"

    def add_symmetric(self, kid: bytes | str, key: bytes) -> None:
        """Add a key that this node shares with others; raise ParameterError unless it has 32 bytes."""
        if len(key) != KEY_B:
            raise ParameterError(f"the shared key {kid!r} has {len(key)} bytes; it must have {KEY_B}")
        self.symmetric[kid_bytes(kid)] = bytes(key)

    def add_private(self, kid: bytes | str, pem: bytes, password: bytes | None = None) -> None:
        """Add a key pair of this node, on the curve P-384 or P-521, from the private key in PEM.

        ``password``: password of the private key; None: the key is not encrypted. Raises ParameterError for any other
        key.
        """
        try:
            private_key = serialization.load_pem_private_key(pem, password)
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise ParameterError(
                f"the private key {kid!r} cannot be read ({error}); it must be in PEM, with its password if it has one"
            ) from None
        if not isinstance(private_key, ec.EllipticCurvePrivateKey) or not is_supported(private_key.curve):
            raise ParameterError(f"the curve of the private key {kid!r} is not supported; use P-384 or P-521")
        self.private[kid_bytes(kid)] = private_key
        self.public[kid_bytes(kid)] = private_key.public_key()

    def add_public(self, kid: bytes | str, pem: bytes) -> None:
        """Add the public key of another node, on the curve P-384 or P-521, from the key or a certificate in PEM.

        Raises ParameterError for any other key.
        """
        try:
            is_certificate = _CERTIFICATE in pem
            certificate_key = x509.load_pem_x509_certificate(pem).public_key() if is_certificate else None
            public_key = certificate_key or serialization.load_pem_public_key(pem)
        except (ValueError, UnsupportedAlgorithm) as error:
            raise ParameterError(
                f"the public key {kid!r} cannot be read ({error}); give a key or a certificate in PEM"
            ) from None
        if not isinstance(public_key, ec.EllipticCurvePublicKey) or not is_supported(public_key.curve):
            raise ParameterError(f"the curve of the public key {kid!r} is not supported; use P-384 or P-521")
        self.public[kid_bytes(kid)] = public_key


def kid_bytes(kid: bytes | str) -> bytes:
    """Return a key identifier as bytes; a text is encoded in UTF-8."""
    return kid.encode() if isinstance(kid, str) else bytes(kid)
