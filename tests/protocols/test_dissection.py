"""Dissected frames: those of every protocol's runs, any bytes, and protocols outside of the package."""

from functools import cache, partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.families import examples
from tests.talker import Talker, both_directions, play, say
from workbench.attributes.event_bytes import CHECKSUM_B, with_checksum
from workbench.errors import DecodeError, ParameterError
from workbench.protocols.coded_diffusion import wire as coded_wire
from workbench.protocols.diffusion import wire as diffusion_wire
from workbench.protocols.dissection import NOT_READ, REFUSED, Field, cut, dissect
from workbench.protocols.flooding import wire as flooding_wire
from workbench.protocols.gossip import wire as gossip_wire
from workbench.protocols.tinymq import wire as tinymq_wire
from workbench.public_names import PROTOCOLS

TINYMQ = {"info", "ack", "join", "grant", "query", "event", "notification"}
# Protocol -> the messages that a small run of it sends.
RUNS = {
    "flooding": (wb.Flooding(), {"flood"}),
    "gossip": (wb.Gossip(), {"flood"}),
    "gossip of pieces": (wb.Gossip(pieces=3, forwarding_probability=0.9), {"piece"}),
    "diffusion": (wb.Diffusion(), {"interest", "reinforcement", "data"}),
    "diffusion two-way": (wb.Diffusion(matching="two-way"), {"interest", "reinforcement", "data"}),
    **{
        f"coded diffusion over {order}": (
            wb.CodedDiffusion(field=order, generation_size=3, bootstrap_factor=1),
            {"event", "coded", "request"},
        )
        for order in coded_wire.FIELD_ORDERS
    },
    "tinymq": (wb.TinyMQ(roots=(0, 8)), TINYMQ),
    "pub2sub": (wb.Pub2Sub(roots=(0, 8)), TINYMQ),
    "printed": (wb.PrintedTinyMQ(roots=(0, 8)), TINYMQ),
    "dps": (
        wb.DPS(filter_bits=256, acknowledge=True),
        {"subscription", "subscription ack", "publication", "acknowledgement"},
    ),
}
# Protocols whose decoder refuses exactly the frames with a field that is refused or missing.
DECODERS = {
    "flooding": flooding_wire.decode,
    "gossip": flooding_wire.decode,
    "gossip of pieces": gossip_wire.decode,
    "diffusion": diffusion_wire.decode,
    "diffusion two-way": partial(diffusion_wire.decode, matching="two-way"),
    **{name: coded_wire.decode for name in RUNS if name.startswith("coded")},
    "tinymq": tinymq_wire.decode,
}
ENDS_WITH_CHECKSUM = ("coded", "gossip of")
WORKLOAD = [
    wb.subscribe([0, 5], "TEMP GE 20, TEMP LE 30", start_s=3),
    wb.publish([3, 8], 'TEMP IS 25, PAYLOAD IS "so far, so good"', start_s=8, every_s=2),
]
CONSTRAINED = [
    wb.subscribe([0, 5], "TEMP GE 20, INSTANCE IS 4", start_s=3),
    wb.publish([3, 8], "TEMP IS 25, INSTANCE EQ 4", start_s=8, every_s=2),
]


@cache
def sent_frames(name):
    """Return (frame, whether it is a broadcast, message) of the distinct frames that a small run sends."""
    protocol = RUNS[name][0]
    workload = CONSTRAINED if protocol.allows_constrained_data else WORKLOAD
    run = wb.Scenario(wb.topology.grid(3, 3), protocol, workload, duration_s=12).run(engine="reference")
    rows = run.frames().to_pylist()
    return tuple(dict.fromkeys((row["frame"], row["peer"] == -1, row["message"]) for row in rows))


def with_changed_bytes(data, frames, most):
    """Draw one of the frames and change up to ``most`` of its bytes."""
    frame = bytearray(data.draw(st.sampled_from(frames)))
    for _ in range(data.draw(st.integers(0, most))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    return frame


def with_right_checksum(name, frame):
    """Return a frame of a protocol with the checksum of its bytes, if frames of this protocol end with one."""
    return with_checksum(frame[:-CHECKSUM_B]) if name.startswith(ENDS_WITH_CHECKSUM) else frame


def is_whole(dissection):
    """Return whether the leaves are adjacent and cover all bytes, and each field covers its children."""
    leaves = list(dissection.leaves())
    ends = [0, *(leaf.end for leaf in leaves)]
    follow = [leaf.start for leaf in leaves] == ends[:-1] and ends[-1] == len(dissection.data)
    return follow and all(map(is_where_it_should_be, [field for _, field in dissection.tree()]))


def is_where_it_should_be(field):
    """Return whether a field covers its children; only the field for a frame that ends too soon has no bytes."""
    if field.children:
        return (field.start, field.end) == (field.children[0].start, field.children[-1].end)
    return field.start < field.end or field.name == REFUSED


def complaints(dissection):
    """Return the fields for which a node would refuse the frame."""
    return [field for _, field in dissection.tree() if field.name in (NOT_READ, REFUSED) or " (refused: " in field.text]


@pytest.mark.parametrize("name", PROTOCOLS)
def test_each_public_protocol_has_a_dissector(name):
    (nothing,) = dissect(getattr(wb, name)(), b"").fields
    assert nothing.name == REFUSED and nothing.start == nothing.end == 0


@pytest.mark.parametrize("name", RUNS)
def test_fields_of_a_runs_frames_cover_all_bytes(name):
    protocol, messages = RUNS[name]
    assert {message for _, _, message in sent_frames(name)} == messages
    for frame, broadcast, _ in sent_frames(name):
        dissection = dissect(protocol, frame, broadcast)
        assert is_whole(dissection) and not complaints(dissection), str(dissection)
        assert len(dissection.fields) >= 2


@pytest.mark.parametrize("name", RUNS)
def test_any_bytes_have_fields(name):
    protocol = RUNS[name][0]
    frames = [frame for frame, _, _ in sent_frames(name)]

    @settings(max_examples=examples(60))
    @given(st.data())
    def any_bytes(data):
        begin = data.draw(st.sampled_from(frames))
        beginning = begin[: data.draw(st.integers(0, len(begin)))]
        frame = beginning + data.draw(st.binary(max_size=30))
        dissection = dissect(protocol, frame, data.draw(st.booleans()))
        assert is_whole(dissection) and dissection.data == frame
        assert str(dissection).startswith(f"{len(frame)} bytes")
        assert f"<b>{len(frame)} bytes" in dissection._repr_html_()

    any_bytes()


@pytest.mark.parametrize("name", DECODERS)
def test_exactly_the_reasons_for_refusal_are_shown(name):
    protocol = RUNS[name][0]
    frames = [frame for frame, _, _ in sent_frames(name)]

    @settings(max_examples=examples(200))
    @given(st.data())
    def refused(data):
        frame = with_changed_bytes(data, frames, 2)
        if data.draw(st.booleans()):  # otherwise the checksum hides all other faults
            frame = bytearray(with_right_checksum(name, bytes(frame)))
        if data.draw(st.integers(0, 5)) == 0:
            frame = frame[: data.draw(st.integers(0, len(frame)))] + data.draw(st.binary(max_size=3))
        try:
            DECODERS[name](bytes(frame))
            is_refused = False
        except DecodeError:
            is_refused = True
        dissection = dissect(protocol, bytes(frame))
        assert bool(complaints(dissection)) == is_refused, str(dissection)

    refused()


def test_text_form_has_bytes_fields_and_words():
    frame = flooding_wire.encode(flooding_wire.Flood(7, 300, 9, wb.parse('TEMP IS 26.5, PAYLOAD IS "many bytes"')))
    assert str(dissect(wb.Flooding(), frame)) == (
        "29 bytes\n"
        "0        46                         type                  flood\n"
        "1–4      07 00 00 00                origin                node 7\n"
        "5–8      2c 01 00 00                sequence              300\n"
        "9–10     09 00                      ttl                   9 hops to live\n"
        "11       02                         number of attributes  2\n"
        '12–28                               attributes            TEMP IS 26.5, PAYLOAD IS "many bytes"\n'
        "12–15                                 attribute 1         TEMP IS 26.5\n"
        "12       33                             key               51: TEMP\n"
        "13       01                             operator          1: IS\n"
        "14–15    5a 0a                          value             2650: 26.5 °C\n"
        '16–28                                 attribute 2         PAYLOAD IS "many bytes"\n'
        "16       45                             key               69: PAYLOAD\n"
        "17       01                             operator          1: IS\n"
        "18       0a                             length            10 bytes\n"
        "19–28    6d 61 6e 79 20 62 79 74 …      value             10 bytes"
    )


def test_the_end_of_a_truncated_frame_shows_the_missing_field():
    frame = flooding_wire.encode(flooding_wire.Flood(7, 300, 9, wb.parse("TEMP IS 26.5")))[:-1]
    *_, attributes, rest = dissect(wb.Flooding(), frame).fields
    assert attributes.children[0].text == "cut off"
    assert rest == Field(NOT_READ, 14, 15, "value needs 2 B, but only 1 B are left")


def test_invalid_attribute_is_shown_with_the_reason():
    frame = flooding_wire.encode(flooding_wire.Flood(7, 0, 9, wb.parse("TEMP IS 26.5")))
    for at, byte, why in (
        (12, 3, "key is 3; it must be from 50 to 250"),
        (13, 9, "must be from 1 to 8"),
        (13, 4, "only IS"),
    ):
        wrong = frame[:at] + bytes([byte]) + frame[at + 1 :]
        (complaint,) = complaints(dissect(wb.Flooding(), wrong))
        assert why in complaint.text


def test_each_byte_belongs_to_one_leaf():
    dissection = dissect(wb.Flooding(), flooding_wire.encode(flooding_wire.Flood(7, 0, 9, wb.parse("TEMP IS 1"))))
    assert [dissection.field_at(at).name for at in (0, 4, 5, 15)] == ["type", "origin", "sequence", "value"]
    with pytest.raises(IndexError, match="offset is 16; the frame has 16 bytes"):
        dissection.field_at(16)


# Protocols outside of the package


class ProtocolWithDissector(Talker):
    """A protocol whose module, this one, is its dissector."""

    dissector = __name__


def dissect_here(frame, broadcast):
    def read(cutter):
        cutter.number("origin", "<H", "node {}")
        cutter.number("sequence", "<I")
        cutter.octets("padding", cutter.end - cutter.at, lambda data: "broadcast" if broadcast else "unicast")

    return cut(frame, read)


def test_frame_of_a_protocol_without_a_dissector_is_one_field():
    run = play(both_directions((0, 1)), [say(0, size=20)])
    frame = run.frames()["frame"][0].as_py()
    assert dissect(run, frame).fields == (Field("frame", 0, 20, "20 bytes"),)
    assert dissect(Talker(), b"").fields == ()


def test_protocol_outside_of_the_package_dissects_its_frames(monkeypatch):
    monkeypatch.setitem(globals(), "dissect", dissect_here)
    monkeypatch.setitem(__import__("sys").modules, __name__, __import__("types").SimpleNamespace(**globals()))
    frame = b"\x03\x00\x07\x00\x00\x00" + bytes(4)
    run = play(both_directions((0, 1)), [say(0, 1, size=20)], protocol=ProtocolWithDissector())
    for of in (run, run.scenario, run.scenario.protocol):
        fields = wb.dissect(of, frame, broadcast=False).fields
        assert [(field.name, field.text) for field in fields] == [
            ("origin", "node 3"),
            ("sequence", "7"),
            ("padding", "unicast"),
        ]


def test_former_name_of_the_dissector_warns():
    with pytest.warns(DeprecationWarning, match="Older.frame is now Older.dissector"):
        older = type("Older", (Talker,), {"frame": "somewhere"})
    assert older().dissector == "somewhere"


@pytest.mark.parametrize("of", [wb.Flooding, None, "Flooding", 3])
def test_objects_without_a_protocol_are_refused(of):
    with pytest.raises(ParameterError, match="must be a protocol, a scenario or a run"):
        dissect(of, b"")


@pytest.mark.parametrize("frame", ["46", 5, None, [70]])
def test_frame_other_than_bytes_is_refused(frame):
    with pytest.raises(ParameterError, match="it must be bytes"):
        dissect(wb.Flooding(), frame)
