"""Encrypted and signed messages of DPS: those of the C implementation are decrypted, ours only by their recipients."""

import datetime

import cbor2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import DecodeError, ParameterError
from workbench.protocols.dps import wire as dps
from workbench.protocols.dps.bloom import BitVector
from workbench.protocols.dps.cose import (
    A256KW,
    DIRECT,
    ECDH_ES_A256KW,
    IMPLICIT,
    KeyStore,
    Security,
    nonce,
    structures,
)

# An acknowledgement, encrypted by a node of the C implementation with a key of its example programs.
KID = bytes.fromhex("534d2a4b98761f256b783cc2f81290cc")
KEY = bytes.fromhex("2a93ff6d967eb32085800e21b07fa7be3f536857f93c7a4159ab222cf8cf0821")
ACKNOWLEDGED = bytes.fromhex(
    "850103a0a2035065b8fd939b5614a3034a8b8e015a8c1d0d01d8608443a10103a1054c284c7147a621649d546a71a2583712ad1bc7a9949eabc3"
    "6d7220e3c32ead12a982293152c923c310a08d100ad57dd112b28130cbc2b9f030dcf983a7d5b66e00764d2633d7818340a201240450534d2a4b"
    "98761f256b783cc2f81290cc58281c4c6ca5491e95224447bc5f5207617c498685cacec66b0f03589f03d3be3f3c0676324a8c0e6190"
)
SHARED, OTHER = b"shared key", b"another key"
CURVES = {"alice": ec.SECP384R1(), "bob": ec.SECP521R1()}
PUBLICATION = dps.Publication(40002, None, 0, 0, 0, bytes(range(16)), 7, True, BitVector.at([1]), ("a/b",), b"hello")
ACKNOWLEDGEMENT = dps.Acknowledgement(PUBLICATION.publication_id, 7, b"thanks")


def pem(key):
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def public_pem(key):
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def certificate(name, key):
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    begin = datetime.datetime(2020, 1, 1)
    builder = x509.CertificateBuilder(subject, subject, key.public_key(), 1, begin, begin + datetime.timedelta(days=1))
    return builder.sign(key, hashes.SHA384()).public_bytes(serialization.Encoding.PEM)


@pytest.fixture(scope="module")
def pairs():
    return {name: ec.generate_private_key(curve) for name, curve in CURVES.items()}


@pytest.fixture(scope="module")
def stores(pairs):
    """Return a store for alice and one for bob: each with its own key pair, the other's public key and a shared key."""
    stores_by_name = {}
    for name in pairs:
        stores_by_name[name] = store = KeyStore()
        store.add_symmetric(SHARED, bytes(range(32)))
        for owner, key in pairs.items():
            if owner == name:
                store.add_private(name, pem(key))
            else:
                store.add_public(owner, public_pem(key))
    return stores_by_name


def plain_fields(message):
    """Return the fields of a message without its received bytes."""
    return message._replace(protected=b"", body=b"")


def transmitted(message):
    """Return the message as it arrives."""
    return dps.decode(dps.encode(message))


# Messages of the C implementation


def test_captured_acknowledgement_is_decrypted():
    keys = KeyStore()
    keys.add_symmetric(KID, KEY)
    received = dps.decode(ACKNOWLEDGED)
    opened = Security(keys).open(received)
    assert opened.message.data == b"This is an ACK from 127.0.0.1:40001"
    assert (opened.sender, opened.recipient, opened.way) == (None, KID, A256KW)
    assert dps.encode(opened.message) == dps.encode(received) == ACKNOWLEDGED


def test_all_captured_messages_are_decrypted_with_the_test_keys(dps_captured):
    keys = KeyStore()
    for pair in dps_captured["test_keys_A256KW"]:
        keys.add_symmetric(bytes.fromhex(pair["kid"]), bytes.fromhex(pair["key"]))
    encrypted = [case for case in dps_captured["messages"] if "cbor_tag" in (case["decoded"]["encrypted"] or ())]
    assert encrypted
    for case in encrypted:
        opened = Security(keys).open(dps.decode(bytes.fromhex(case["hex"])))
        assert opened.message.data in (b"secret\x00", b"This is an ACK from 127.0.0.1:40001")
        if isinstance(opened.message, dps.Publication):
            assert opened.message.topics == ("a/b/c",)
        # It can be encrypted again with the same key, and has the same content.
        again = Security(keys, A256KW, (opened.recipient,)).seal(plain_fields(opened.message))
        assert plain_fields(Security(keys).open(transmitted(again)).message) == plain_fields(opened.message)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            PUBLICATION._replace(publication_id=bytes.fromhex("c0c7ced5dce3eaf1f8ff060d141b2229"), sequence=255),
            "ff00000040c7ced5dce3eaf1",
        ),
        (
            dps.Acknowledgement(bytes.fromhex("c0c7ced5dce3eaf1f8ff060d141b2229"), 65536, b""),
            "00000100c0c7ced5dce3eaf1",
        ),
        (dps.Acknowledgement(bytes(16), 1, b""), "010000008000000000000000"),
    ],
)
def test_nonce_is_sequence_number_and_publication_id(message, expected):
    assert nonce(message).hex() == expected


def test_all_vectors_of_nonces(dps_reference):
    for case in dps_reference["nonce_direct"]:
        identity = bytes.fromhex(case["uuid"])
        if case["type"] == "ack":
            message = dps.Acknowledgement(identity, case["seq"], b"")
        else:
            message = PUBLICATION._replace(publication_id=identity, sequence=case["seq"])
        assert nonce(message).hex() == case["nonce"]


# Our messages


@pytest.mark.parametrize(
    ("method", "recipients", "tag"),
    [
        (IMPLICIT, [SHARED], 16),
        (DIRECT, [SHARED], 96),
        (A256KW, [SHARED], 96),
        (ECDH_ES_A256KW, ["alice", "bob"], 96),
    ],
)
@pytest.mark.parametrize("sender", [None, "alice"])
def test_encrypted_message_is_read_by_its_recipients_and_answered(stores, method, recipients, tag, sender):
    sealed = Security(stores["alice"], method, recipients, sender).seal(PUBLICATION)
    assert cbor2.loads(sealed.body).tag == tag
    assert PUBLICATION.data not in dps.encode(sealed)
    bob = Security(stores["bob"], sender="bob" if sender else None)
    opened = bob.open(transmitted(sealed))
    assert plain_fields(opened.message) == PUBLICATION
    assert opened.sender == (b"alice" if sender else None)
    assert opened.way == method
    if method == ECDH_ES_A256KW and not sender:
        with pytest.raises(ParameterError, match="has no valid signature"):
            bob.answering(opened)
        return
    answer = transmitted(bob.answering(opened).seal(ACKNOWLEDGEMENT))
    read = Security(stores["alice"]).open(answer)
    assert plain_fields(read.message) == ACKNOWLEDGEMENT
    assert read.recipient == (b"alice" if method == ECDH_ES_A256KW else SHARED)
    assert read.sender == (b"bob" if sender else None)


@pytest.mark.parametrize("name", sorted(CURVES))
def test_signed_message_is_readable_and_names_its_sender(stores, name):
    sealed = Security(stores[name], sender=name).seal(PUBLICATION)
    assert cbor2.loads(sealed.body).tag == 18
    for store in stores.values():
        opened = Security(store).open(transmitted(sealed))
        assert (plain_fields(opened.message), opened.sender) == (PUBLICATION, name.encode())
    unknown = Security(KeyStore()).open(transmitted(sealed))
    assert (plain_fields(unknown.message), unknown.sender) == (PUBLICATION, None)


def test_bad_signature_makes_the_sender_unknown_and_drops_nothing(stores):
    sealed = Security(stores["alice"], sender="alice").seal(PUBLICATION)
    forged = transmitted(sealed._replace(body=sealed.body.replace(b"hello", b"HELLO")))
    opened = Security(stores["bob"]).open(forged)
    assert (opened.message.data, opened.sender) == (b"HELLO", None)


def test_countersignature_of_someone_else_is_not_believed(stores):
    sealed = Security(stores["alice"], A256KW, [SHARED], "alice").seal(PUBLICATION)
    forged = transmitted(sealed._replace(body=sealed.body.replace(b"alice", b"bobby")))
    opened = Security(stores["bob"]).open(forged)
    assert (opened.message.data, opened.sender) == (b"hello", None)
    item = structures.decode(sealed.body)
    for value in (bytes(96), bytes(95), b""):
        signature = item.signature._replace(value=value)
        forged = transmitted(sealed._replace(body=structures.encode(item._replace(signature=signature))))
        assert Security(stores["bob"]).open(forged).sender is None


def test_message_without_encryption_passes(stores):
    security = Security(stores["alice"])
    assert security.seal(PUBLICATION) == PUBLICATION
    opened = security.open(transmitted(PUBLICATION))
    assert plain_fields(opened.message) == PUBLICATION
    assert security.answering(opened).seal(ACKNOWLEDGEMENT) == ACKNOWLEDGEMENT


def test_fresh_key_and_nonce_each_time(stores):
    security = Security(stores["alice"], A256KW, [SHARED])
    assert security.seal(PUBLICATION).body != security.seal(PUBLICATION).body


def test_content_has_the_layout_of_the_c_implementation(stores):
    item = cbor2.loads(Security(stores["alice"], ECDH_ES_A256KW, ["bob"], "alice").seal(PUBLICATION).body)
    protected, unprotected, ciphertext, recipients = item.value
    assert protected == bytes.fromhex("a10103")
    assert list(unprotected) == [5, 7]
    assert len(unprotected[5]) == 12
    assert list(unprotected[7][:2]) == [bytes.fromhex("a1013822"), {4: b"alice"}]
    assert len(unprotected[7][2]) == 96
    assert len(ciphertext) == len(dps.body_map(PUBLICATION)) + 16
    ((header, headers, wrapped),) = recipients
    assert header == bytes.fromhex("a101381e")
    assert list(headers) == [-1, 4]
    assert [headers[-1][key] for key in (1, -1)] == [2, 3]
    assert [len(headers[-1][key]) for key in (-2, -3)] == [66, 66]
    assert len(wrapped) == 40


def test_key_derivation_and_authenticated_data_follow_rfc_8152():
    header = bytes.fromhex("a101381e")
    nobody = [None, None, None]
    assert structures.key_derivation_structure() == cbor2.dumps([-5, nobody, nobody, [256, header]])
    assert structures.encryption_structure(96, b"p", b"e") == cbor2.dumps(["Encrypt", b"p", b"e"])
    assert structures.encryption_structure(16, b"p", b"e") == cbor2.dumps(["Encrypt0", b"p", b"e"])
    signed = structures.signature_structure("Signature1", None, b"p", b"e", b"c")
    assert signed == cbor2.dumps(["Signature1", b"p", b"e", b"c"])
    signed = structures.signature_structure("CounterSignature", b"b", b"p", b"", b"c")
    assert signed == cbor2.dumps(["CounterSignature", b"b", b"p", b"", b"c"])


# Forged messages and those for other recipients


@pytest.mark.parametrize("method", [IMPLICIT, DIRECT, A256KW])
@pytest.mark.parametrize("field", ["sequence", "publication_id", "lifetime_s", "acknowledge", "filter"])
def test_changed_protected_field_is_detected(stores, method, field):
    sealed = transmitted(Security(stores["alice"], method, [SHARED]).seal(PUBLICATION))
    changes = {"sequence": 8, "publication_id": bytes(16), "lifetime_s": 1, "acknowledge": False, "filter": BitVector()}
    forged = sealed._replace(protected=b"", **{field: changes[field]})
    with pytest.raises(DecodeError, match="cannot be decrypted"):
        Security(stores["bob"]).open(transmitted(forged))


def test_port_ttl_and_hops_may_change_in_transit(stores):
    sealed = transmitted(Security(stores["alice"], A256KW, [SHARED]).seal(PUBLICATION))
    passed_on = transmitted(dps.with_next_hop(sealed, 50000, -1))
    opened = Security(stores["bob"]).open(passed_on)
    assert (opened.message.data, opened.message.hops) == (b"hello", 1)


@pytest.mark.parametrize("method", [IMPLICIT, DIRECT, A256KW])
def test_message_for_others_cannot_be_read(stores, method):
    sealed = transmitted(Security(stores["alice"], method, [SHARED]).seal(PUBLICATION))
    stranger = KeyStore()
    stranger.add_symmetric(OTHER, bytes(32))
    with pytest.raises(DecodeError, match="cannot be decrypted"):
        Security(stranger).open(sealed)
    stranger.add_symmetric(SHARED, bytes(32))  # the same name with another key
    with pytest.raises(DecodeError, match="cannot be decrypted"):
        Security(stranger).open(sealed)


def test_message_for_another_key_pair_cannot_be_read(stores):
    sealed = transmitted(Security(stores["alice"], ECDH_ES_A256KW, ["bob"]).seal(PUBLICATION))
    with pytest.raises(DecodeError, match="encrypted for b'bob'"):
        Security(stores["alice"]).open(sealed)


@given(st.integers(0, 400), st.integers(1, 255))
def test_changed_byte_is_detected_or_refused(at, change):
    keys = KeyStore()
    keys.add_symmetric(KID, KEY)
    body = dps.decode(ACKNOWLEDGED).body
    at %= len(body)
    forged = body[:at] + bytes((body[at] ^ change,)) + body[at + 1 :]
    try:
        opened = Security(keys).open(dps.decode(ACKNOWLEDGED)._replace(body=forged))
    except DecodeError:
        return
    # Only headers without meaning here may change undetected.
    assert opened.message.data == b"This is an ACK from 127.0.0.1:40001"


@given(st.sampled_from((16, 18, 96)), st.binary(max_size=60))
def test_any_bytes_of_a_cose_item_are_refused(tag, data):
    message = dps.decode(ACKNOWLEDGED)._replace(body=cbor2.dumps(cbor2.CBORTag(tag, 0))[:-1] + data)
    with pytest.raises(DecodeError):
        Security(KeyStore()).open(message)


@pytest.mark.parametrize(
    "point",
    [
        structures.Point(3, bytes(66), bytes(66)),  # on no curve
        structures.Point(2, bytes(48), bytes(48)),  # on another curve
        structures.Point(9, bytes(66), bytes(66)),
        structures.Point(3, bytes(65), bytes(66)),
        structures.Point(0, b"", b""),
        None,
    ],
)
def test_invalid_ephemeral_key_is_refused(stores, point):
    sealed = transmitted(Security(stores["alice"], ECDH_ES_A256KW, ["bob"]).seal(PUBLICATION))
    item = structures.decode(sealed.body)
    recipient = item.recipients[0]._replace(ephemeral=point)
    forged = sealed._replace(body=structures.encode(item._replace(recipients=(recipient,))))
    with pytest.raises(DecodeError, match="cannot be decrypted"):
        Security(stores["bob"]).open(forged)


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (cbor2.CBORTag(96, [b"\xa1\x01\x01", {5: bytes(12)}, b"", []]), "algorithm 1"),
        (cbor2.CBORTag(96, [b"\xa1\x01\x03", {5: bytes(11)}, b"", []]), "must have 12"),
        (cbor2.CBORTag(96, [b"\xa1\x01\x03", {5: bytes(12)}, b"", [[b"", {1: -3}, b""]]]), "algorithm -3"),
        (cbor2.CBORTag(96, [b"\xa1\x01\x03", {5: bytes(12)}, b""]), "must have 4"),
        (cbor2.CBORTag(98, [b"", {}, b"", []]), "tag 98"),
    ],
)
def test_other_algorithms_and_structures_are_refused(stores, item, reason):
    message = dps.Acknowledgement(bytes(16), 1, None, b"", cbor2.dumps(item))
    with pytest.raises(DecodeError, match=reason):
        Security(stores["alice"]).open(message)


# Keys


def test_certificate_gives_its_public_key(pairs):
    store = KeyStore()
    store.add_public("alice", certificate("alice", pairs["alice"]))
    assert store.public(b"alice").public_numbers() == pairs["alice"].public_key().public_numbers()


def test_private_key_may_have_a_password(pairs):
    secret = serialization.BestAvailableEncryption(b"word")
    data = pairs["bob"].private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, secret)
    store = KeyStore()
    store.add_private("bob", data, b"word")
    assert b"bob" in store.private
    assert b"bob" in store.public
    for password in (None, b"wrong"):
        with pytest.raises(ParameterError, match="cannot be read"):
            store.add_private("bob", data, password)


@pytest.mark.parametrize(
    ("add", "reason"),
    [
        (lambda store: store.add_symmetric("k", bytes(31)), "31 bytes"),
        (lambda store: store.add_private("k", b"nothing"), "cannot be read"),
        (lambda store: store.add_public("k", b"nothing"), "cannot be read"),
        (lambda store: store.add_private("k", pem(ec.generate_private_key(ec.SECP256R1()))), "P-384 or P-521"),
        (lambda store: store.add_public("k", public_pem(ec.generate_private_key(ec.SECP256R1()))), "P-384 or P-521"),
        (lambda store: store.symmetric(b"k"), "b'k': the key store has no shared key"),
        (lambda store: store.private(b"k"), "b'k': the key store has no private key"),
        (lambda store: store.public(b"k"), "b'k': the key store has no public key"),
    ],
)
def test_bad_or_missing_key_is_an_error(add, reason):
    with pytest.raises(ParameterError, match=reason):
        add(KeyStore())


def test_store_never_shows_its_keys():
    keys = KeyStore()
    keys.add_symmetric(KID, KEY)
    assert repr(keys) == "KeyStore(1 shared, 0 private, 0 public keys)"


@pytest.mark.parametrize(
    ("method", "recipients", "sender"),
    [
        ("rot13", [SHARED], None),
        (None, [SHARED], None),
        (DIRECT, [], None),
        (DIRECT, [SHARED, OTHER], None),
        (A256KW, [], None),
        (A256KW, [OTHER], None),
        (A256KW, ["bob"], None),
        (ECDH_ES_A256KW, ["carol"], None),
        (None, [], "bob"),
    ],
)
def test_invalid_settings_are_refused_at_once(stores, method, recipients, sender):
    with pytest.raises(ParameterError):
        Security(stores["alice"], method, recipients, sender)
