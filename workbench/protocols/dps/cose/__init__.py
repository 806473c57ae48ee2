"""DPS's encryption and signatures: COSE around the content of a publication or an acknowledgement.

Theory of operation
    A COSE item replaces the fifth item of a message, which otherwise has the topics and data. Nodes that forward the
    message need no keys, as filters stay readable. The COSE item also authenticates the protected map of the message
    (id, sequence number, filter, ...), but not port, ttl and hop count, which every node changes.

    implicit          Encrypt0 (tag 16): AES-256-GCM with a key that all nodes share.
    direct            Encrypt (96): also AES-256-GCM with a shared key, which the message names.
    A256KW            Encrypt: AES-256-GCM with a fresh key, which is sent encrypted (wrapped) for each recipient, with
                      a shared key (AES key wrap).
    ECDH-ES+A256KW    Encrypt: also a fresh key that is sent wrapped. HKDF-SHA256 derives the wrapping key from ECDH of
                      a fresh key pair and the recipient's public key. Curves P-384 and P-521.
    signed            Sign1 (18): ECDSA with SHA-384 or SHA-512, depending on the curve; not encrypted.

    A sender with a key pair also signs encrypted messages: a countersignature over the ciphertext. A message with a bad
    signature is not dropped. It is delivered without a sender, and the application decides whether to trust it.

    An acknowledgement of an encrypted publication is encrypted with the same key or, with ECDH, with the publisher's
    public key: `Security.answering`.

Cost
    Symmetric encryption or decryption takes 0.1 ms; a signature, its check, or ECDH 0.2 to 0.6 ms.

Limits
    Keys keep strangers from reading messages, not from sending them: a node with keys also delivers messages that are
    neither encrypted nor signed (*plain* messages), as in the C implementation. For such a message ``way`` (how it was
    encrypted) and ``sender`` (the key that signed it) are both None. A node with ``Security(..., plain=False)`` drops
    plain messages. A plain acknowledgement of an encrypted publication is always dropped. Any node that has a shared
    key can encrypt messages with it; only a signature identifies the sender.

    The nonce of implicit and direct encryption is derived from the publication's sequence number and id, and a bit
    that is set in acknowledgements. So two subscribers that acknowledge one publication under one direct key use the
    same nonce for two texts. This breaks AES-GCM: an eavesdropper learns the exclusive or of the texts, and can forge
    messages. The C implementation does the same; use A256KW if more than one subscriber acknowledges. Keys are as safe
    as the memory of this process.

Why no COSE library
    The countersignature follows RFC 8152, with an empty external part. RFC 9338 replaced this kind, and cwt, the
    maintained library for Python, offers only the new kind. The rest is small: four CBOR arrays, filled by the library
    `cryptography`.

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
from workbench.protocols.dps.cose.structures import CoseItem, Recipient, Signature

__all__ = ["A256KW", "DIRECT", "ECDH_ES_A256KW", "IMPLICIT", "KeyStore", "Opened", "Security", "nonce"]

IMPLICIT, DIRECT, A256KW, ECDH_ES_A256KW = "implicit", "direct", "A256KW", "ECDH-ES+A256KW"
WAYS = (IMPLICIT, DIRECT, A256KW, ECDH_ES_A256KW)
_KEY_MANAGEMENT = {structures.DIRECT: DIRECT, structures.A256KW: A256KW, structures.ECDH_ES_A256KW: ECDH_ES_A256KW}
_ACK_BIT = 0x80


class Opened(NamedTuple):
    """A readable message, and how it was secured.

    sender     identifier of the key that signed the message; None without a valid signature by a known key
    recipient  identifier of the key that decrypted the message; None if it was not encrypted
    way        key management of the message's encryption (one of `WAYS`); None if it was not encrypted
    """

    message: Any
    sender: bytes | None
    recipient: bytes | None
    way: str | None

    @property
    def is_plain(self) -> bool:
        """True if the message is neither encrypted nor signed by a known key, so that any node may have forged it."""
        return self.way is None and self.sender is None


class Security:
    """The encryption and signatures of one node, for messages that it sends and receives.

    keys        the node's `KeyStore`
    way         key management of the encryption, one of `WAYS`; None sends messages without encryption
    recipients  identifiers (bytes or texts) of the recipients' keys: one for "implicit" and "direct", one or more for
                the other values of ``way``
    sender      identifier of the private key that signs messages; None sends them without a signature
    plain       whether to accept messages that are neither encrypted nor signed by a known key; if not, they are
                dropped with the reason "plain"

    The constructor raises ParameterError for an invalid ``way`` or number of recipients, and for a key that is not in
    the store.
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
            raise ParameterError(f"the argument `way` is {self.way!r}; it must be one of {', '.join(WAYS)}, or None")
        recipient_count = len(self.recipients)
        if (
            (self.way is None and recipient_count)
            or (self.way in (IMPLICIT, DIRECT) and recipient_count != 1)
            or (self.way and not recipient_count)
        ):
            allowed = "no keys" if self.way is None else "1 key" if self.way in (IMPLICIT, DIRECT) else "1 key or more"
            raise ParameterError(
                f"the argument `recipients` has {recipient_count} keys; with way={self.way!r} it must have {allowed}"
            )
        for kid in self.recipients:
            (self.keys.public if self.way == ECDH_ES_A256KW else self.keys.symmetric)(kid)
        if self.sender is not None:
            self.keys.private(self.sender)

    def seal(self, message: Any) -> Any:
        """Return a message encrypted as the attribute ``way`` requires, and signed with the key of ``sender``.

        ``message`` is a `wire.Publication` or `wire.Acknowledgement` with readable data. It is not encrypted if ``way``
        is None, and not signed if ``sender`` is None.
        """
        protected_map = dps.protected_map(message)
        plain_body = dps.body_map(message)
        if self.way is not None:
            return dps.with_secured_body(
                message, structures.encode(self._encrypt(plain_body, protected_map, nonce(message)))
            )
        if self.sender is None:
            return message
        signature = self._sign("Signature1", protected_map, plain_body)
        return dps.with_secured_body(message, structures.encode_signed(signature, plain_body))

    def open(self, message: Any) -> Opened:
        """Return a received message as `Opened`: decrypted if necessary, and with its signature verified.

        Raises DecodeError if decryption fails. A message with an invalid signature is returned, with ``sender`` None.
        """
        if message.data is not None:
            return Opened(message, None, None, None)
        cose_item = structures.decode(message.body)
        protected_map = dps.protected_map(message)
        if cose_item.tag == structures.SIGN1:
            sender = self._verified_signer(cose_item.signature, "Signature1", protected_map, cose_item.content)
            return Opened(dps.with_plain_body(message, cose_item.content), sender, None, None)
        key_management, kid, plain_body = self._decrypt(cose_item, protected_map, nonce(message))
        sender = self._verified_signer(
            cose_item.signature, "CounterSignature", b"", cose_item.content, cose_item.protected
        )
        return Opened(dps.with_plain_body(message, plain_body), sender, kid, key_management)

    def answering(self, opened: Opened) -> "Security":
        """Return the `Security` that encrypts an acknowledgement as the publication ``opened`` was encrypted.

        The key is that of the publication, except with ECDH: then the acknowledgement is encrypted with the public key
        of the publication's signer. Raises ParameterError if ECDH was used without a valid signature by a known key, or
        if the key is not in the store.
        """
        if opened.way == ECDH_ES_A256KW:
            if opened.sender is None:
                raise ParameterError(
                    "cannot encrypt the acknowledgement: with ECDH it is encrypted for the publication's signer, and "
                    "the publication has no valid signature by a known key; add the signer's public key"
                )
            return Security(self.keys, opened.way, (opened.sender,), opened.recipient)
        recipients = () if opened.recipient is None else (opened.recipient,)
        return Security(self.keys, opened.way, recipients, self.sender)

    def _encrypt(self, plain: bytes, external: bytes, fixed_nonce: bytes) -> CoseItem:
        protected_header = structures.CONTENT_HEADER
        is_implicit = self.way == IMPLICIT
        tag = structures.ENCRYPT0 if is_implicit else structures.ENCRYPT
        if self.way in (IMPLICIT, DIRECT):
            content_key, iv = self.keys.symmetric(self.recipients[0]), fixed_nonce
            recipients = [] if is_implicit else [Recipient(structures.DIRECT, self.recipients[0], None, b"")]
        else:
            content_key, iv = os.urandom(algorithms.KEY_B), os.urandom(algorithms.NONCE_B)
            recipients = [self._wrap_key(kid, content_key) for kid in self.recipients]
        ciphertext = AESGCM(content_key).encrypt(
            iv, plain, structures.encryption_structure(tag, protected_header, external)
        )
        signature = None
        if self.sender is not None:
            signature = self._sign("CounterSignature", b"", ciphertext, protected_header)
        return CoseItem(tag, protected_header, iv, ciphertext, tuple(recipients), signature)

    def _wrap_key(self, kid: bytes, key: bytes) -> Recipient:
        if self.way == A256KW:
            return Recipient(structures.A256KW, kid, None, aes_key_wrap(self.keys.symmetric(kid), key))
        ephemeral, wrapping_key = algorithms.agree_with(self.keys.public(kid))
        return Recipient(structures.ECDH_ES_A256KW, kid, ephemeral, aes_key_wrap(wrapping_key, key))

    def _decrypt(self, item: CoseItem, external: bytes, fixed_nonce: bytes) -> tuple[str, bytes, bytes]:
        """Decrypt an encrypted item; return (key management, identifier of the key, decrypted bytes).

        ``external``: bytes outside the item that the encryption authenticates. ``fixed_nonce``: the nonce of an item
        that contains none; such an item is encrypted directly with a shared key. Raises DecodeError if no key fits.
        """
        authenticated_bytes = structures.encryption_structure(item.tag, item.protected, external)
        for key_management, kid, content_key in self._content_keys(item):
            decrypted_bytes = algorithms.decrypt(content_key, item.iv or fixed_nonce, item.content, authenticated_bytes)
            if decrypted_bytes is not None:
                return key_management, kid, decrypted_bytes
        key_names = ", ".join(repr(recipient.kid) for recipient in item.recipients) or "an implicit shared key"
        raise DecodeError(f"a message encrypted for {key_names} cannot be decrypted with the keys in the key store")

    def _content_keys(self, item: CoseItem) -> list[tuple[str, bytes, bytes]]:
        """Return [(key management, key identifier, key)] for each key of this node that may decrypt ``item``."""
        if item.tag == structures.ENCRYPT0:
            return [(IMPLICIT, kid, symmetric_key) for kid, symmetric_key in self.keys.symmetric.items()]
        for recipient in item.recipients:
            symmetric_key = self._unwrap_key(recipient)
            if symmetric_key is not None:
                # Only the first usable recipient: otherwise a message with many recipients would cost many decryptions.
                return [(_KEY_MANAGEMENT[recipient.algorithm], recipient.kid, symmetric_key)]
        return []

    def _unwrap_key(self, recipient: Recipient) -> bytes | None:
        key_store, kid = self.keys, recipient.kid
        if recipient.algorithm == structures.ECDH_ES_A256KW:
            if kid not in key_store.private or recipient.ephemeral is None:
                return None
            return algorithms.unwrap(algorithms.agree(key_store.private(kid), recipient.ephemeral), recipient.wrapped)
        shared_key: bytes | None = key_store.symmetric.get(kid)
        return (
            shared_key if recipient.algorithm == structures.DIRECT else algorithms.unwrap(shared_key, recipient.wrapped)
        )

    def _sign(self, context: str, external: bytes, content: bytes, body_protected: bytes | None = None) -> Signature:
        assert self.sender is not None
        private_key = self.keys.private(self.sender)
        algorithm = algorithms.signature_algorithm(private_key.public_key())
        protected_header = structures.signature_header(algorithm)
        signed_bytes = structures.signature_structure(context, body_protected, protected_header, external, content)
        return Signature(protected_header, algorithm, self.sender, algorithms.sign(private_key, signed_bytes))

    def _verified_signer(
        self,
        signature: Signature | None,
        context: str,
        external: bytes,
        content: bytes,
        body_protected: bytes | None = None,
    ) -> bytes | None:
        """Return the identifier of the key that made a signature; None if the key is unknown or the signature invalid.

        The other arguments determine the signed bytes, as in `structures.signature_structure`. ``signature`` None: the
        message has no signature, and the result is None.
        """
        if signature is None or signature.kid not in self.keys.public:
            return None
        public_key = self.keys.public(signature.kid)
        if signature.algorithm != algorithms.signature_algorithm(public_key):
            return None
        signed_bytes = structures.signature_structure(context, body_protected, signature.protected, external, content)
        return signature.kid if algorithms.is_signed(public_key, signature.value, signed_bytes) else None


def nonce(message: Any) -> bytes:
    """Return the nonce (12 bytes) of a message that is encrypted directly with a shared key.

    The nonce consists of the publication's sequence number and the first 8 bytes of the publication id. One bit of
    these bytes is replaced: it is set for an acknowledgement, and cleared for a publication.
    """
    is_acknowledgement = isinstance(message, dps.Acknowledgement)
    sequence_number = message.acknowledged if is_acknowledgement else message.sequence
    id_byte = message.publication_id[0]
    first_byte = id_byte | _ACK_BIT if is_acknowledgement else id_byte & ~_ACK_BIT
    return sequence_number.to_bytes(4, "little") + bytes((first_byte,)) + message.publication_id[1:8]
