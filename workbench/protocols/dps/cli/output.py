"""What ``workbench dps`` prints: lines to be read, or with ``--json`` one object a line."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from typing import Any

from workbench.errors import DecodeError, ParameterError
from workbench.protocols.dps.udp.addresses import as_text
from workbench.protocols.dps.wire import cbor

_LINK_TEXTS = {
    "active": "linked to {}",
    "muted": "link to {} muted, as it closes a loop",
    "unmuting": "link to {} is taken into use again",
    "gone": "link to {} ended",
}
# The tags of a reference to a text and of where these are counted from, of a shared value and of a reference to it.
_REFERENCES = (25, 256, 28, 29)


class Output:
    """Writes one line for each thing that happened; ``node`` is set once there is one."""

    def __init__(self, options: argparse.Namespace, stop: asyncio.Event) -> None:
        self.node: Any = None
        self._is_json = options.json
        self._is_quiet = getattr(options, "quiet", False)
        self._is_cbor = options.cbor if hasattr(options, "cbor") else False
        self._is_debug = options.debug
        self._stop = stop

    def say(self, event: str, text: str, **fields: Any) -> None:
        """One line: the text, or the event and its fields as JSON."""
        try:
            print(json.dumps({"event": event, **fields}) if self._is_json else printable(text), flush=True)
        except BrokenPipeError:  # Nobody reads on, as with `| head`: that ends it.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            self._stop.set()

    def complain(self, text: str) -> None:
        """Something went wrong that does not end the command."""
        if self._is_json:
            self.say("error", text, message=text)
        else:
            print(f"workbench dps: {printable(text)}", file=sys.stderr, flush=True)

    def publication(self, publication: Any, subscription: Any) -> None:
        """What a subscription received."""
        if self._is_quiet:
            return
        topics = " | ".join(publication.topics)
        where = (
            "here" if publication.neighbor is None else f"hops {publication.hops}, from {as_text(publication.neighbor)}"
        )
        signed = _secured(publication)
        what = "ended" if publication.is_expiry else self._data(publication.data)
        self.say(
            "publication",
            f"{topics} ({id_text(publication.publication_id)} {publication.sequence}, {where}{signed}): {what}",
            topics=list(publication.topics),
            subscription=list(subscription.topics),
            **self._payload(publication.data),
            publication_id=id_text(publication.publication_id),
            sequence=publication.sequence,
            ttl_s=publication.ttl_s,
            hops=publication.hops,
            neighbor=None if publication.neighbor is None else as_text(publication.neighbor),
            sender=None if publication.sender is None else kid_text(publication.sender),
            way=publication.way,
            is_expiry=publication.is_expiry,
            wants_answer=publication.wants_answer,
        )

    def published(self, series: Any) -> None:
        """What was published here."""
        name = id_text(series.publication_id)
        topics = " | ".join(series.topics)
        self.say(
            "published",
            f"published {name} {series.sequence} on {topics}",
            topics=list(series.topics),
            publication_id=name,
            sequence=series.sequence,
        )

    def answer(self, answer: Any, series: Any) -> None:
        """An acknowledgement of something published here."""
        name = id_text(series.publication_id)
        signed = _secured(answer)
        self.say(
            "acknowledgement",
            f"acknowledged {name} {answer.sequence}{signed}: {self._data(answer.data)}",
            publication_id=name,
            sequence=answer.sequence,
            sender=None if answer.sender is None else kid_text(answer.sender),
            way=answer.way,
            **self._payload(answer.data),
        )

    def found(self, found: Any, wanted: list[str]) -> None:
        """A node that discovery has found, and which of some topics it may ask for."""
        bits = found.interests.popcount
        asks = f"a filter of {bits} bits" if bits else "nothing"
        may = f", which may be {' or '.join(wanted)}" if wanted else ""
        data = f": {self._data(found.data)}" if found.data else ""
        self.say(
            "gone" if found.is_gone else "found",
            f"{found.address} has gone" if found.is_gone else f"found {found.address}, asks for {asks}{may}{data}",
            address=found.address,
            service=found.service,
            bits=bits,
            topics=wanted,
            **self._payload(found.data),
        )

    def tell(self, event: Any) -> None:
        """An event of the protocol's node: links always, drops and forwarding with --debug."""
        kind = type(event).__name__
        if kind == "LinkSet":
            peer, state = as_text(event.peer), event.detail
            if state in _LINK_TEXTS or self._is_debug:
                self.say("link", _LINK_TEXTS.get(state, f"{{}}: {state}").format(peer), neighbor=peer, state=state)
        elif self._is_debug:
            whom = as_text(event.peer) if isinstance(event.peer, tuple) else ""
            text = " ".join(str(one) for one in (kind, event.message, whom, event.value, event.detail) if one != "")
            fields = {"kind": kind, "message": event.message, "neighbor": whom or None, "value": event.value}
            self.say("debug", text, **fields, detail=str(event.detail))

    def end(self) -> None:
        """The last line: what was sent, received and dropped."""
        node = self.node
        drops = ", ".join(f"{count} {reason}" for reason, count in sorted(node.drops.items())) or "none"
        self.say(
            "end",
            f"{node.sent} datagrams sent, {node.received} received; dropped: {drops}",
            sent=node.sent,
            received=node.received,
            drops=node.drops,
        )

    def _data(self, data: bytes) -> str:
        if self._is_cbor and data:
            try:
                return json_of_data(data)
            except DecodeError as error:
                return f"({error})"
        return data.decode("utf-8", "backslashreplace").removesuffix("\0")  # The C examples send it with a text.

    def _payload(self, data: bytes) -> dict[str, Any]:
        return {"data": self._data(data), "data_hex": data.hex()}


def printable(text: str) -> str:
    """A text as a terminal may be given it, whoever it comes from: a line, in which control characters are escaped."""
    shown = "".join(one if one.isprintable() or one == "\t" else ascii(one)[1:-1] for one in text)
    encoding = sys.stdout.encoding or "utf-8"
    return shown.encode(encoding, "backslashreplace").decode(encoding)


def _secured(item: Any) -> str:
    encrypted = "" if item.way is None else f", encrypted by {item.way}"
    return encrypted + ("" if item.sender is None else f", signed by {kid_text(item.sender)}")


def id_text(publication_id: bytes) -> str:
    """A publication id as the C implementation prints it: a UUID whose bytes are stored last first."""
    digits = publication_id[::-1].hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def kid_text(kid: bytes) -> str:
    """The identifier of a key: its text if it is one, else hexadecimal digits."""
    try:
        text = kid.decode()
    except UnicodeDecodeError:
        return kid.hex()
    return text if text.isprintable() else kid.hex()


def data_of_json(text: str) -> bytes:
    """JSON as CBOR; ParameterError if it is none."""
    import cbor2

    try:
        return cbor2.dumps(json.loads(text))
    except ValueError as error:
        raise ParameterError(
            f"{text!r} is no JSON ({error}); quote it for the shell, as in -j '{{\"t\": 21.5}}'"
        ) from None


def json_of_data(data: bytes) -> str:
    """A payload of CBOR as JSON, bytes in it as hexadecimal digits; DecodeError if it is none.

    References within it are refused: with them a few bytes stand for gigabytes.
    """
    import cbor2

    _refuse_references(data)
    try:
        return json.dumps(
            cbor2.loads(data), default=lambda value: value.hex() if isinstance(value, bytes) else str(value)
        )
    except (cbor2.CBORError, ValueError, TypeError, RecursionError) as error:
        raise DecodeError(f"{len(data)} bytes that are no CBOR with a form in JSON: {error}") from None


def _refuse_references(data: bytes) -> None:
    """DecodeError for CBOR that says what it has said already: shared values, and references to texts."""
    at = 0
    while at < len(data):
        major, information = data[at] >> 5, data[at] & 31
        width_B = 1 << information - 24 if 24 <= information <= 27 else 0
        argument = int.from_bytes(data[at + 1 : at + 1 + width_B], "big") if width_B else information
        if major == cbor.TAG and argument in _REFERENCES:
            raise DecodeError(f"{len(data)} bytes of CBOR with references in it (tag {argument}), which is not shown")
        at += 1 + width_B
        if major in (cbor.BYTES, cbor.TEXT) and information <= 27:
            at += argument
