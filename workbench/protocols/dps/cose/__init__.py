"""DPS's encryption and signatures: COSE around what a publication or an acknowledgement says.

Theory of operation
    The fifth item of a message, topics and data, is replaced by a COSE item. Nodes that pass the message on do not need
    its keys, as filters stay readable. The protected map of the message (id, sequence number, filter, ...) is
    authenticated with it; port, ttl and hop count, which every node changes, are not.

    implicit          Encrypt0 (tag 16): AES-256-GCM with a key that all share.
    direct            Encrypt (96): the same, but the message names the key.
    A256KW            Encrypt: a fresh key, wrapped for each recipient in a key that it has (AES key wrap).
    ECDH-ES+A256KW    Encrypt: a fresh key, wrapped in what ECDH gives of a fresh key pair and the recipient's public
                      key, by way of HKDF-SHA256. Curves P-384 and P-521.
    signed            Sign1 (18): ECDSA with SHA-384 or SHA-512, by the curve; not encrypted.

    A sender with a key pair signs what it encrypts, too: a countersignature over the ciphertext. A bad signature drops
    no message: the sender is unknown then, and it is the application that decides.

    An answer to an encrypted publication goes back under the same key, or to the publisher's public key:
    `Security.answering`.

Cost
    Symmetric ways 0.1 ms in and out; a signature, its check, or ECDH 0.2 to 0.6 ms.

Limits
    Keys keep others from reading, not from writing: a node with keys is given plain messages of strangers, too, as in
    the C implementation. An application tells them by ``way`` (how it was encrypted) and ``sender`` (who signed it),
    which are both None then, or has them dropped: ``Security(..., plain=False)``. An answer to an encrypted publication
    that is plain is always dropped. Whoever has a shared key can write under it; only a signature says who did.

    The nonce of the implicit and direct ways is of the publication: its sequence number and id, and one bit that says
    whether it is the acknowledgement. Two subscribers that acknowledge one publication under one direct key therefore
    use one nonce for two texts, which AES-GCM does not forgive: who can read both learns what they have in common, and
    can forge. It is what the C implementation does; use A256KW where more than one subscriber acknowledges. Keys are as
    safe as the memory of this process.

Why no library of COSE
    The countersignature is that of RFC 8152, with an empty external part. RFC 9338 has replaced it, and that is what
    cwt, the library for Python that is kept up, offers. What remains is four arrays of CBOR around `cryptography`.

Reference
    RFC 8152; RFC 3394 (key wrap); https://github.com/intel/dps-for-iot, commit b92a83660427.
"""

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.keywrap import aes_key_wrap

from workbench.errors import DecodeError, ParameterError
from workbench.protocols.dps import wire as dps
from workbench.protocols.dps.cose import algorithms, structures
from workbench.protocols.dps.cose.keys import KeyStore, kid_bytes
from workbench.protocols.dps.cose.structures import Recipient, Secured, Signature

__all__ = ["A256KW", "DIRECT", "ECDH_ES_A256KW", "IMPLICIT", "KeyStore", "Opened", "Security", "nonce"]

IMPLICIT, DIRECT, A256KW, ECDH_ES_A256KW = "implicit", "direct", "A256KW", "ECDH-ES+A256KW"
WAYS = (IMPLICIT, DIRECT, A256KW, ECDH_ES_A256KW)
_WAY_OF = {structures.DIRECT: DIRECT, structures.A256KW: A256KW, structures.ECDH_ES_A256KW: ECDH_ES_A256KW}
_ACK_BIT = 0x80


class Opened(NamedTuple):
    """A message that can be read, who signed it, and for whom it was encrypted and how (None: nobody, not known)."""

    message: Any
    sender: bytes | None
    recipient: bytes | None
    way: str | None

    @property
    def is_plain(self) -> bool:
        """Whether anybody could have written it: it is neither encrypted nor signed by a key that is known."""
        return self.way is None and self.sender is None


class Security:
    """How a node encrypts and signs what it publishes and acknowledges, and reads what others did.

    way         one of `WAYS`, or None: not encrypted
    recipients  key identifiers, bytes or texts: one for "implicit" and "direct", one or more for the others
    sender      the identifier of the private key that signs, or None
    plain       False: of what neighbors send, the application is given only what was encrypted, or signed by a key
                that is known; the rest is dropped as "plain"
    """

    def __init__(
        self,
        keys: KeyStore,
        way: str | None = None,
        recipients: Sequence[bytes | str] = (),
        sender: bytes | str | None = None,
        plain: bool = True,
    ) -> None:
        self.keys = keys
        self.way = way
        self.recipients = tuple(kid_bytes(kid) for kid in recipients)
        self.sender = None if sender is None else kid_bytes(sender)
        self.plain = plain
        self._check()

    def _check(self) -> None:
        if self.way is not None and self.way not in WAYS:
            raise ParameterError(f"no way to encrypt is called {self.way!r}; there are {', '.join(WAYS)}")
        count = len(self.recipients)
        if (self.way is None and count) or (self.way in (IMPLICIT, DIRECT) and count != 1) or (self.way and not count):
            raise ParameterError(f"{count} recipients for {self.way}; it has none, one for one key, or one or more")
        for kid in self.recipients:
            (self.keys.public if self.way == ECDH_ES_A256KW else self.keys.symmetric)(kid)
        if self.sender is not None:
            self.keys.private(self.sender)

    def seal(self, message: Any) -> Any:
        """The message (a Publication or an Acknowledgement of `wire.dps`, readable) encrypted or signed."""
        external = dps.protected_map(message)
        plain = dps.body_map(message)
        if self.way is not None:
            return dps.secured(message, structures.encode(self._encrypted(plain, external, nonce(message))))
        if self.sender is None:
            return message
        signature = self._signed("Signature1", external, plain)
        return dps.secured(message, structures.encode_signed(signature, plain))

    def open(self, message: Any) -> Opened:
        """The message, readable; one that is so already stays as it is. DecodeError if it cannot be decrypted."""
        if message.data is not None:
            return Opened(message, None, None, None)
        item = structures.decode(message.body)
        external = dps.protected_map(message)
        if item.tag == structures.SIGN1:
            sender = self._signer(item.signature, "Signature1", external, item.content)
            return Opened(dps.opened(message, item.content), sender, None, None)
        way, kid, plain = self._decrypted(item, external, nonce(message))
        sender = self._signer(item.signature, "CounterSignature", b"", item.content, item.protected)
        return Opened(dps.opened(message, plain), sender, kid, way)

    def answering(self, opened: Opened) -> "Security":
        """How to encrypt the acknowledgement of a publication: with its key, or to its signer if the keys are EC's.

        ParameterError if an encrypted publication has no sender to encrypt to, or its key is not known.
        """
        if opened.way == ECDH_ES_A256KW:
            if opened.sender is None:
                raise ParameterError(
                    "the publication names no sender whose key its acknowledgement could be encrypted to"
                )
            return Security(self.keys, opened.way, (opened.sender,), opened.recipient)
        recipients = () if opened.recipient is None else (opened.recipient,)
        return Security(self.keys, opened.way, recipients, self.sender)

    def _encrypted(self, plain: bytes, external: bytes, fixed_nonce: bytes) -> Secured:
        protected = structures.CONTENT_HEADER
        implicit = self.way == IMPLICIT
        tag = structures.ENCRYPT0 if implicit else structures.ENCRYPT
        if self.way in (IMPLICIT, DIRECT):
            key, iv = self.keys.symmetric(self.recipients[0]), fixed_nonce
            recipients = [] if implicit else [Recipient(structures.DIRECT, self.recipients[0], None, b"")]
        else:
            key, iv = os.urandom(algorithms.KEY_B), os.urandom(algorithms.NONCE_B)
            recipients = [self._wrapped(kid, key) for kid in self.recipients]
        content = AESGCM(key).encrypt(iv, plain, structures.encryption_structure(tag, protected, external))
        signature = None
        if self.sender is not None:
            signature = self._signed("CounterSignature", b"", content, protected)
        return Secured(tag, protected, iv, content, tuple(recipients), signature)

    def _wrapped(self, kid: bytes, key: bytes) -> Recipient:
        if self.way == A256KW:
            return Recipient(structures.A256KW, kid, None, aes_key_wrap(self.keys.symmetric(kid), key))
        ephemeral, wrapping = algorithms.agree_with(self.keys.public(kid))
        return Recipient(structures.ECDH_ES_A256KW, kid, ephemeral, aes_key_wrap(wrapping, key))

    def _decrypted(self, item: Secured, external: bytes, fixed_nonce: bytes) -> tuple[str, bytes, bytes]:
        """(the way it was encrypted, the key's identifier, the text)."""
        authenticated = structures.encryption_structure(item.tag, item.protected, external)
        for way, kid, key in self._content_keys(item):
            plain = algorithms.decrypt(key, item.iv or fixed_nonce, item.content, authenticated)
            if plain is not None:
                return way, kid, plain
        known = ", ".join(repr(recipient.kid) for recipient in item.recipients) or "a key that all share"
        raise DecodeError(f"a message encrypted for {known} cannot be decrypted with the keys in the store")

    def _content_keys(self, item: Secured) -> list[tuple[str, bytes, bytes]]:
        """The keys that the content may be encrypted with: (the way, the identifier, the key)."""
        if item.tag == structures.ENCRYPT0:
            return [(IMPLICIT, kid, key) for kid, key in self.keys.symmetric.items()]
        for recipient in item.recipients:
            key = self._unwrapped(recipient)
            if key is not None:
                # One alone: else a message of many recipients would be many times the work.
                return [(_WAY_OF[recipient.algorithm], recipient.kid, key)]
        return []

    def _unwrapped(self, recipient: Recipient) -> bytes | None:
        keys, kid = self.keys, recipient.kid
        if recipient.algorithm == structures.ECDH_ES_A256KW:
            if kid not in keys.private or recipient.ephemeral is None:
                return None
            return algorithms.unwrap(algorithms.agree(keys.private(kid), recipient.ephemeral), recipient.wrapped)
        key: bytes | None = keys.symmetric.get(kid)
        return key if recipient.algorithm == structures.DIRECT else algorithms.unwrap(key, recipient.wrapped)

    def _signed(self, context: str, external: bytes, content: bytes, body_protected: bytes | None = None) -> Signature:
        assert self.sender is not None
        key = self.keys.private(self.sender)
        algorithm = algorithms.signature_algorithm(key.public_key())
        protected = structures.signature_header(algorithm)
        signed = structures.signature_structure(context, body_protected, protected, external, content)
        return Signature(protected, algorithm, self.sender, algorithms.sign(key, signed))

    def _signer(
        self,
        signature: Signature | None,
        context: str,
        external: bytes,
        content: bytes,
        body_protected: bytes | None = None,
    ) -> bytes | None:
        """Who signed, if that is known and the signature right."""
        if signature is None or signature.kid not in self.keys.public:
            return None
        key = self.keys.public(signature.kid)
        if signature.algorithm != algorithms.signature_algorithm(key):
            return None
        signed = structures.signature_structure(context, body_protected, signature.protected, external, content)
        return signature.kid if algorithms.is_signed(key, signature.value, signed) else None


def nonce(message: Any) -> bytes:
    """The nonce of a message that is encrypted with a key of its own for long: 12 bytes, of its id and number."""
    is_acknowledgement = isinstance(message, dps.Acknowledgement)
    number = message.acknowledged if is_acknowledgement else message.sequence
    first = message.publication_id[0]
    marked = first | _ACK_BIT if is_acknowledgement else first & ~_ACK_BIT
    return number.to_bytes(4, "little") + bytes((marked,)) + message.publication_id[1:8]
