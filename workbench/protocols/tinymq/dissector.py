"""The fields of the frames of TinyMQ, PUB-2-SUB+ and TinyMQ as published; all three have the same frame formats."""

from workbench.protocols.dissection import NODE, refused
from workbench.protocols.field_tables import (
    CONSTRAINTS,
    EVENT_ID,
    READINGS,
    Check,
    Group,
    Message,
    Number,
    Octets,
    Part,
    Repeat,
    Values,
    When,
)
from workbench.protocols.tinymq import wire

_MOST_BITS = 64  # most bits of a key that its text shows

# Keys and regions


def _bit_string_B(values: Values) -> int:
    return (values["length"] + 7) // 8


def _format_bits(data: bytes, values: Values) -> str:
    length = values["length"]
    if not length:
        return "no bits, a root's"
    # Convert only the bytes that are shown: the conversion takes quadratic time.
    shown_bytes = data[: _MOST_BITS // 8]
    digits = wire.bits(int.from_bytes(shown_bytes, "big"), 8 * len(shown_bytes))[: min(length, _MOST_BITS)]
    bits_text = digits if length <= _MOST_BITS else f"{digits}… ({length} bits)"
    is_padded = data[-1] & ((1 << -length % 8) - 1) == 0
    return bits_text if is_padded else refused(bits_text, "the padding bits after it are not zero")


def _key_text(key: Values) -> str:
    return _format_bits(key["bits"], key)


_KEY_NOTE = "the first bit highest, padded with zeros to whole bytes"
_KEY = (Number("length", "H", "{} bits"), Octets("bits", _bit_string_B, _format_bits, note=_KEY_NOTE))


def _region_fault(values: Values) -> str:
    key_bits, interval_count = values["key_bits"], values["interval_count"]
    if 1 <= key_bits <= wire.WIDEST_KEY_SPACE and interval_count:
        return ""
    return (
        f"invalid region: {interval_count} intervals of {key_bits}-bit strings; "
        f"allowed: 1 or more intervals, of 1 to {wire.WIDEST_KEY_SPACE} bits"
    )


def _interval_end_B(interval: Values) -> int:
    return (interval["key_bits"] + 7) // 8


def _interval_end_text(data: bytes, interval: Values) -> str:
    return str(int.from_bytes(data, "big"))


def _interval_ends(interval: Values) -> tuple[int, int]:
    return int.from_bytes(interval["lowest"], "big"), int.from_bytes(interval["highest"], "big")


def _interval_text(interval: Values) -> str:
    low, high = _interval_ends(interval)
    return f"{low} to {high}"


def _region_text(region: Values) -> str:
    text = ", ".join([_interval_text(interval) for interval in region["intervals"]])
    if wire.ascends([_interval_ends(interval) for interval in region["intervals"]], region["key_bits"]):
        return text
    return refused(text, f"the intervals are not disjoint and ascending within {region['key_bits']} bits")


_END_NOTE = "big-endian, in whole bytes"
_INTERVAL = (
    Octets("lowest", _interval_end_B, _interval_end_text, note=_END_NOTE),
    Octets("highest", _interval_end_B, _interval_end_text, note=_END_NOTE),
)
_REGION = Group(
    "region",
    (
        Number("key_bits", "B", "strings of {} bits", "key space"),
        Number("interval_count", "B", label="number of intervals"),
        Check(_region_fault),
        Repeat("intervals", "interval_count", Group("interval", _INTERVAL, _interval_text, inherited=("key_bits",))),
    ),
    _region_text,
)


# Infos


def _parent_text(address: int, values: Values) -> str:
    return "none, a root" if address == wire.U32 else NODE.format(address)


def _position_text(position: Values) -> str:
    parent = _parent_text(position["parent"], position)
    return f"in tree {position['tree']}, parent: {parent}, key: {_key_text(position['key'])}"


def _distance_text(distance: Values) -> str:
    return f"{distance['hops']} hops to the root of tree {distance['tree']}"


def _heard_fault(values: Values) -> str:
    if values["heard_count"]:
        return ""
    return "the info has a list of 0 neighbors; without neighbors the list must be absent"


_TREE, _EPOCH, _HOPS = Number("tree", "B"), Number("epoch", "I"), Number("hops", "H")
_POSITION = (_TREE, _EPOCH, Number("parent", "I", _parent_text), Group("key", _KEY, _key_text))
_HEARD = (
    Number("heard_count", "B", label="number of neighbors heard"),
    Check(_heard_fault),
    Repeat("heard", "heard_count", Number("neighbor", "I", NODE)),
)
_INFO = (
    Number("position_count", "B", label="number of positions"),
    Repeat("positions", "position_count", Group("position", _POSITION, _position_text)),
    Number("distance_count", "B", label="number of distances"),
    Repeat("distances", "distance_count", Group("distance", (_TREE, _EPOCH, _HOPS), _distance_text)),
    When("", _HEARD),
)


# Unicast frames


def _lease_text(seconds: int, values: Values) -> str:
    return {0: "0 s: the query ends", wire.LEASE_FOREVER_S: "never ends"}.get(seconds, f"{seconds} s")


def _by_key_text(flag: int, values: Values) -> str:
    texts = ("0: on the reverse path of the query", "1: to the sink's key")
    return texts[flag] if flag < len(texts) else refused(f"{flag}", "it must be 0 or 1")


_QUERY_ID = (Number("sink", "I", NODE), Number("query", "I"))
_PUBLISHED = (Number("publisher", "I", NODE), EVENT_ID[1])
_SINK_POSITION = (Number("sink_tree", "B", label="sink's tree"), Group("sink_key", _KEY, _key_text, "sink's key"))
_LEASE = Number("lease_s", "H", _lease_text, "lease")
_BODIES: dict[int, tuple[Part, ...]] = {
    wire.JOIN: (_TREE,),
    wire.GRANT: (_TREE, _EPOCH, Group("key", _KEY, _key_text)),
    wire.QUERY: (_TREE, *_QUERY_ID, Number("round", "B"), _LEASE, _HOPS, *_SINK_POSITION, _REGION, *CONSTRAINTS),
    wire.EVENT: (_TREE, *_PUBLISHED, _HOPS, _REGION, *READINGS),
    wire.NOTIFICATION: (
        _TREE,
        *_QUERY_ID,
        Number("by_key", "B", _by_key_text),
        *_PUBLISHED,
        _HOPS,
        *_SINK_POSITION,
        *READINGS,
    ),
    wire.PROBE: (),
}
_NUMBER_TEXT = "{} at its sender"
_DIRECTIONS = {wire.OPEN: "", wire.UP: ", to a parent", wire.DOWN: ", to a node of the target's branch"}
MESSAGES = {
    wire.INFO: Message("info", _INFO),
    wire.ACK: Message("ack", (Number("number", "H", _NUMBER_TEXT, "number acknowledged"),)),
    wire.REFUSAL: Message("refusal", (Number("number", "H", _NUMBER_TEXT, "number refused"),)),
} | {
    byte: Message(
        wire.NAMES[kind] + _DIRECTIONS[direction] + ("" if wire.wants_ack(bytes((byte,))) else ", no ack wanted"),
        (Number("number", "H", _NUMBER_TEXT), *_BODIES[kind]),
    )
    for byte, (kind, direction) in wire.KINDS.items()
}
