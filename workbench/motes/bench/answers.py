"""Detection of the program at the other end of a port: the workbench's program, MicroPython's prompt, or nothing."""

from __future__ import annotations

from typing import NamedTuple

from workbench.errors import LinkError
from workbench.motes import messages
from workbench.motes.bench import repl
from workbench.motes.line import MoteLine
from workbench.motes.port import open_port

PROGRAM, MICROPYTHON, NOTHING, CLOSED = "program", "micropython", "nothing", "cannot be opened"
_GREETING_S = 1.2


class PortAnswer(NamedTuple):
    """The answer at a serial port.

    ``kind`` is `PROGRAM` (the workbench's program), `MICROPYTHON`, `NOTHING` or `CLOSED` (the port cannot be opened).
    ``text`` describes the answer for people. ``interpreter`` describes MicroPython if its prompt answered, else None.
    """

    kind: str
    text: str
    interpreter: repl.Interpreter | None = None


def probe(url: str) -> PortAnswer:
    """Find out what answers at a port: the workbench's program, MicroPython's prompt, or nothing.

    The workbench's program answers a greeting and continues to run. Any other program is interrupted, because
    MicroPython's prompt does not answer while a program runs. Afterwards MicroPython is restarted (a soft reset), which
    starts the program again.
    """
    try:
        open_port(url).close()
    except LinkError as error:
        return PortAnswer(CLOSED, str(error))
    line = MoteLine(url)
    try:
        greeting = line.open(_GREETING_S)
    except LinkError as error:
        if "does not answer" not in str(error):
            return PortAnswer(PROGRAM, str(error).removeprefix(url).strip())
    else:
        line.post(messages.GOODBYE)
        line._close_line()
        radio = "with" if greeting.has_radio else "without"
        return PortAnswer(
            PROGRAM,
            f"the workbench's program, version {messages.VERSION} of the host link, board {greeting.board}, {radio} a "
            f"radio of its own, earlier starts: {greeting.boot}",
        )
    if sentence := repl.missing():
        return PortAnswer(
            NOTHING, f"the workbench's program does not answer; MicroPython cannot be detected: {sentence}"
        )
    try:
        with repl.Repl(url) as prompt:
            # The prompt may have interrupted the board's start, which opening a port causes on many boards.
            prompt.was_running = True
            try:
                interpreter = prompt.describe()
            except repl.LostBoardError:
                raise
            except LinkError as error:
                return PortAnswer(MICROPYTHON, f"MicroPython's prompt answers, but cannot describe its board: {error}")
    except LinkError:
        return PortAnswer(NOTHING, "nothing answers: neither the workbench's program nor MicroPython")
    return PortAnswer(MICROPYTHON, f"{interpreter}, without a running program of the workbench", interpreter)


def read_chip(url: str) -> str | None:
    """Return the identity of the chip at a port, or None if MicroPython does not answer or does not report an identity.

    The board's program is interrupted and started again.
    """
    try:
        with repl.Repl(url) as prompt:
            chip_id = prompt.describe().chip_id
            prompt.was_running = True
            return chip_id
    except LinkError:
        return None
