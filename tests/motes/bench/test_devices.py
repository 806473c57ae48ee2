"""Boards are recognized in rows of pyserial's list of ports: replugged, identical, or without a serial number."""

import json
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.families import examples
from workbench.errors import LinkError
from workbench.motes.bench.bench_file import Bench, read_bench
from workbench.motes.bench.devices import Device, make_device, match_boards

# Rows with the fields that pyserial 3.5 gives on Linux. Their serial numbers are made up; ports.csv has recorded ones.
CP210X = ("/dev/ttyUSB0", 0x10C4, 0xEA60, "0001", "1-1.1", "CP2102 USB to UART Bridge Controller")
CP210X_TWIN = ("/dev/ttyUSB1", 0x10C4, 0xEA60, "0001", "1-1.2", "CP2102 USB to UART Bridge Controller")
CH340 = ("/dev/ttyUSB2", 0x1A86, 0x7523, None, "1-1.3", "USB Serial")
CH340_TWIN = ("/dev/ttyUSB3", 0x1A86, 0x7523, None, "1-1.4", "USB Serial")
NATIVE = ("/dev/ttyACM0", 0x303A, 0x1001, "F4:12:FA:58:6A:B0", "1-2:1.0", "USB JTAG/serial debug unit")
PICO = ("/dev/ttyACM1", 0x2E8A, 0x0005, "e6614103e7452a2f", "1-3:1.0", "Board in FS mode - Board CDC")
PICO_TWIN = ("/dev/ttyACM2", 0x2E8A, 0x0005, "e6614c311b7e3a37", "1-4:1.0", "Board in FS mode - Board CDC")
MAINBOARD = ("/dev/ttyS0", None, None, None, None, "n/a")
UNKNOWN = ("/dev/ttyUSB4", 0x1546, 0x01A7, None, "1-5", "u-blox GNSS receiver")
FIELDS = ("device", "vid", "pid", "serial_number", "location", "description")


def device(row, **changes):
    return make_device(SimpleNamespace(**(dict(zip(FIELDS, row, strict=True)) | changes)))


def bench_of(tmp_path, *rows, chips=None):
    bench = Bench(tmp_path / "bench.json", [])
    for index, row in enumerate(rows):
        bench.assign(device(row), None, {"board": "pico-udp"}, chips and chips[index], is_unique=False)
    bench.save()
    return read_bench(bench.path)


def ports(match):
    return {node: device.port for node, device in match.devices.items()}


def test_boards_keep_their_nodes_when_replugged_in_another_order(tmp_path):
    bench = bench_of(tmp_path, PICO, PICO_TWIN, NATIVE)
    replugged = [
        device(NATIVE, device="/dev/ttyACM2", location="1-9"),
        device(PICO_TWIN, device="/dev/ttyACM0", location="1-3:1.0"),
        device(PICO, device="/dev/ttyACM1", location="1-4:1.0"),
    ]
    match = match_boards(bench.boards, replugged)
    assert ports(match) == {0: "/dev/ttyACM1", 1: "/dev/ttyACM0", 2: "/dev/ttyACM2"}
    assert not match.problems and not match.notes


def test_board_that_is_not_connected_is_a_problem_of_its_node_alone(tmp_path):
    match = match_boards(bench_of(tmp_path, PICO, PICO_TWIN).boards, [device(PICO), device(MAINBOARD)])
    assert ports(match) == {0: "/dev/ttyACM1"}
    assert match.problems == {1: "node 1: Raspberry Pi 2E8A:0005, serial number e6614c311b7e3a37 is not connected"}


@pytest.mark.parametrize("twins", [(CH340, CH340_TWIN), (CP210X, CP210X_TWIN)], ids=["no number", "same number"])
def test_identical_boards_are_recognized_by_their_socket_with_a_note(tmp_path, twins):
    bench = bench_of(tmp_path, *twins)
    renumbered = [device(twins[1], device="/dev/ttyUSB0"), device(twins[0], device="/dev/ttyUSB7")]
    match = match_boards(bench.boards, renumbered)
    assert ports(match) == {0: "/dev/ttyUSB7", 1: "/dev/ttyUSB0"}
    assert len(match.notes) == 2 and "keep such boards in their sockets" in match.notes[0]


@pytest.mark.parametrize("twins", [(CH340, CH340_TWIN), (CP210X, CP210X_TWIN)], ids=["no number", "same number"])
def test_identical_boards_in_other_sockets_are_problems_and_the_rest_is_recognized(tmp_path, twins):
    bench = bench_of(tmp_path, *twins, PICO)
    moved = [device(twins[0], location="2-1"), device(twins[1], location="2-2"), device(PICO)]
    match = match_boards(bench.boards, moved)
    assert ports(match) == {2: "/dev/ttyACM1"}
    assert set(match.problems) == {0, 1} and "plug the board into that socket" in match.problems[0]


def test_identical_boards_are_recognized_by_their_chips_in_any_socket(tmp_path):
    bench = bench_of(tmp_path, CH340, CH340_TWIN, chips=["aa", "bb"])
    exchanged = [device(CH340, location="1-1.4"), device(CH340_TWIN, location="1-1.3")]
    chips = {"/dev/ttyUSB2": "bb", "/dev/ttyUSB3": "aa"}
    match = match_boards(bench.boards, exchanged, lambda device: chips[device.port])
    assert ports(match) == {0: "/dev/ttyUSB3", 1: "/dev/ttyUSB2"} and not match.notes


def test_board_whose_chip_does_not_answer_is_not_guessed_from_its_socket(tmp_path):
    bench = bench_of(tmp_path, CH340, CH340_TWIN, chips=["aa", "bb"])
    match = match_boards(
        bench.boards, [device(CH340), device(CH340_TWIN)], lambda device: {"/dev/ttyUSB3": "bb"}.get(device.port)
    )
    assert ports(match) == {1: "/dev/ttyUSB3"}
    assert match.problems == {0: "node 0: no connected board has the chip id aa; no chip id was read at /dev/ttyUSB2"}


def test_chip_is_read_only_where_serial_numbers_do_not_suffice(tmp_path):
    bench = bench_of(tmp_path, PICO, NATIVE, chips=["aa", "bb"])
    assert len(match_boards(bench.boards, [device(PICO), device(NATIVE)], lambda device: 1 / 0).devices) == 2


def test_only_ports_of_boards_and_their_bridges_are_probed():
    known = [device(row).is_known_vendor for row in (CP210X, CH340, NATIVE, PICO, MAINBOARD, UNKNOWN)]
    assert known == [True, True, True, True, False, False]


def test_assignment_is_refused_for_a_node_or_a_board_that_has_one(tmp_path):
    bench = bench_of(tmp_path, PICO)
    with pytest.raises(LinkError, match="node 0 is assigned to another board already; choose a free number"):
        bench.assign(device(PICO_TWIN), 0, {"board": "pico-udp"}, None)
    with pytest.raises(LinkError, match="the board is node 0 of .* already"):
        bench.assign(device(PICO, location="9-9"), 5, {"board": "pico-udp"}, None)
    assert bench.assign(device(PICO_TWIN), None, {"board": "pico-udp"}, None) == 1
    assert bench.entry(1)["usb"]["serial_number"] == PICO_TWIN[3]
    with pytest.raises(LinkError, match="has no board for node 7, only for: 0, 1"):
        bench.entry(7)


def test_file_has_hexadecimal_numbers_and_is_read_back(tmp_path):
    bench = bench_of(tmp_path, PICO)
    usb = json.loads(bench.path.read_text())["boards"][0]["usb"]
    assert (usb["vid"], usb["pid"]) == ("2E8A", "0005") and bench.boards[0]["usb"]["vid"] == 0x2E8A


def test_wifi_key_in_the_file_is_refused_without_being_shown(tmp_path):
    bench = bench_of(tmp_path, PICO)
    bench.path.write_text(bench.path.read_text().replace('"board":', '"wifi": {"key": "secret word"}, "board":'))
    with pytest.raises(LinkError, match="node 0 has a Wi-Fi key, which must not be in this file") as caught:
        read_bench(bench.path)
    assert "secret word" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "cannot be read as JSON"),
        ("[]", "version is None"),
        ('{"version": 2}', "version is 2; this workbench reads version 1"),
        ('{"version": 1, "boards": {}}', "must be a list"),
        ('{"version": 1, "boards": [{}]}', 'has no object "usb"'),
        ('{"version": 1, "boards": [{"usb": {"vid": "xyz"}}]}', "usb.vid of node None is 'xyz'"),
        ('{"version": 1, "boards": [{"usb": {}, "node": -1}]}', "node is -1"),
        ('{"version": 1, "boards": [{"usb": {}, "node": 1}]}', 'the settings of node 1 must be an object with "board"'),
    ],
)
def test_invalid_file_ends_in_a_sentence(tmp_path, content, sentence):
    path = tmp_path / "bench.json"
    path.write_text(content)
    with pytest.raises(LinkError, match=sentence):
        read_bench(path)


def test_missing_file_is_an_error_unless_it_is_to_be_made(tmp_path):
    with pytest.raises(LinkError, match="is missing; `workbench motes name --bench"):
        read_bench(tmp_path / "bench.json")
    assert read_bench(tmp_path / "bench.json", is_new=True).boards == []


ENTRY = {
    "node": 0,
    "usb": {"vid": "2E8A", "pid": "0005", "serial_number": None, "location": "1-1"},
    "chip_id": "aa",
    "settings": {"board": "pico-udp", "wifi": {"name": "desk"}},
    "firmware": {"file": "x.uf2"},
    "program": {},
}
VALUES = st.sampled_from([None, True, -1, 2.5, 1 << 40, "", "text", [], [1], {}, {"key": "x"}])


@settings(max_examples=examples(100), deadline=None)
@given(
    st.sampled_from([*ENTRY, "usb.vid", "usb.serial_number", "usb.location", "settings.board", "settings.wifi"]), VALUES
)
def test_any_value_in_a_file_is_accepted_or_ends_in_a_sentence(tmp_path_factory, name, value):
    entry = json.loads(json.dumps(ENTRY))
    outer, _, inner = name.partition(".")
    if inner:
        entry[outer][inner] = value
    else:
        entry[outer] = value
    path = tmp_path_factory.mktemp("bench") / "bench.json"
    path.write_text(json.dumps({"version": 1, "boards": [entry]}))
    try:
        bench = read_bench(path)
    except LinkError:
        return
    assert match_boards(bench.boards, [device(CH340)]).devices == {}


def test_device_is_described_by_vendor_numbers_and_socket():
    assert str(device(CH340)) == "CH340 bridge 1A86:7523, no serial number, USB socket 1-1.3"
    assert str(device(MAINBOARD)) == "n/a" and str(Device("COM1")) == "no USB device"
