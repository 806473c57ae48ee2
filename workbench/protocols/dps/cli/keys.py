"""The options of ``workbench dps`` for keys, and the conversion of their values to a node's `Security`.

The option ``-x`` selects how publications are protected. Its numbers are those of the C implementation's example
programs: 0 neither encrypted nor signed, 1 encrypted with shared keys (A256KW), 2 encrypted with key pairs
(ECDH-ES+A256KW) and signed, 3 signed only. Two further values, "implicit" and "direct", do not exist in these programs.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import DataError, ParameterError

if TYPE_CHECKING:
    from workbench.protocols.dps.cose import KeyStore

PROTECTIONS = ("0", "1", "2", "3", "implicit", "direct")
_ALGORITHMS = {"1": "A256KW", "2": "ECDH-ES+A256KW", "implicit": "implicit", "direct": "direct"}
_SIGNED = ("2", "3")


def add_key_options(parser: argparse.ArgumentParser, publishes: bool) -> None:
    """Add the options for keys to a command's parser.

    ``publishes``: whether the command publishes; then options to encrypt and sign publications are added, too.
    """
    key_group = parser.add_argument_group(
        "keys",
        "A key's identifier KID is a text, or 0x and hexadecimal digits. "
        "An acknowledgement is encrypted like its publication.",
    )
    if publishes:
        key_group.add_argument(
            "-x",
            dest="protection",
            choices=PROTECTIONS,
            default="0",
            help="protection: 0 (default) none, 1 shared keys, 2 key pairs and signed, 3 only signed, or a name",
        )
        key_group.add_argument(
            "--to", action="append", metavar="KID", help="key of a recipient (default: all shared or public keys)"
        )
    key_group.add_argument(
        "--key",
        action="append",
        default=[],
        metavar="KID=FILE",
        help="a shared key of 32 bytes; or 64 hexadecimal digits instead of "
        "the file, visible to other users of the machine",
    )
    key_group.add_argument(
        "--private",
        metavar="KID=FILE",
        help="this node's key pair, in PEM; it signs, and decrypts publications for KID",
    )
    key_group.add_argument(
        "--refuse-plain",
        action="store_true",
        help="print only publications that are encrypted or signed with a key given here, as any host can send others",
    )
    key_group.add_argument("--password-file", metavar="FILE", help="file with the password of the key pair")
    key_group.add_argument(
        "--public",
        action="append",
        default=[],
        metavar="[KID=]FILE",
        help="another node's public key or certificate, in PEM; KID defaults to the common name of a certificate",
    )


def make_security(options: argparse.Namespace) -> Any:
    """Return the node's `cose.Security`, or None without keys. Raises ParameterError or DataError for a bad key."""
    protection = getattr(options, "protection", "0")
    if not (options.key or options.private or options.public):
        if protection != "0":
            raise ParameterError(f"-x {protection} needs keys; give them with --key, or --private and --public")
        if options.refuse_plain:
            raise ParameterError("--refuse-plain needs keys; give them with --key, or --private and --public")
        return None
    from workbench.protocols.dps.cose import KeyStore, Security

    store = KeyStore()
    shared_kids = [_add_shared(store, option_text) for option_text in options.key]
    public_kids = [_add_public(store, option_text) for option_text in options.public]
    own_kid = _add_private(store, options.private, options.password_file) if options.private else None
    if protection in _SIGNED and own_kid is None:
        raise ParameterError(
            f"-x {protection} needs a key to sign with; give it, as in --private 'DPS Test Publisher=key.pem'"
        )
    if protection in ("0", "3"):
        return Security(store, None, (), own_kid if protection == "3" else None, not options.refuse_plain)
    given_kids = [_encode_kid(option_text) for option_text in getattr(options, "to", None) or ()]
    recipients = given_kids or (public_kids if protection == "2" else shared_kids)
    return Security(store, _ALGORITHMS[protection], recipients, own_kid, not options.refuse_plain)


def _add_shared(store: KeyStore, text: str) -> bytes:
    """Add the shared key of an option KID=FILE to the store; return its identifier."""
    kid, file_or_digits = _split_option(text, "--key")
    store.add_symmetric(kid, _load_shared_key(file_or_digits))
    return kid


def _load_shared_key(source: str) -> bytes:
    """Return the 32 bytes of a shared key; raise DataError if they cannot be read.

    ``source``: 64 hexadecimal digits, or the name of a file with these digits or with the 32 bytes.
    """
    from workbench.protocols.dps.cose.algorithms import KEY_B  # Imported only for keys, since it loads `cryptography`.

    shared_key = _key_from_digits(source)
    if shared_key is not None:
        return shared_key
    file_bytes = _read_key_file(source)
    shared_key = (
        file_bytes if len(file_bytes) == KEY_B else _key_from_digits(file_bytes.decode("ascii", "replace").strip())
    )
    if shared_key is None:
        raise DataError(f"{source}: not a shared key; it must have {KEY_B} bytes, or {2 * KEY_B} hexadecimal digits")
    return shared_key


def _key_from_digits(text: str) -> bytes | None:
    """Return the key that 64 hexadecimal digits encode, or None for any other text."""
    from workbench.protocols.dps.cose.algorithms import KEY_B

    if len(text) != 2 * KEY_B:
        return None
    try:
        return bytes.fromhex(text)
    except ValueError:
        return None


def _add_private(store: KeyStore, text: str, password_file: str | None) -> bytes:
    """Add the key pair of an option KID=FILE to the store; return its identifier."""
    kid, file_name = _split_option(text, "--private")
    password = None if password_file is None else _read_key_file(password_file).strip()
    store.add_private(kid, _read_key_file(file_name), password)
    return kid


def _add_public(store: KeyStore, text: str) -> bytes:
    """Add the public key of an option [KID=]FILE to the store; return its identifier."""
    if "=" in text:
        kid, file_name = _split_option(text, "--public")
        file_bytes = _read_key_file(file_name)
    else:
        file_bytes = _read_key_file(text)
        kid = _read_common_name(file_bytes, text)
    store.add_public(kid, file_bytes)
    return kid


def _read_common_name(pem: bytes, source: str) -> bytes:
    """Return the common name in a certificate as bytes; raise ParameterError if ``pem`` is not such a certificate.

    ``source``: name of the certificate's file, for the error message.
    """
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    try:
        common_names = x509.load_pem_x509_certificate(pem).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    except ValueError:
        common_names = []
    if not common_names:
        raise ParameterError(
            f"{source}: not a certificate with a common name; give an identifier, as in --public KID={source}"
        )
    return str(common_names[0].value).encode()


def _split_option(text: str, option: str) -> tuple[bytes, str]:
    """Return (key identifier, FILE) from ``text``, the value KID=FILE of an option.

    ``option``: name of the option, for the error message. Raises ParameterError for a value of another form.
    """
    kid, equals, source = text.partition("=")
    if not (kid and equals and source):
        # The message does not quote the text, which may be a key.
        raise ParameterError(f"{option} is given without a KID or a FILE; it must be KID=FILE")
    return _encode_kid(kid), source


def _encode_kid(text: str) -> bytes:
    """Return a key identifier as bytes: "0x0a1b" is hexadecimal, any other text is encoded in UTF-8."""
    if text.startswith("0x"):
        try:
            return bytes.fromhex(text[2:])
        except ValueError:
            raise ParameterError(
                f"{text!r} is not a key identifier; 0x must be followed by hexadecimal digits"
            ) from None
    return text.encode()


def _read_key_file(source: str) -> bytes:
    try:
        return Path(source).read_bytes()
    except OSError as error:
        raise DataError(f"the key file {source} cannot be read: {error.strerror}") from None
