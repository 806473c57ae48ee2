"""The Lua dissector: `tshark` shows the fields of `wb.dissect`, for the frames of runs and for damaged ones."""

import json
import random
import re

import pytest

import workbench as wb
from tests.captures.made import NAMES, distinct_frames, write_capture
from tests.captures.wireshark import expected, is_same, needs_tshark, packets_of, tshark
from tests.families import examples
from workbench.captures.ieee802154 import form_of, pan_id
from workbench.captures.lua import generate, save_dissector
from workbench.captures.lua.names import names_in
from workbench.errors import ParameterError
from workbench.protocols.dps.views import message
from workbench.protocols.flooding import dissector as flooding_dissector
from workbench.protocols.protocol import Protocol
from workbench.public_names import PROTOCOLS

QUICK = ("coded-diffusion-grid", "diffusion-two-way", "gossip-pieces-disc", "tinymq-own", "flooding-moving", "dps-grid")
NOT_CALLED = ("BinaryField._make_tables", "Field.galois", "Field.scale")
WORKBENCH = [getattr(wb, name) for name in PROTOCOLS]
MOST_QUICK = 300  # frames of a scenario


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    return save_dissector(tmp_path_factory.mktemp("lua") / "workbench.lua")


@pytest.fixture(autouse=True)
def only_what_lua_has(monkeypatch):
    """Let the functions that only Python has return what their substitutes return, as in Lua."""
    for name, function in list(vars(message).items()):
        if hasattr(function, "substitute"):
            monkeypatch.setattr(message, name, function.substitute)


def differences(path, script, frames):
    """Return (expected fields, shown fields) of the frames of which tshark shows other fields than `wb.dissect`."""
    packets = list(packets_of(write_capture(path, frames), script))
    assert len(packets) == len(frames)
    pairs = [
        (expected(wb.dissect(protocol, frame, broadcast).fields), packet["fields"] or [])
        for (protocol, frame, broadcast), packet in zip(frames, packets, strict=True)
    ]
    return [(fields, shown) for fields, shown in pairs if not is_same(shown, fields)]


def damaged(frames, count, draw):
    """Return ``count`` frames of which most have changed bytes, are cut off or go on, and some are random bytes."""
    results = []
    for _ in range(count):
        protocol, frame, broadcast = draw.choice(frames)
        data = bytearray(frame)
        for _ in range(draw.choice((0, 1, 1, 2, 5))):
            if data:
                data[draw.randrange(len(data))] = draw.choice((0, 1, 255, draw.randrange(256)))
        if draw.random() < 0.3:
            data = data[: draw.randint(0, len(data))]
        if draw.random() < 0.2:
            data += draw.randbytes(draw.randint(1, 20))
        if draw.random() < 0.1:
            data = data[:1] + bytearray(draw.randbytes(draw.randint(0, 60)))
        # Wireshark calls no dissector for a frame without a payload.
        results.append((protocol, bytes(data) or frame, broadcast))
    return results


@needs_tshark
def test_wireshark_shows_the_fields_of_dissect(tmp_path, script):
    frames = [frame for name in QUICK for frame in distinct_frames(name, MOST_QUICK)]
    assert differences(tmp_path / "golden.pcapng", script, frames) == []


@needs_tshark
@pytest.mark.family
@pytest.mark.parametrize("name", NAMES)
def test_wireshark_shows_the_fields_of_every_frame_of_a_golden_trace(name, tmp_path, script):
    assert differences(tmp_path / "golden.pcapng", script, distinct_frames(name)) == []


@needs_tshark
def test_damaged_frames_have_the_fields_of_dissect(tmp_path, script):
    frames = [frame for name in QUICK for frame in distinct_frames(name, MOST_QUICK)]
    some = damaged(frames, examples(1500), random.Random(35))
    assert differences(tmp_path / "damaged.pcapng", script, some) == []


@needs_tshark
@pytest.mark.family
@pytest.mark.parametrize("part", range(10))
def test_random_frames_do_not_crash_wireshark(part, tmp_path, script):
    draw = random.Random(part)
    frames = [frame for name in QUICK for frame in distinct_frames(name)]
    capture = write_capture(tmp_path / "random.pcapng", damaged(frames, 10_000, draw))
    shown = tshark("-X", f"lua_script:{script}", "-r", capture, "-T", "fields", "-e", "_ws.col.Info")
    assert len(shown.splitlines()) == 10_000
    assert ".lua:" not in shown  # the place of an error in Lua


@needs_tshark
def test_fields_have_names_and_values_to_filter(tmp_path, script):
    frame = next(frame for frame in distinct_frames("diffusion-two-way", MOST_QUICK) if frame[1][:1] == b"\x01")
    capture = write_capture(tmp_path / "one.pcapng", [frame, frame])
    source = json.loads(tshark("-X", f"lua_script:{script}", "-r", capture, "-T", "json"))[0]["_source"]["layers"]
    shown = source["wb_diffusion_with_constraints"]
    fields = {field.name: field for field in wb.dissect(*frame).fields}
    for name in ("sink", "round", "ttl"):
        number = int(shown[f"wb_diffusion_with_constraints.{name}"])
        assert f"{number}" in fields[name].text.split()
    of_sink = f"wb_diffusion_with_constraints.sink == {shown['wb_diffusion_with_constraints.sink']}"
    numbers = tshark("-X", f"lua_script:{script}", "-r", capture, "-Y", of_sink, "-T", "fields", "-e", "frame.number")
    assert numbers.split() == ["1", "2"]


def test_every_function_of_the_dissectors_is_translated():
    reasons = set(re.findall(r'error\("([\w.]+) is not translated', generate(WORKBENCH)))
    # Functions that no dissector calls.
    assert reasons == {f"workbench.coding.fields.{name}" for name in NOT_CALLED}


def test_pan_ids_differ():
    forms = [*WORKBENCH, wb.Diffusion(matching="two-way")]
    assert len({pan_id(form) for form in forms}) == len({form_of(form) for form in forms}) == 8
    assert all(1 <= pan_id(form) <= 0xFFFE for form in forms)
    assert pan_id(wb.Flooding) == pan_id(wb.Flooding(ttl=9))


def test_names_of_fields_come_from_the_dissector():
    assert names_in(flooding_dissector) == {
        "attribute": ("attribute", "text"),
        "attributes": ("attributes", "text"),
        "checksum (CRC-32)": ("checksum_crc_32", "number"),
        "key": ("key", "number"),
        "length": ("length", "number"),
        "number of attributes": ("number_of_attributes", "number"),
        "operator": ("operator", "number"),
        "origin": ("origin", "number"),
        "sequence": ("sequence", "number"),
        "ttl": ("ttl", "number"),
        "type": ("type", "number"),
        "value": ("value", "text"),
    }


class Unnamed(Protocol):
    """A protocol whose dissector has code that cannot be translated."""

    dissector = __name__


def dissect(frame, broadcast=True):
    match frame:
        case _:
            return ()


@needs_tshark
def test_dissector_that_cannot_be_translated_shows_the_reason(tmp_path):
    script = save_dissector(tmp_path / "unnamed.lua", [Unnamed])
    (packet,) = packets_of(write_capture(tmp_path / "one.pcapng", [(Unnamed(), b"abc", True)]), script)
    ((label, start, end, _),) = packet["fields"]
    assert (start, end) == (0, 3) and "the statement Match" in label


@pytest.mark.parametrize("protocols", [["Flooding"], [3], [dict]])
def test_only_protocols_have_a_dissector(protocols):
    with pytest.raises(ParameterError, match="is neither a protocol nor the class of one"):
        generate(protocols)
