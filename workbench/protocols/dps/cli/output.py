"""The output of ``workbench dps``: lines of text, or with ``--json`` one JSON object a line."""

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
    "unmuting": "link to {} is used again",
    "gone": "link to {} ended",
}
# CBOR tags: reference to a text, scope of such references, shared value, reference to a shared value.
_REFERENCE_TAGS = (25, 256, 28, 29)


class Output:
    """Printer of a command's events: one line for each event, as text or JSON.

    `commands.run` sets ``node`` to the open node. If the output's reader (a pipe) closes, the Output sets the
    event ``stop``, which ends the command.
    """

    def __init__(self, options: argparse.Namespace, stop: asyncio.Event) -> None:
        self.node: Any = None
        self._is_json = options.json
        self._is_quiet = getattr(options, "quiet", False)
        self._is_cbor = options.cbor if hasattr(options, "cbor") else False
        self._is_debug = options.debug
        self._stop = stop

    def write(self, event: str, text: str, **fields: Any) -> None:
        """Print one line: the text, or with ``--json`` the event and its fields."""
        try:
            print(json.dumps({"event": event, **fields}) if self._is_json else printable(text), flush=True)
        except BrokenPipeError:  # The reader has ended, as with `| head`; the command ends too.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            self._stop.set()

    def error(self, text: str) -> None:
        """Print an error that does not end the command: to standard error, or with ``--json`` as an event."""
        if self._is_json:
            self.write("error", text, message=text)
        else:
            print(f"workbench dps: {printable(text)}", file=sys.stderr, flush=True)

    def publication(self, publication: Any, subscription: Any) -> None:
        """Print a publication that a subscription received."""
        if self._is_quiet:
            return
        topics = " | ".join(publication.topics)
        origin_text = (
            "here" if publication.neighbor is None else f"hops {publication.hops}, from {as_text(publication.neighbor)}"
        )
        protection_text = _protection_text(publication)
        content_text = "ended" if publication.is_expiry else self._data_text(publication.data)
        self.write(
            "publication",
            f"{topics} ({id_text(publication.publication_id)} {publication.sequence}, {origin_text}{protection_text}): "
            f"{content_text}",
            topics=list(publication.topics),
            subscription=list(subscription.topics),
            **self._payload_fields(publication.data),
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
        """Print a publication of this node: the id, last sequence number and topics of its series."""
        series_id = id_text(series.publication_id)
        topics = " | ".join(series.topics)
        self.write(
            "published",
            f"published {series_id} {series.sequence} on {topics}",
            topics=list(series.topics),
            publication_id=series_id,
            sequence=series.sequence,
        )

    def answer(self, answer: Any, series: Any) -> None:
        """Print an acknowledgement of a publication of this node."""
        series_id = id_text(series.publication_id)
        protection_text = _protection_text(answer)
        self.write(
            "acknowledgement",
            f"acknowledged {series_id} {answer.sequence}{protection_text}: {self._data_text(answer.data)}",
            publication_id=series_id,
            sequence=answer.sequence,
            sender=None if answer.sender is None else kid_text(answer.sender),
            way=answer.way,
            **self._payload_fields(answer.data),
        )

    def discovered(self, node: Any, topics: list[str]) -> None:
        """Print a node that discovery reports as found, changed or gone.

        ``topics``: the topics of the option ``--topic`` to which the node may subscribe.
        """
        bits = node.interests.popcount
        interests_text = f"a filter of {bits} bits" if bits else "nothing"
        topics_text = f", which may be {' or '.join(topics)}" if topics else ""
        data_text = f": {self._data_text(node.data)}" if node.data else ""
        self.write(
            "gone" if node.is_gone else "found",
            f"{node.address} has gone"
            if node.is_gone
            else f"found {node.address}, asks for {interests_text}{topics_text}{data_text}",
            address=node.address,
            service=node.service,
            bits=bits,
            topics=topics,
            **self._payload_fields(node.data),
        )

    def event(self, event: Any) -> None:
        """Print an event of the protocol if it is a change of a link; with ``--debug``, print any event."""
        event_name = type(event).__name__
        if event_name == "LinkSet":
            peer, link_state = as_text(event.peer), event.detail
            if link_state in _LINK_TEXTS or self._is_debug:
                self.write(
                    "link",
                    _LINK_TEXTS.get(link_state, f"{{}}: {link_state}").format(peer),
                    neighbor=peer,
                    state=link_state,
                )
        elif self._is_debug:
            neighbor = as_text(event.peer) if isinstance(event.peer, tuple) else ""
            event_values = (event_name, event.message, neighbor, event.value, event.detail)
            event_text = " ".join(str(event_value) for event_value in event_values if event_value != "")
            event_fields = {
                "kind": event_name,
                "message": event.message,
                "neighbor": neighbor or None,
                "value": event.value,
            }
            self.write("debug", event_text, **event_fields, detail=str(event.detail))

    def end(self) -> None:
        """Print the last line: numbers of sent and received datagrams, and of drops by reason."""
        node = self.node
        drops = ", ".join(f"{drop_count} {reason}" for reason, drop_count in sorted(node.drops.items())) or "none"
        self.write(
            "end",
            f"{node.sent} datagrams sent, {node.received} received; dropped: {drops}",
            sent=node.sent,
            received=node.received,
            drops=node.drops,
        )

    def _data_text(self, data: bytes) -> str:
        """Return a payload as text; with ``--cbor``, as JSON."""
        if self._is_cbor and data:
            try:
                return json_of_data(data)
            except DecodeError as error:
                return f"({error})"
        return data.decode("utf-8", "backslashreplace").removesuffix(
            "\0"
        )  # The C examples end a text with a zero byte.

    def _payload_fields(self, data: bytes) -> dict[str, Any]:
        return {"data": self._data_text(data), "data_hex": data.hex()}


def printable(text: str) -> str:
    """Return a received text as one line that is safe for a terminal, with control characters escaped."""
    escaped_text = "".join(
        character if character.isprintable() or character == "\t" else ascii(character)[1:-1] for character in text
    )
    encoding = sys.stdout.encoding or "utf-8"
    return escaped_text.encode(encoding, "backslashreplace").decode(encoding)


def _protection_text(item: Any) -> str:
    """Return a text that states how a publication or acknowledgement is encrypted and signed; "" if it is neither."""
    encryption_text = "" if item.way is None else f", encrypted by {item.way}"
    return encryption_text + ("" if item.sender is None else f", signed by {kid_text(item.sender)}")


def id_text(publication_id: bytes) -> str:
    """Return a publication id as the C implementation prints it: a UUID whose bytes are in reverse order."""
    digits = publication_id[::-1].hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def kid_text(kid: bytes) -> str:
    """Return the identifier of a key: a printable text as it is, other bytes as hexadecimal digits."""
    try:
        text = kid.decode()
    except UnicodeDecodeError:
        return kid.hex()
    return text if text.isprintable() else kid.hex()


def data_of_json(text: str) -> bytes:
    """Convert JSON to CBOR; raise ParameterError for invalid JSON."""
    import cbor2

    try:
        return cbor2.dumps(json.loads(text))
    except ValueError as error:
        raise ParameterError(
            f"{text!r} is not JSON ({error}); quote it for the shell, as in -j '{{\"t\": 21.5}}'"
        ) from None


def json_of_data(data: bytes) -> str:
    """Convert CBOR to JSON; byte strings become hexadecimal digits.

    Raises DecodeError for invalid CBOR, and for CBOR with references: they could expand a few bytes to gigabytes.
    """
    import cbor2

    _refuse_references(data)
    try:
        return json.dumps(
            cbor2.loads(data), default=lambda value: value.hex() if isinstance(value, bytes) else str(value)
        )
    except (cbor2.CBORError, ValueError, TypeError, RecursionError) as error:
        raise DecodeError(f"the payload of {len(data)} bytes cannot be converted from CBOR to JSON: {error}") from None


def _refuse_references(data: bytes) -> None:
    """Raise DecodeError if CBOR data contain a tag that marks a shared value, or a reference to a text or value."""
    item_at = 0
    while item_at < len(data):
        major, additional_info = data[item_at] >> 5, data[item_at] & 31
        width_B = 1 << additional_info - 24 if 24 <= additional_info <= 27 else 0
        argument = int.from_bytes(data[item_at + 1 : item_at + 1 + width_B], "big") if width_B else additional_info
        if major == cbor.TAG and argument in _REFERENCE_TAGS:
            raise DecodeError(
                f"{len(data)} bytes of CBOR contain references (tag {argument}); only CBOR without references is shown"
            )
        item_at += 1 + width_B
        if major in (cbor.BYTES, cbor.TEXT) and additional_info <= 27:
            item_at += argument
