"""The REPL and the reset of a micro:bit that QEMU emulates: another MicroPython than that of the boards behind ptys."""

import pytest

from tests.motes.bench.microbit import Microbit
from tests.until import wait_until
from workbench.errors import LinkError
from workbench.motes.bench.answers import MICROPYTHON, probe
from workbench.motes.bench.provision import check_interpreter, suggest_board
from workbench.motes.bench.repl import LostBoardError, Repl

# Counts its starts in a file, and then never returns to the prompt by itself.
MAIN = b"""
try:
    with open("starts") as file:
        count = int(file.read())
except (OSError, ValueError):
    count = 0
with open("starts", "w") as file:
    file.write(str(count + 1))
while True:
    pass
"""


@pytest.fixture
def microbit():
    with Microbit() as board:
        yield board


def test_prompt_runs_code_stores_files_and_forgets_its_memory_in_a_reset(microbit):
    with Repl(microbit.port) as prompt:
        assert prompt.run("print(6 * 7)").strip() == "42"
        interpreter = prompt.describe()
        assert (interpreter.name, interpreter.version, interpreter.platform) == ("micropython", (1, 9, 2), "microbit")
        assert len(interpreter.chip_id) == 16 and interpreter.modules == ("machine",)
        with pytest.raises(LinkError, match="1.9.2 on microbit has no module json, which serial-radio needs"):
            check_interpreter(microbit.port, interpreter, suggest_board(interpreter), [])
        prompt.write("note.txt", bytes(range(256)) * 3)
        prompt.run("kept = 1")
        prompt.restart()
    with Repl(microbit.port) as prompt:
        assert prompt.read("note.txt") == bytes(range(256)) * 3
        with pytest.raises(LinkError, match="NameError: name 'kept'"):
            prompt.run("print(kept)")


@pytest.mark.family
def test_reset_button_during_a_session_is_a_lost_connection_and_the_next_session_works(microbit):
    with Repl(microbit.port) as prompt:
        prompt.run("kept = 1")
        microbit.press_reset()
        # The reset takes effect some time after the monitor's command.
        with pytest.raises((LostBoardError, LinkError), match="is lost|NameError"):
            for _ in range(1000):
                prompt.run("print(kept)")
    with Repl(microbit.port) as prompt, pytest.raises(LinkError, match="NameError: name 'kept'"):
        prompt.run("print(kept)")


@pytest.mark.family
def test_running_program_is_interrupted_and_started_again(microbit):
    with Repl(microbit.port) as prompt:
        prompt.write("starts", b"0")
        prompt.write("main.py", MAIN)
        prompt.restart()
    answer = probe(microbit.port)
    assert answer.kind == MICROPYTHON and "MicroPython 1.9.2 on microbit" in answer.text

    def is_started_again():
        """Start the program, interrupt it in two sessions, and return whether it started between them."""
        microbit.press_reset()
        was_running, starts = [], []
        for _ in range(2):
            try:
                with Repl(microbit.port) as prompt:
                    was_running.append(prompt.was_running)
                    starts.append(int(prompt.read("starts") or 0))
            except LinkError:  # the reset took effect in a session
                return False
        return all(was_running) and starts[1] == starts[0] + 1

    # A session may come before the program has begun, or before it has counted its start.
    wait_until(is_started_again)
