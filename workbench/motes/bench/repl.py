"""MicroPython's raw REPL at the other end of a line. This is the only module that uses mpremote.

The REPL is reached by Ctrl-C, which interrupts a program that does not disable it. The workbench's own program disables
Ctrl-C on the line of the prompt, so it is restarted by a command of the host link and interrupted while it starts. Any
other program can be interrupted after a press of the board's reset button.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from workbench.errors import LinkError
from workbench.motes import messages
from workbench.motes.mote import Mote
from workbench.motes.port import BAUD

REMEDY = "pip install 'sensor-pubsub-workbench[boards]'"
_BANNER = b"raw REPL; CTRL-B to exit\r\n"
_TRACEBACK = b"Traceback"
_ANSWER_S = 1.0  # for the banner of an idle prompt
_RESTART_S = 10.0  # a board that was reset starts within this time
_GREETING_S = 1.2
_READ_S = 2.0  # longest pause within an answer
_CHUNK_B = 512
_FULL = ("ENOSPC", "OSError: 28")

# Runs on the board, in one piece: mpremote's calls for one file at a time take a round trip each.
_LIST_FILES = """
import os, json
from binascii import hexlify
try:
    from hashlib import sha256
except ImportError:
    sha256 = None
def digest(path):
    state = sha256()
    with open(path, "rb") as file:
        while True:
            piece = file.read(256)
            if not piece:
                return hexlify(state.digest()).decode()
            state.update(piece)
def walk(folder):
    for entry in os.ilistdir(folder or "."):
        path = folder + "/" + entry[0] if folder else entry[0]
        if entry[1] & 0x4000:
            walk(path)
        elif sha256 is None:
            print(json.dumps([path, os.stat(path)[6], None]))
        else:
            print(json.dumps([path, os.stat(path)[6], digest(path)]))
walk("")
"""
# Small MicroPythons, such as that of the micro:bit, have neither json nor binascii.
_DESCRIBE = """
import sys, os
def has(name):
    try:
        __import__(name)
        return True
    except ImportError:
        return False
try:
    import machine
    chip = "".join(["%02x" % byte for byte in machine.unique_id()])
except (ImportError, AttributeError):
    chip = None
try:
    disk = os.statvfs(os.getcwd())
    disk = [disk[0], disk[3] * disk[0], disk[2] * disk[0]]
except (AttributeError, OSError):
    disk = None
print([sys.implementation[0], list(sys.implementation[1])[:3], sys.platform,
    str(getattr(sys.implementation, "_machine", "")), getattr(sys.implementation, "_mpy", 0), chip,
    [name for name in ("espnow", "network", "machine", "json") if has(name)], disk])
"""


class LostBoardError(LinkError):
    """The connection to a board ended. The operation can be continued when the board is connected again."""


class FullBoardError(LinkError):
    """The file system of a board is full."""


class Interpreter(NamedTuple):
    """A board's MicroPython.

    ``version`` is for example (1, 26, 0). ``platform`` is sys.platform: "esp32", "rp2". ``machine`` is the maker's name
    of the board. ``mpy_version`` is the version of .mpy files that it loads, 0 if none. ``chip_id`` is the identity of
    the chip as hexadecimal digits, or None. ``modules`` are those of espnow, network, machine and json that exist.
    ``block_B``, ``free_B`` and ``size_B`` are the block size, the free space and the total size of the board's file
    system in bytes; all are 0 if they are not known.
    """

    name: str
    version: tuple[int, ...]
    platform: str
    machine: str
    mpy_version: int
    chip_id: str | None
    modules: tuple[str, ...]
    block_B: int
    free_B: int
    size_B: int

    def __str__(self) -> str:
        version = ".".join(map(str, self.version))
        return f"MicroPython {version} on {self.machine or self.platform}"


def missing() -> str | None:
    """Return a sentence on how to install mpremote, or None if it is installed."""
    if importlib.util.find_spec("mpremote") is not None:
        return None
    return f"files cannot be copied to boards because mpremote is missing: {REMEDY}"


class Repl:
    """The raw REPL of the board at ``url``.

    Methods raise LostBoardError if the connection ends, and LinkError for any other failure. ``was_running`` is True if
    the REPL interrupted a program; `close` then starts the program again.
    """

    def __init__(self, url: str) -> None:
        if sentence := missing():
            raise LinkError(sentence)
        self.url = url
        self.was_running = False
        self._transport: Any = None

    def open(self, patience_s: float = 0.0, report: Callable[[str], None] | None = None) -> Repl:
        """Enter the REPL and return this object.

        If the board does not answer, restart the workbench's program on it; if that is not possible, ``report`` a
        request to press the reset button and wait ``patience_s`` for an answer. Raises LinkError if there is still no
        answer.
        """
        self._connect()
        if self._enter_raw_repl(_ANSWER_S):
            return self
        self.close()
        if is_restarted := self._restart_program():
            self._connect(_RESTART_S)
        else:
            self._connect()
        if not is_restarted and patience_s and report is not None:
            report(f"{self.url}: MicroPython does not answer; press the board's reset button")
        if self._enter_raw_repl(max(patience_s, _RESTART_S if is_restarted else 0.0)):
            return self
        self.close()
        raise LinkError(
            f"{self.url}: MicroPython does not answer; check that this is the board's port, flash MicroPython if it is "
            "missing, or press its reset button while this command waits"
        )

    def _connect(self, patience_s: float = 0.0) -> None:
        from mpremote.transport import TransportError
        from mpremote.transport_serial import SerialTransport

        end_s = time.monotonic() + patience_s
        while True:
            try:
                exclusive = None if "://" in self.url else True
                self._transport = SerialTransport(self.url, BAUD, exclusive=exclusive, timeout=_READ_S)
                return
            except (TransportError, OSError, ValueError) as error:
                # A board with USB of its own disappears for a moment when it restarts.
                if time.monotonic() >= end_s:
                    raise LostBoardError(
                        f"{self.url} cannot be opened: {error}; check that it is the board's port, that no other "
                        "program uses it, and that you may use serial ports"
                    ) from None
                time.sleep(0.2)

    def _enter_raw_repl(self, patience_s: float) -> bool:
        """Interrupt the board until its raw REPL answers, or for ``patience_s``; return whether it has answered."""
        end_s = time.monotonic() + patience_s
        with self._translate_errors():
            while True:
                port = self._transport.serial
                port.timeout = 0.05  # A pty is read without a check whether data is available.
                port.write(b"\r\x03\x03\r\x01")
                received = self._transport.read_until(1, _BANNER, timeout=0.25, timeout_overall=0.5)
                self.was_running |= _TRACEBACK in received
                if received.endswith(_BANNER):
                    break
                if time.monotonic() >= end_s:
                    return False
            # Several attempts may have left several banners: read them, then request one more.
            while self._transport.read_until(1, _BANNER, timeout=0.1, timeout_overall=0.3):
                pass
            port.write(b"\x01")
            if not self._transport.read_until(1, _BANNER, timeout=1).endswith(_BANNER):
                return False
            port.timeout = _READ_S
            self._transport.in_raw_repl = True
        return True

    def _restart_program(self) -> bool:
        """Send the workbench's program a greeting, then the command to restart the board.

        Return whether the program answered the greeting.
        """
        mote = Mote(self.url)
        try:
            mote.open(_GREETING_S)
        except LinkError:
            return False
        try:
            mote.post(messages.RESET)
            time.sleep(0.1)  # The bytes must leave before the line is closed.
        except LinkError:
            pass
        finally:
            mote._close_line()  # A goodbye would wait for an answer of a board that is restarting.
        return True

    def run(self, code: str) -> str:
        """Run code on the board and return its output.

        Raises LinkError with the last line of the traceback if the code raises an exception, and FullBoardError if the
        file system is full.
        """
        from mpremote.transport import TransportExecError

        with self._translate_errors():
            try:
                return self._transport.exec(textwrap.dedent(code)).decode(errors="replace")
            except TransportExecError as error:
                text = str(error.error_output).strip()
                if any(sign in text for sign in _FULL):
                    raise FullBoardError(f"{self.url}: the file system is full") from None
                raise LinkError(f"{self.url}: {text.splitlines()[-1] if text else 'the code failed'}") from None

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Return a context manager that raises LostBoardError in place of exceptions that mean a lost connection.

        These are exceptions of mpremote and pyserial.
        """
        import struct

        from mpremote.transport import TransportError, TransportExecError

        try:
            yield
        except (TransportExecError, LinkError):
            raise
        # struct.error: mpremote unpacks an answer that the end of the line cut short.
        except (TransportError, OSError, struct.error, TypeError) as error:
            raise LostBoardError(f"the connection to {self.url} is lost: {error}") from None

    def describe(self) -> Interpreter:
        """Return a description of the board's MicroPython."""
        output = self.run(_DESCRIBE)
        try:
            name, version, platform, machine, mpy, chip_id, modules, disk = ast.literal_eval(output.strip())
            block_B, free_B, size_B = disk or (0, 0, 0)
            version = tuple(map(int, version))
            return Interpreter(
                name, version, platform, machine, mpy & 0xFF, chip_id, tuple(modules), block_B, free_B, size_B
            )
        except (ValueError, TypeError, SyntaxError):
            raise LinkError(f"{self.url}: the board's description is not valid: {output[:60]!r}") from None

    def files(self) -> dict[str, tuple[int, str | None]]:
        """Return {path: (bytes, SHA-256 as hexadecimal digits)} of all files on the board.

        The board computes the digests from the files' content. A digest is None if the board cannot compute it.
        """
        output = self.run(_LIST_FILES)
        try:
            return {path: (size_B, digest) for path, size_B, digest in map(json.loads, output.splitlines())}
        except (ValueError, TypeError):
            raise LinkError(f"{self.url}: the board's list of files is not valid: {output[:60]!r}") from None

    def read(self, path: str) -> bytes:
        """Return the content of the file ``path`` on the board."""
        output = self.run(f"""
            with open({path!r}, "rb") as file:
                while True:
                    piece = file.read(256)
                    if not piece:
                        break
                    print(piece)
            """)
        try:
            return b"".join(map(ast.literal_eval, output.splitlines()))
        except (ValueError, SyntaxError, TypeError):
            raise LinkError(f"{self.url}: {path} could not be read") from None

    def write(self, path: str, data: bytes, progress: Callable[[int], None] | None = None) -> None:
        """Write the file ``path`` on the board, and make its folders.

        ``progress`` is called with the number of bytes written so far.
        """
        folders = path.split("/")[:-1]
        for depth in range(1, len(folders) + 1):
            folder = "/".join(folders[:depth])
            self.run(f"""
                import os
                try:
                    os.stat({folder!r})
                except OSError:
                    os.mkdir({folder!r})
                """)
        self.run(f"file = open({path!r}, 'wb')")
        try:
            for offset in range(0, len(data), _CHUNK_B):
                self.run(f"size = file.write({data[offset : offset + _CHUNK_B]!r})")
                if progress is not None:
                    progress(min(len(data), offset + _CHUNK_B))
        finally:
            with suppress(LostBoardError):
                self.run("file.close()")

    def remove(self, path: str) -> None:
        """Delete the file ``path`` on the board."""
        self.run(f"import os\nos.remove({path!r})")

    def restart(self) -> None:
        """Restart the board, so that its program begins, and close the line."""
        with suppress(LinkError), self._translate_errors():
            # A board may be gone before it answers.
            self._transport.exec_raw_no_follow("import machine\nmachine.reset()")
            self._transport.serial.timeout = 0.05
            answer = self._transport.read_until(1, b"\x04\x04", timeout=0.3, timeout_overall=1)
            if b"Error" in answer:  # without `machine`, as MicroPython's port for Unix
                self._transport.serial.write(b"\r\x02\x04")
        self.close()

    def close(self) -> None:
        """Leave the REPL and close the line. A program that was interrupted is started again."""
        transport, self._transport = self._transport, None
        if transport is None:
            return
        with suppress(Exception):  # The board may be unplugged.
            if transport.in_raw_repl:
                transport.serial.write(b"\r\x02\x04" if self.was_running else b"\r\x02")
        with suppress(Exception):
            transport.close()
        with suppress(Exception):  # If DTR cannot be set, mpremote leaves the port open.
            transport.serial.close()

    def __enter__(self) -> Repl:
        return self.open() if self._transport is None else self

    def __exit__(self, *_: object) -> None:
        self.close()
