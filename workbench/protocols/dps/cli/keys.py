"""The keys of ``workbench dps``: from its options to what a node encrypts, signs and reads with.

``-x`` has the numbers of the C implementation's example programs: 0 nothing, 1 shared keys (A256KW), 2 key pairs
(ECDH-ES+A256KW, and signed), 3 signed only; and by their names the ways that have no number there.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import DataError, ParameterError

if TYPE_CHECKING:
    from workbench.protocols.dps.cose import KeyStore

WAYS = ("0", "1", "2", "3", "implicit", "direct")
_WAY_NAMES = {"1": "A256KW", "2": "ECDH-ES+A256KW", "implicit": "implicit", "direct": "direct"}
_SIGNED = ("2", "3")


def add_key_options(parser: argparse.ArgumentParser, publishes: bool) -> None:
    """Keys to read with; and, for a command that publishes, what to do with them."""
    keys = parser.add_argument_group(
        "keys",
        "A key's identifier KID is a text, or 0x and hexadecimal digits; acknowledgements go as publications came.",
    )
    if publishes:
        keys.add_argument(
            "-x",
            dest="way",
            choices=WAYS,
            default="0",
            help="0 (default) plain, 1 shared keys, 2 key pairs and signed, 3 signed; or a way by its name",
        )
        keys.add_argument(
            "--to", action="append", metavar="KID", help="who can read it (default: all shared or public keys)"
        )
    keys.add_argument(
        "--key",
        action="append",
        default=[],
        metavar="KID=FILE",
        help="a shared key of 32 bytes; or 64 hexadecimal digits in the place of the file, which others can see",
    )
    keys.add_argument("--private", metavar="KID=FILE", help="our key pair, in PEM: signs, and reads what is for KID")
    keys.add_argument(
        "--refuse-plain",
        action="store_true",
        help="print only what was encrypted, or signed by a key that is given; anybody can send the rest",
    )
    keys.add_argument("--password-file", metavar="FILE", help="of the key pair")
    keys.add_argument(
        "--public",
        action="append",
        default=[],
        metavar="[KID=]FILE",
        help="another's public key or certificate, in PEM; of a certificate KID is the common name if it is left out",
    )


def make_security(options: argparse.Namespace) -> Any:
    """The node's `cose.Security`, None without keys; ParameterError or DataError for what is not a key."""
    way = getattr(options, "way", "0")
    if not (options.key or options.private or options.public):
        if way != "0":
            raise ParameterError(f"-x {way} needs keys; give them with --key, or --private and --public")
        if options.refuse_plain:
            raise ParameterError("--refuse-plain needs keys; give them with --key, or --private and --public")
        return None
    from workbench.protocols.dps.cose import KeyStore, Security

    store = KeyStore()
    shared = [_add_shared(store, text) for text in options.key]
    public = [_add_public(store, text) for text in options.public]
    own = _add_private(store, options.private, options.password_file) if options.private else None
    if way in _SIGNED and own is None:
        raise ParameterError(f"-x {way} signs; name the key to sign with, as in --private 'DPS Test Publisher=key.pem'")
    if way in ("0", "3"):
        return Security(store, None, (), own if way == "3" else None, not options.refuse_plain)
    chosen = [_kid(text) for text in getattr(options, "to", None) or ()]
    recipients = chosen or (public if way == "2" else shared)
    return Security(store, _WAY_NAMES[way], recipients, own, not options.refuse_plain)


def _add_shared(store: KeyStore, text: str) -> bytes:
    kid, where = _pair(text, "--key")
    store.add_symmetric(kid, _shared_key(where))
    return kid


def _shared_key(where: str) -> bytes:
    """32 bytes of 64 digits, or of a file that holds the one or the other."""
    from workbench.protocols.dps.cose.algorithms import KEY_B  # Not before there are keys: it loads `cryptography`.

    key = _of_digits(where)
    if key is not None:
        return key
    content = _read(where)
    key = content if len(content) == KEY_B else _of_digits(content.decode("ascii", "replace").strip())
    if key is None:
        raise DataError(
            f"{where}: this is no shared key; it has to be {KEY_B} bytes, or {2 * KEY_B} hexadecimal digits"
        )
    return key


def _of_digits(text: str) -> bytes | None:
    from workbench.protocols.dps.cose.algorithms import KEY_B

    if len(text) != 2 * KEY_B:
        return None
    try:
        return bytes.fromhex(text)
    except ValueError:
        return None


def _add_private(store: KeyStore, text: str, password_file: str | None) -> bytes:
    kid, where = _pair(text, "--private")
    password = None if password_file is None else _read(password_file).strip()
    store.add_private(kid, _read(where), password)
    return kid


def _add_public(store: KeyStore, text: str) -> bytes:
    if "=" in text:
        kid, where = _pair(text, "--public")
        content = _read(where)
    else:
        content = _read(text)
        kid = _common_name(content, text)
    store.add_public(kid, content)
    return kid


def _common_name(pem: bytes, where: str) -> bytes:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    try:
        names = x509.load_pem_x509_certificate(pem).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    except ValueError:
        names = []
    if not names:
        raise ParameterError(f"{where} is no certificate with a common name; name the key, as in --public KID={where}")
    return str(names[0].value).encode()


def _pair(text: str, option: str) -> tuple[bytes, str]:
    kid, equals, where = text.partition("=")
    if not (kid and equals and where):
        # Not the text itself: it may be a key.
        raise ParameterError(f"{option} is given without a KID or a FILE; it takes KID=FILE")
    return _kid(kid), where


def _kid(text: str) -> bytes:
    if text.startswith("0x"):
        try:
            return bytes.fromhex(text[2:])
        except ValueError:
            raise ParameterError(f"{text!r} is no key identifier; behind 0x there are hexadecimal digits") from None
    return text.encode()


def _read(where: str) -> bytes:
    try:
        return Path(where).read_bytes()
    except OSError as error:
        raise DataError(f"the key file {where} cannot be read: {error.strerror}") from None
