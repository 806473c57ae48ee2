"""Discovery works with the rows of real boards that public sources show, on Linux, macOS and Windows."""

import pytest

from tests.motes.bench.recorded import ROWS, port_info
from workbench.motes.bench.bench_file import Bench, read_bench
from workbench.motes.bench.devices import make_device, match_boards, select_distinct

SYSTEMS = ("Linux", "macOS", "Windows")


def names_of(system):
    return [name for name, row in ROWS.items() if row["system"] == system]


def bench_of(tmp_path, *devices):
    bench = Bench(tmp_path / "bench.json", [])
    for node, device in enumerate(devices):
        bench.assign(device, node, {"board": "serial-radio"}, None, is_unique=False)
    bench.save()
    return read_bench(bench.path).boards


@pytest.mark.parametrize("name", ROWS)
def test_row_has_a_source_and_the_form_that_pyserial_gives_to_its_fields(name):
    row = ROWS[name]
    assert row["source"] and row["system"] in SYSTEMS
    added = row["not_recorded"].split()
    assert set(added) <= set(row) and row["serial_number"].startswith("placeholder") is ("serial_number" in added)
    if row["vid"]:
        from serial.tools.list_ports_common import ListPortInfo

        info = ListPortInfo(row["device"])
        vars(info).update({field: value for field, value in vars(port_info(name)).items() if field != "hwid"})
        assert info.usb_info() == row["hwid"]


def test_rows_cover_each_bridge_and_chip_on_each_system():
    ids = {(row["system"], row["vid"], row["pid"]) for row in ROWS.values()}
    boards = [("10C4", "EA60"), ("1A86", "7523"), ("1A86", "55D4"), ("303A", "1001"), ("2E8A", "0005")]
    assert {(system, *numbers) for system in SYSTEMS for numbers in boards} <= ids


@pytest.mark.parametrize("name", [name for name in ROWS if ROWS[name]["vid"]])
def test_port_of_a_board_is_probed_and_described_with_its_socket_or_number(name):
    device, row = make_device(port_info(name)), ROWS[name]
    assert device.is_known_vendor
    assert f"{row['vid']}:{row['pid']}, " in str(device)
    assert (
        row["serial_number"] in str(device) if row["serial_number"] else f"USB socket {row['location']}" in str(device)
    )
    assert ":" not in device.location  # without the interface


def test_port_that_is_not_on_usb_is_not_probed():
    device = make_device(port_info("bluetooth-macos"))
    assert not device.is_known_vendor and str(device) == "n/a"


@pytest.mark.parametrize("system", SYSTEMS)
def test_boards_of_a_system_keep_their_nodes_at_other_ports_and_sockets(tmp_path, system):
    names = [name for name in names_of(system) if ROWS[name]["vid"]]
    named = select_distinct(make_device(port_info(name)) for name in names)
    sockets = sorted({ROWS[name]["location"].partition(":")[0] for name in names})
    moved = [
        make_device(port_info(name, device=f"port {number}", location=f"9-{sockets.index(socket)}"))
        for number, name in enumerate(reversed(names))
        for socket in [ROWS[name]["location"].partition(":")[0]]
    ]
    match = match_boards(bench_of(tmp_path, *named), moved)
    assert set(match.devices) | set(match.problems) == set(range(len(named)))
    for node, device in enumerate(named):
        if device.serial_number is not None and device.serial_number != "0001":
            assert match.devices[node].identity == device.identity
        elif node in match.problems:  # It is never guessed: its sentence names the socket that it left.
            assert f"is in its USB socket, {device.location}; plug" in match.problems[node]
    assert len(match.devices) >= 3


def test_bench_file_moves_between_linux_and_windows_which_reports_numbers_in_upper_case(tmp_path):
    entries = bench_of(tmp_path, make_device(port_info("pico-windows")))
    on_linux = port_info("pico-w-linux", serial_number=ROWS["pico-windows"]["serial_number"].lower())
    assert match_boards(entries, [make_device(on_linux)]).devices[0].port == "/dev/ttyACM0"


@pytest.mark.parametrize(
    ("first", "second"), [("cp2102-macos", "cp2102-macos-twice"), ("ft4232-linux", "ft4232-linux-second")]
)
def test_board_with_two_ports_is_one_board(tmp_path, first, second):
    ports = [make_device(port_info(first)), make_device(port_info(second))]
    assert select_distinct(ports) == ports[:1]
    match = match_boards(bench_of(tmp_path, ports[0]), ports)
    assert match.devices == {0: ports[0]} and not match.problems


def test_identical_boards_in_two_sockets_are_two_boards():
    boards = [make_device(port_info("cp2102-linux", location=location)) for location in ("2-1.6", "2-1.7")]
    unlocated = [make_device(port_info("ch340-windows", device=port, location=None)) for port in ("COM4", "COM5")]
    assert select_distinct(boards + unlocated) == boards + unlocated


def test_number_that_windows_made_up_for_a_device_without_one_is_ignored():
    # The form follows pyserial 3.5, which returns the last part of the parent's instance id in this case.
    device = make_device(port_info("ch9102-windows", serial_number="6&2C0A27FE&0&4"))
    assert device.serial_number is None and "no serial number, USB socket 1-4" in str(device)
