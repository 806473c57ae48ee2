"""Tables of fields: each protocol's hand-written packing agrees with its table, bit by bit, and a table packs alone."""

from functools import partial
from importlib import import_module
from struct import calcsize

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.families import examples
from tests.protocols.test_dissection import (
    DECODERS,
    RUNS,
    complaints,
    sent_frames,
    with_changed_bytes,
    with_right_checksum,
)
from tests.talker import Talker
from workbench.attributes.event_bytes import CHECKSUM_B, with_checksum
from workbench.captures.lua import generate
from workbench.captures.lua.names import names_in
from workbench.coding.fields import field as field_of
from workbench.errors import DecodeError, EncodeError
from workbench.protocols.coded_diffusion import wire as coded
from workbench.protocols.contract import NOBODY
from workbench.protocols.diffusion import wire as diffusion
from workbench.protocols.dissection import NODE, Dissection
from workbench.protocols.field_tables import (
    CONSTRAINTS,
    READINGS,
    Check,
    Flag,
    Group,
    Message,
    Number,
    Octets,
    Repeat,
    When,
    dissect_frame,
    header,
    labels,
    layout,
    pack,
    unpack,
)
from workbench.protocols.flooding import wire as flooding
from workbench.protocols.gossip import wire as gossip
from workbench.protocols.tinymq import wire as tinymq

# Values that a wire module has no name for, as they follow from others.
DERIVED = {
    "type", "number", "attribute_count", "is_listed", "listed_count", "position_count", "distance_count", "heard_count"
}  # fmt: skip
ENCODERS = {
    flooding.Flood: flooding.encode,
    gossip.Piece: gossip.encode,
    coded.Event: coded.encode_event,
    coded.Coded: coded.encode_coded,
    coded.Request: coded.encode_request,
    diffusion.Interest: diffusion.encode_interest,
    diffusion.Data: diffusion.encode_data,
    tinymq.Ack: lambda ack: tinymq.encode_ack(ack.number),
    tinymq.Refusal: lambda refusal: tinymq.encode_refusal(refusal.number),
    **{kind: partial(tinymq.encode, 1) for kind in tinymq.LAYOUTS},
}
LAYOUTS = {
    "flooding": {"flood": flooding.HEADER},
    "gossip of pieces": {"piece": gossip.HEADER},
    "coded diffusion over 2": {
        "event": coded.EVENT_LAYOUT + "B",
        "coded packet": coded.CODED_LAYOUT,
        "request": coded.REQUEST_LAYOUT,
    },
    "diffusion": {"interest": diffusion.INTEREST_LAYOUT, "data": diffusion.DATA_LAYOUT},
    "tinymq": {tinymq.NAMES[kind]: form for kind, form, _ in tinymq.LAYOUTS.values()},
}


def table_of(name):
    return import_module(RUNS[name][0].dissector).MESSAGES


def values_of(message):
    """Return the values that a table has for a message of a wire module: {name: value}."""
    values = message._asdict()
    if isinstance(message, coded.Coded):
        field = field_of(message.field)
        values["field"] = coded.FIELD_ORDERS.index(message.field)
        values["encoding_vector"] = bytes(field.pack(message.encoding_vector))
    if "region" in values:
        size_B = (message.key_bits + 7) // 8
        ends = [[end.to_bytes(size_B, "big") for end in interval] for interval in message.region]
        intervals = [{"key_bits": values["key_bits"], "lowest": low, "highest": high} for low, high in ends]
        region = {"key_bits": values.pop("key_bits"), "interval_count": len(ends), "intervals": intervals}
        values["region"] = region
    for name in values.keys() & {"key", "sink_key"}:
        bits = values[name]
        size_B = (len(bits) + 7) // 8
        padded = int(bits.ljust(8 * size_B, "0") or "0", 2).to_bytes(size_B, "big")
        values[name] = {"length": len(bits), "bits": padded}
    if values.get("parent") == NOBODY:
        values["parent"] = tinymq.U32
    for name in values.keys() & {"positions", "distances"}:
        values[name] = [values_of(item) for item in values[name]]
    for name in values.keys() & {"heard", "listed_sinks"}:
        values[name] = list(values[name])
    # Empty lists that a frame leaves out: an info without names, data for which no other copy has sinks.
    return {name: value for name, value in values.items() if (name, value) not in (("heard", []), ("listed_sinks", []))}


def assert_agree(name, frame):
    """Check that wire module and table both refuse a frame, or read the same values and pack them as the same frame."""
    table, options = table_of(name), {"allows_constraints": RUNS[name][0].allows_constrained_data}
    try:
        decoded = DECODERS[name](frame)
    except DecodeError:
        with pytest.raises(DecodeError):
            unpack(table, frame, **options)
        return
    number, message = decoded if name == "tinymq" else (None, decoded)
    values = unpack(table, frame, **options)
    expected = values_of(message)
    assert {value: values[value] for value in values.keys() - (DERIVED - expected.keys())} == expected
    assert number is None or values["number"] == number
    assert pack(table, values, **options) == frame
    counts = {value for value in values if value.endswith("_count")}
    assert pack(table, {key: value for key, value in values.items() if key not in counts}, **options) == frame


def one_frame_of_each_message(name):
    return {frame[:1] + message.encode(): frame for frame, _, message in sent_frames(name)}.values()


@pytest.mark.parametrize("name", DECODERS)
def test_each_bit_of_a_frame_means_the_same_to_wire_module_and_table(name):
    for frame in one_frame_of_each_message(name):
        assert_agree(name, frame)
        for bit in range(8 * len(frame)):
            flipped = bytearray(frame)
            flipped[bit // 8] ^= 1 << bit % 8
            assert_agree(name, with_right_checksum(name, bytes(flipped)))
        for size in range(len(frame)):
            assert_agree(name, with_right_checksum(name, frame[:size]) if size >= CHECKSUM_B else frame[:size])


@pytest.mark.family
@pytest.mark.parametrize("name", DECODERS)
def test_wire_module_and_table_agree_on_any_bytes(name):
    frames = [frame for frame, _, _ in sent_frames(name)]

    @settings(max_examples=examples(500))
    @given(st.data())
    def agree(data):
        frame = with_changed_bytes(data, frames, 3)
        frame = frame[: data.draw(st.integers(len(frame) // 2, len(frame)))] + data.draw(st.binary(max_size=4))
        assert_agree(name, with_right_checksum(name, bytes(frame)) if data.draw(st.booleans()) else bytes(frame))

    agree()


def test_optional_list_is_packed_without_the_number_that_counts_it():
    info = {"type": next(byte for byte, message in table_of("tinymq").items() if message.name == "info")}
    info |= {"positions": [], "distances": [], "heard": [3, 70_000]}
    frame = pack(table_of("tinymq"), info)
    assert unpack(table_of("tinymq"), frame)["heard"] == [3, 70_000]
    del info["heard"]
    assert len(pack(table_of("tinymq"), info)) == len(frame) - 9


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_of_struct_are_those_of_the_table(name):
    layouts = {message.name: layout(message) for message in table_of(name).values()}
    assert {message: layouts[message] for message in LAYOUTS[name]} == LAYOUTS[name]


@pytest.mark.parametrize("name", LAYOUTS)
def test_wire_module_refuses_numbers_that_do_not_fit_their_field(name):
    table, tried = table_of(name), 0
    for frame in one_frame_of_each_message(name):
        decoded = DECODERS[name](frame)
        message = decoded[1] if name == "tinymq" else decoded
        for field, (number, _) in header(table[frame[0]]).items():
            # A field's order stands for its number, and anything but 0 for the flag by_key.
            if field in message._fields and field not in ("field", "by_key"):
                for wrong in (-1, 1 << 8 * calcsize("<" + number.code)):
                    tried += 1
                    with pytest.raises(EncodeError):
                        ENCODERS[type(message)](message._replace(**{field: wrong}))
    assert tried >= 6


def test_sizes_and_offsets_of_wire_modules_are_those_of_the_tables():
    flood = table_of("flooding")[flooding.TYPE]
    assert header(flood)["ttl"][1] == flooding.TTL_AT and calcsize(layout(flood)) == flooding.HEADER_B
    messages = table_of("diffusion")
    sizes_B = [calcsize(layout(messages[kind])) - 1 for kind in (diffusion.INTEREST, diffusion.DATA)]
    assert sizes_B == [diffusion.INTEREST_HEADER_B, diffusion.DATA_HEADER_B]


@pytest.mark.parametrize("name", ["flooding", "gossip of pieces"])
def test_lower_ttl_changes_only_the_bytes_of_the_ttl(name):
    wire = {"flooding": flooding, "gossip of pieces": gossip}[name]
    for frame in one_frame_of_each_message(name):
        values = unpack(table_of(name), frame)
        assert pack(table_of(name), values | {"ttl": 513}) == wire.with_ttl(frame, 513)


@pytest.mark.parametrize("name", DECODERS)
def test_label_in_a_trace_has_the_origin_and_sequence_of_the_table(name):
    names = ("origin", "source", "publisher", "sink"), ("sequence", "query")
    describe = RUNS[name][0].kind_of_node().describe
    for frame in one_frame_of_each_message(name):
        values = unpack(table_of(name), frame, allows_constraints=RUNS[name][0].allows_constrained_data)
        event_id = [next((values[key] for key in keys if key in values), None) for keys in names]
        assert list(describe(frame)[1:]) == ([NOBODY, 0] if event_id[0] is None else event_id)


# A protocol for hosts alone, whose frames are packed by the table.


def payload_B(values):
    return values["size_B"]


def hex_text(data, values):
    return data.hex()


def pair_text(pair):
    return f"{pair['first']} and {pair['second']}"


def fault(values):
    return "the size is odd" if values["size_B"] % 2 else ""


FLAGS = (Flag("is_urgent", 0x80, ", urgent"), Flag("has_pairs", 0x40, ", with pairs"))
PAIR = Group("pair", (Number("first", "b"), Number("second", "H")), pair_text)
MESSAGES = {
    1: Message(
        "notice",
        (
            Number("size_B", "B", "{} bytes", "size", FLAGS),
            Check(fault),
            Octets("payload", payload_B, hex_text),
            When("has_pairs", (Number("pair_count", "B"), Repeat("pairs", "pair_count", PAIR))),
            *READINGS,
        ),
        has_checksum=True,
    ),
    2: Message("question", (Number("origin", "I", NODE), *CONSTRAINTS, When("", (Number("hops", "B"),)))),
}


class ProtocolWithTable(Talker):
    """A protocol whose module, this one, has the table of its fields."""

    dissector = __name__


NOTICE = {
    "type": 1,
    "size_B": 2,
    "is_urgent": True,
    "has_pairs": True,
    "payload": b"ab",
    "pairs": [{"first": -3, "second": 500}],
    "attributes": wb.parse("TEMP IS 3"),
}


def test_frame_that_a_table_packs_is_unpacked_to_its_values():
    frame = pack(MESSAGES, NOTICE)
    assert frame == with_checksum(bytes.fromhex("01 c2 6162 01 fd f401 01 33012c01"))
    assert unpack(MESSAGES, frame) == NOTICE | {"pair_count": 1, "attribute_count": 1}
    fields = {field.name: field.text for field in dissect_frame(MESSAGES, frame)}
    assert (fields["size"], fields["payload"]) == ("2 bytes, urgent, with pairs", "6162")
    assert fields["pair 1"] == "-3 and 500"
    plain = {"type": 1, "size_B": 0, "payload": b"", "attributes": ()}
    assert pack(MESSAGES, plain) == with_checksum(bytes.fromhex("01 00 00"))


def test_protocol_outside_of_the_package_is_dissected_by_its_table():
    frame = pack(MESSAGES, NOTICE)
    assert wb.dissect(ProtocolWithTable(), frame).fields == dissect_frame(MESSAGES, frame)
    assert "is not translated" not in generate([ProtocolWithTable])
    names = names_in(import_module(__name__))
    assert (names["size"], names["pair count"], names["pair"]) == (
        ("size", "number"),
        ("pair_count", "number"),
        ("pair", "text"),
    )


def test_part_for_further_bytes_may_be_missing():
    question = {"type": 2, "origin": 7, "attribute_count": 0, "attributes": ()}
    with_hops = {**question, "hops": 4}
    assert [pack(MESSAGES, values).hex() for values in (question, with_hops)] == ["020700000000", "02070000000004"]
    with pytest.raises(DecodeError, match="1 B follow the end"):
        unpack(MESSAGES, pack(MESSAGES, question) + b"\x01\x02")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"size_B": 64, "payload": bytes(64)}, "size_B is 64; it must be from 0 to 63"),
        ({"size_B": 3, "payload": b"abc"}, "the size is odd"),
        ({"size_B": 4}, "payload has 2 bytes; it must have 4"),
        ({"pairs": [{"first": 128, "second": 0}]}, "first is 128; it must be from -128 to 127"),
        ({"attributes": wb.parse("TEMP GE 3")}, "only IS"),
    ],
)
def test_values_that_do_not_fit_are_refused(change, why):
    with pytest.raises(EncodeError, match=why):
        pack(MESSAGES, NOTICE | change)


def test_wrong_checksum_and_wrong_attribute_are_refused():
    frame = pack(MESSAGES, NOTICE)
    with pytest.raises(DecodeError, match="the checksum of these bytes"):
        unpack(MESSAGES, frame[:-1] + b"\x00")
    wrong = frame.replace(bytes.fromhex("33012c01"), bytes.fromhex("33042c01"))
    with pytest.raises(DecodeError, match="only IS"):
        unpack(MESSAGES, with_checksum(wrong[:-CHECKSUM_B]))
    assert complaints(Dissection(wrong, dissect_frame(MESSAGES, wrong)))


def test_labels_are_those_of_the_fields():
    assert labels(MESSAGES) == {
        "type": {"number"},
        "size": {"number"},
        "payload": {"octets"},
        "pair count": {"number"},
        "pair": {"text"},
        "first": {"number"},
        "second": {"number"},
        "number of attributes": {"number"},
        "origin": {"number"},
        "hops": {"number"},
    }
