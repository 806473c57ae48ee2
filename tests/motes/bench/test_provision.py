"""The program is copied onto MicroPython behind a pty: only changed files, verified, and resumed after a lost cable."""

import hashlib
import json

import pytest

import workbench as wb
from tests.motes.bench.pty_board import PtyBoard, require
from tests.until import PATIENCE_S, wait_until
from workbench.errors import LinkError
from workbench.motes.bench import provision, repl
from workbench.motes.bench.answers import CLOSED, MICROPYTHON, NOTHING, PROGRAM, probe
from workbench.motes.bench.provision import (
    MAIN,
    Copied,
    check_interpreter,
    copy_files,
    make_files,
    plan_copy,
    settings_file,
)
from workbench.motes.bench.repl import FullBoardError, Interpreter, LostBoardError, Repl
from workbench.motes.mote import Mote

MODULES = ("espnow", "network", "machine", "json")
ESP32 = Interpreter("micropython", (1, 26, 0), "esp32", "ESP32", 6, "aa", MODULES, 4096, 10**6, 2 * 10**6)
PICO = ESP32._replace(platform="rp2", machine="Raspberry Pi Pico with RP2040", modules=("machine", "json"))
MPY_FILE = ("mote.mpy", b"M\x06\x00\x1f")


def stored_in(folder):
    """Return {path: bytes} of the files in a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def as_stored(files):
    """Return files as a board lists them."""
    return {path: (len(data), hashlib.sha256(data).hexdigest()) for path, data in files}


def test_board_gets_exactly_the_files_and_its_program_answers_with_the_board(make_board, files):
    board = make_board()
    lines, advances = [], []
    copied = provision.provision(
        lambda: board.port, "serial-radio", files, lines.append, lambda done_B, all_B: advances.append((done_B, all_B))
    )
    assert copied == Copied(len(files), 0, 0, sum(len(data) for _, data in files))
    stored = stored_in(board.folder)
    assert {path: stored[path] for path, _ in files} == dict(files)
    assert advances == sorted(advances) and advances[-1] == (copied.size_B, copied.size_B)
    wait_until(lambda: (board.folder / "boot_count").exists())
    mote = Mote(board.port)
    # Waits until the program has started, on a busy machine too; a probe would interrupt its start.
    assert mote.open(PATIENCE_S).board == "serial-radio"
    mote.close()
    answer = probe(board.port)
    assert answer.kind == PROGRAM and "board serial-radio" in answer.text


def test_second_copy_writes_only_the_changed_file_and_reaches_a_running_program(make_board, files):
    board = make_board()
    provision.provision(lambda: board.port, "serial-radio", files)
    wait_until(lambda: (board.folder / "boot_count").exists())
    changed = [(path, data if path != "settings.json" else data + b" ") for path, data in files]
    copied = provision.provision(lambda: board.port, "serial-radio", changed)
    assert copied.written == 2  # main.py is deleted first and written last
    assert copied.unchanged == len(files) - 2
    assert stored_in(board.folder)["settings.json"].endswith(b" ")
    assert (board.folder / "boot_count").exists()  # The count of starts survives.
    assert provision.provision(lambda: board.port, "serial-radio", changed) == Copied(0, 0, len(files), 0)


def test_one_protocol_alone_is_a_part_of_the_files_of_all_protocols(files):
    everything = make_files("serial-radio", None, b"{}\n")
    alone = {path for path, _ in files}
    assert alone < {path for path, _ in everything}
    assert any("flooding" in path for path in alone) and not any("diffusion" in path for path in alone)
    assert {"main.py", "board.mpy", "mote.mpy", "sensors.mpy"} < alone
    assert "radio_udp.mpy" not in alone  # A file that this board's driver does not import.


def test_copy_continues_after_the_cable_was_unplugged_and_plugged_in_at_another_port(make_board, files):
    board = make_board()
    first_port, total_B = board.port, sum(len(data) for _, data in files)
    board.unplug_after_B = total_B  # bytes in Python's notation take more room than the files
    lines, seen_ports = [], []

    def find_port():
        if board.port is None:
            with PtyBoard(board.folder.parent / "other"):  # It takes the number of the pty that is free now.
                board.plug()
        seen_ports.append(board.port)
        return board.port

    copied = provision.provision(find_port, "serial-radio", files, lines.append)
    assert len(seen_ports) == 2 and seen_ports[1] != first_port
    assert [line for line in lines if "is lost" in line and "connect the board again" in line]
    assert 0 < copied.written < len(files)  # The others were there already.
    stored = stored_in(board.folder)
    assert {path: stored[path] for path, _ in files} == dict(files)


def test_board_that_does_not_return_ends_in_a_sentence(make_board, files):
    board = make_board()
    board.unplug_after_B = 5000
    with pytest.raises(LinkError, match="not connected"):
        provision.provision(lambda: board.port, "serial-radio", files, patience_s=0.5)
    assert MAIN not in stored_in(board.folder)  # The board starts into its prompt.


def test_files_of_an_earlier_program_are_deleted_and_those_of_the_user_are_left(make_board, files):
    board = make_board()
    for path in ("mote.py", "workbench/protocols/old.mpy", "notes.txt"):
        (board.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (board.folder / path).write_text("old")
    with Repl(board.port) as prompt:
        assert copy_files(prompt, files).deleted == 2
    stored = stored_in(board.folder)
    assert "mote.py" not in stored and "workbench/protocols/old.mpy" not in stored and stored["notes.txt"] == b"old"


@pytest.mark.parametrize("blocks", [24, 48])
def test_full_file_system_ends_in_a_sentence_and_the_board_keeps_its_prompt(make_board, files, blocks):
    board = make_board(blocks=blocks)
    with Repl(board.port) as prompt:
        with pytest.raises(FullBoardError, match="file system is full: the files need .* bytes, and .* are free"):
            copy_files(prompt, files, None, prompt.describe())
        with pytest.raises(FullBoardError, match="file system is full after [^0].* of .* bytes"):
            copy_files(prompt, files)  # without the check beforehand
        assert prompt.run("print(1)").strip() == "1"


def test_file_that_reads_back_differently_ends_in_a_sentence(make_board, monkeypatch):
    board = make_board()
    write = Repl.write
    monkeypatch.setattr(Repl, "write", lambda prompt, path, data, progress: write(prompt, path, data[:-1], progress))
    with (
        Repl(board.port) as prompt,
        pytest.raises(LinkError, match=r"a.txt was written with 4 bytes and reads back diff"),
    ):
        copy_files(prompt, [("a.txt", b"1234")])


@pytest.mark.family
def test_reset_button_reaches_the_prompt_of_a_program_that_disables_ctrl_c(make_board):
    board = make_board()
    (board.folder / "main.py").write_text(
        "import os, time\nos.system('stty -isig')\nopen('began', 'w')\nwhile True:\n    time.sleep(1)\n"
    )
    board.press_reset()
    wait_until(lambda: (board.folder / "began").exists())
    prompt = Repl(board.port)
    with pytest.raises(LinkError, match="MicroPython does not answer; check that this is the board's port"):
        prompt.open()
    lines = []

    def press(text):
        lines.append(text)
        board.press_reset()

    prompt.open(20, press)
    with prompt:
        assert prompt.run("print(6 * 7)").strip() == "42"
    assert "press the board's reset button" in lines[0]


@pytest.mark.parametrize(
    ("interpreter", "board", "sentence"),
    [
        (ESP32, "pico-udp", "pico-udp needs a Pico W or Pico 2 W; check the port, or choose the driver esp32-espnow"),
        (PICO, "esp32-udp", "esp32-udp needs an ESP32; check the port, or choose the driver serial-radio"),
        (PICO, "pico-udp", "has no module network, which pico-udp needs"),
        (ESP32._replace(modules=("network", "json")), "esp32-espnow", "has no module espnow"),
        (PICO._replace(modules=("machine",)), "serial-radio", "has no module json, which serial-radio needs"),
        (ESP32._replace(version=(1, 18, 0), mpy_version=5), "esp32-udp", "loads version 5 of .mpy files, .* version 6"),
        (ESP32._replace(name="circuitpython"), "esp32-udp", "runs circuitpython; flash MicroPython first"),
    ],
)
def test_unsuitable_firmware_is_refused_before_anything_is_copied(interpreter, board, sentence):
    with pytest.raises(LinkError, match=sentence):
        check_interpreter("COM3", interpreter, board, [MPY_FILE])


@pytest.mark.parametrize("board", ["esp32-espnow", "esp32-udp", "serial-radio"])
def test_suitable_firmware_is_accepted(board):
    check_interpreter("COM3", ESP32, board, [MPY_FILE])


@pytest.mark.parametrize(
    ("interpreter", "board"),
    [
        (ESP32, "esp32-espnow"),
        (PICO._replace(modules=("network", "machine")), "pico-udp"),
        (PICO, "serial-radio"),
        (ESP32._replace(platform="linux"), "serial-radio"),
    ],
)
def test_driver_is_suggested_by_platform_and_by_the_modules_for_wifi(interpreter, board):
    assert provision.suggest_board(interpreter) == board


def test_source_files_suit_every_version_of_bytecode():
    check_interpreter("COM3", ESP32._replace(mpy_version=0), "esp32-udp", [("mote.py", b"M\x06")])


def test_plan_for_an_equal_board_is_empty_and_for_an_empty_board_is_everything():
    files = [MPY_FILE, ("main.py", b"import mote")]
    assert plan_copy(files, as_stored(files)) == ([], [], 2)
    assert plan_copy(files, {}) == (files, [], 0)
    assert plan_copy(files, as_stored([("main.mpy", b""), ("mote.py", b""), ("x.py", b"")])).delete == [
        "main.mpy",
        "mote.py",
    ]


def test_settings_have_the_key_of_the_environment_and_no_other_place_has_it(monkeypatch):
    monkeypatch.setenv(provision.WIFI_KEY_VARIABLE, "correct horse")
    settings = {"board": "pico-udp", "wifi": {"name": "desk"}}
    content = json.loads(settings_file(settings, 2, provision.wifi_key(None)))
    assert content == {"board": "pico-udp", "node": 2, "wifi": {"name": "desk", "key": "correct horse"}}
    assert settings == {"board": "pico-udp", "wifi": {"name": "desk"}}
    with pytest.raises(LinkError, match="Wi-Fi key is missing; set the environment variable WORKBENCH_WIFI_KEY"):
        settings_file(settings, 2, None)
    with pytest.raises(LinkError, match="node 2: wifi.key must be") as caught:
        settings_file(settings, 2, "secret")
    assert "secret" not in str(caught.value)


def test_digest_of_a_program_leaves_out_the_settings():
    files = [MPY_FILE, ("settings.json", b"secret")]
    assert provision.digest_program(files) == provision.digest_program([MPY_FILE])


def test_probe_describes_an_idle_prompt_a_silent_port_and_a_missing_port(make_board):
    board = make_board(chip_id="aabb")
    answer = probe(board.port)
    assert answer.kind == MICROPYTHON and answer.interpreter.chip_id == "aabb"
    assert probe("/dev/does-not-exist").kind == CLOSED


@pytest.mark.family
def test_probe_names_the_reason_if_a_prompt_cannot_describe_its_board(make_board, monkeypatch):
    monkeypatch.setattr(repl, "_DESCRIBE", "import missing_module")
    answer = probe(make_board().port)
    assert answer.kind == MICROPYTHON and answer.interpreter is None
    assert "MicroPython's prompt answers, but cannot describe its board" in answer.text
    assert "missing_module" in answer.text


def test_probe_of_a_port_where_nothing_answers():
    require()
    import os
    import tty

    master, slave = os.openpty()
    tty.setraw(slave)
    try:
        assert probe(os.ttyname(slave)).kind == NOTHING
    finally:
        os.close(master)
        os.close(slave)


@pytest.mark.parametrize("is_running", [True, False], ids=["running", "interrupted before its begin"])
def test_probe_starts_an_interrupted_program_again(make_board, is_running):
    board = make_board()
    (board.folder / "main.py").write_text(
        "import time\nopen('began', 'a').write('x')\nwhile True:\n    time.sleep(1)\n"
    )
    if is_running:
        board.press_reset()
        wait_until(lambda: (board.folder / "began").exists())
    assert probe(board.port).kind == MICROPYTHON
    begins = "xx" if is_running else "x"
    wait_until(lambda: (board.folder / "began").exists() and (board.folder / "began").read_text() == begins)


def test_lost_line_is_distinguished_from_a_failure_of_the_code(make_board):
    board = make_board()
    prompt = Repl(board.port).open()
    with pytest.raises(LinkError, match="ZeroDivisionError") as caught:
        prompt.run("1 / 0")
    assert not isinstance(caught.value, LostBoardError)
    board.unplug()
    with pytest.raises(LostBoardError, match="is lost"):
        prompt.run("print(1)")
    prompt.close()


def test_driver_names_of_the_table_are_boards(terminal_driver):
    assert set(provision._NEEDS) | {"serial-radio"} == set(provision._settings_module().BOARDS)
    assert wb.Flooding.mote_modules()
