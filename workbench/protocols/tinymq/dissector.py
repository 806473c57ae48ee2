"""The dissector of frames of TinyMQ, PUB-2-SUB+ and TinyMQ as published; all three have the same frame formats."""

from collections.abc import Callable

from workbench.errors import DecodeError
from workbench.protocols.dissection import NODE, Cutter, Field, Meaning, cut, refused
from workbench.protocols.tinymq import wire

_MOST_BITS = 64  # most bits of a key that its text shows
_DIRECTIONS = {wire.OPEN: "", wire.UP: ", to a parent", wire.DOWN: ", to a node of the target's branch"}
# The first byte of a frame -> a text that describes its type.
_TYPES = {wire.INFO: "info", wire.ACK: "ack", wire.REFUSAL: "refusal"} | {
    byte: wire.NAMES[kind] + _DIRECTIONS[direction] + ("" if wire.wants_ack(bytes((byte,))) else ", no ack wanted")
    for byte, (kind, direction) in wire.KINDS.items()
}
_NUMBERS = {wire.ACK: "number acknowledged", wire.REFUSAL: "number refused"}
_TREE: tuple[str, Meaning] = ("tree", "{}")
_SEQUENCE: tuple[str, Meaning] = ("sequence", "{}")


def dissect(frame: bytes, broadcast: bool = True) -> tuple[Field, ...]:
    """Return the decoded fields of a frame, each with its bytes; ``broadcast`` has no effect."""
    return cut(frame, _read)


def _read(cutter: Cutter) -> None:
    byte = cutter.type_of(_TYPES)
    kind, _ = wire.KINDS.get(byte, (byte, wire.OPEN))
    cutter.number("type", "<B", _TYPES[byte])
    if kind != wire.INFO:
        cutter.number(_NUMBERS.get(kind, "number"), "<H", "{} at its sender")
    _BODIES[kind](cutter)


def _read_info(cutter: Cutter) -> None:
    for index in range(cutter.number("number of positions", "<B")):
        with cutter.group(f"position {index + 1}") as group:
            tree, _, parent = cutter.numbers(wire.POSITION_LAYOUT, _TREE, ("epoch", "{}"), ("parent", _format_parent))
            group.text = f"in tree {tree}, parent: {_format_parent(parent)}, key: {_read_key(cutter, 'key')}"
    for index in range(cutter.number("number of distances", "<B")):
        with cutter.group(f"distance {index + 1}") as group:
            tree, _, hops = cutter.numbers(wire.DISTANCE_LAYOUT, _TREE, ("epoch", "{}"), ("hops", "{}"))
            group.text = f"{hops} hops to the root of tree {tree}"
    if cutter.at < cutter.end:
        _read_heard(cutter)


def _read_heard(cutter: Cutter) -> None:
    neighbor_count = cutter.number("number of neighbors heard", "<B")
    if not neighbor_count:
        raise DecodeError("the info has a list of 0 neighbors; without neighbors the list must be absent")
    for index in range(neighbor_count):
        cutter.number(f"neighbor {index + 1}", "<I", NODE)


def _format_parent(address: int) -> str:
    return "none, a root" if address == wire.U32 else NODE.format(address)


def _read_nothing(cutter: Cutter) -> None:
    """Do nothing: the body of an ack, a refusal or a probe is empty."""


def _read_join(cutter: Cutter) -> None:
    cutter.number("tree", "<B")


def _read_grant(cutter: Cutter) -> None:
    cutter.numbers(wire.GRANT_LAYOUT, _TREE, ("epoch", "{}"))
    _read_key(cutter, "key")


def _read_query(cutter: Cutter) -> None:
    cutter.numbers(
        wire.QUERY_LAYOUT,
        _TREE,
        ("sink", NODE),
        ("query", "{}"),
        ("round", "{}"),
        ("lease", _format_lease),
        ("hops", "{}"),
        ("sink's tree", "{}"),
    )
    _read_key(cutter, "sink's key")
    _read_region(cutter)
    cutter.attributes(cutter.number("number of attributes", "<B"))


def _format_lease(seconds: int) -> str:
    return {0: "0 s: the query ends", wire.LEASE_FOREVER_S: "never ends"}.get(seconds, f"{seconds} s")


def _read_event(cutter: Cutter) -> None:
    cutter.numbers(wire.EVENT_LAYOUT, _TREE, ("publisher", NODE), _SEQUENCE, ("hops", "{}"))
    _read_region(cutter)
    cutter.attributes(cutter.number("number of attributes", "<B"), are_readings=True)


def _read_notification(cutter: Cutter) -> None:
    cutter.numbers(
        wire.NOTIFICATION_LAYOUT,
        _TREE,
        ("sink", NODE),
        ("query", "{}"),
        ("by key", _format_by_key),
        ("publisher", NODE),
        _SEQUENCE,
        ("hops", "{}"),
        ("sink's tree", "{}"),
    )
    _read_key(cutter, "sink's key")
    cutter.attributes(cutter.number("number of attributes", "<B"), are_readings=True)


def _format_by_key(flag: int) -> str:
    texts = ("0: on the reverse path of the query", "1: to the sink's key")
    return texts[flag] if flag < len(texts) else refused(f"{flag}", "it must be 0 or 1")


_BODIES: dict[int, Callable[[Cutter], None]] = {
    wire.INFO: _read_info,
    wire.ACK: _read_nothing,
    wire.REFUSAL: _read_nothing,
    wire.JOIN: _read_join,
    wire.GRANT: _read_grant,
    wire.QUERY: _read_query,
    wire.EVENT: _read_event,
    wire.NOTIFICATION: _read_notification,
    wire.PROBE: _read_nothing,
}


def _read_key(cutter: Cutter, name: str) -> str:
    """Read a key and return its bits as a text; ``name``: the name of the decoded field."""
    with cutter.group(name) as group:
        length = cutter.number("length", "<H", "{} bits")
        data = cutter.octets("bits", (length + 7) // 8, lambda data: _format_bits(data, length))
        group.text = _format_bits(data, length)
    return group.text


def _format_bits(data: bytes, length: int) -> str:
    if not length:
        return "no bits, a root's"
    # Convert only the bytes that are shown: the conversion takes quadratic time.
    shown_bytes = data[: _MOST_BITS // 8]
    digits = wire.bits(int.from_bytes(shown_bytes, "big"), 8 * len(shown_bytes))[: min(length, _MOST_BITS)]
    bits_text = digits if length <= _MOST_BITS else f"{digits}… ({length} bits)"
    is_padded = data[-1] & ((1 << -length % 8) - 1) == 0
    return bits_text if is_padded else refused(bits_text, "the padding bits after it are not zero")


def _read_region(cutter: Cutter) -> None:
    with cutter.group("region") as group:
        key_bits = cutter.number("key space", "<B", "strings of {} bits")
        interval_count = cutter.number("number of intervals", "<B")
        if not 1 <= key_bits <= wire.WIDEST_KEY_SPACE or not interval_count:
            raise DecodeError(
                f"invalid region: {interval_count} intervals of {key_bits}-bit strings; "
                f"allowed: 1 or more intervals, of 1 to {wire.WIDEST_KEY_SPACE} bits"
            )
        intervals = [_read_interval(cutter, f"interval {index + 1}", key_bits) for index in range(interval_count)]
        group.text = ", ".join(f"{low} to {high}" for low, high in intervals)
        if not wire.ascends(intervals, key_bits):
            group.text = refused(group.text, f"the intervals are not disjoint and ascending within {key_bits} bits")


def _read_interval(cutter: Cutter, name: str, key_bits: int) -> tuple[int, int]:
    size_B = (key_bits + 7) // 8
    with cutter.group(name) as group:
        low, high = (
            int.from_bytes(cutter.octets(end_name, size_B, lambda data: str(int.from_bytes(data, "big"))), "big")
            for end_name in ("lowest", "highest")
        )
        group.text = f"{low} to {high}"
    return low, high
