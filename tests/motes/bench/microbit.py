"""A micro:bit that QEMU emulates, with MicroPython of Debian's package: a board whose firmware is that of a real one.

Its serial line is a pty. QEMU's monitor presses the reset button. The board has an nRF51822 (Cortex-M0, 16 KB of RAM)
and MicroPython 1.9.2 without json and binascii, so it cannot run the workbench's program.

The firmware has a receive buffer of 64 bytes and no flow control. A line of 115,200 baud leaves it the time to read;
QEMU's would not, so a relay between the pty and QEMU passes on a few bytes at a time.
"""

import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

EMULATOR = "qemu-system-arm"
CHUNK_B = 16
PAUSE_S = 0.002
FIRMWARE = Path("/usr/share/firmware-microbit-micropython/firmware.hex")


def require():
    """Skip the test if the machine lacks a part of the board."""
    if sys.platform != "linux":
        pytest.skip("the relay to QEMU needs Linux")
    pytest.importorskip("mpremote", reason="mpremote is missing: pip install mpremote")
    if shutil.which(EMULATOR) is None:
        pytest.skip(f"QEMU is missing: apt-get install {EMULATOR}")
    if not FIRMWARE.exists():
        pytest.skip("MicroPython for the micro:bit is missing: apt-get install firmware-microbit-micropython")


class Microbit:
    """An emulated micro:bit at ``port``. Its files last as long as the object."""

    def __init__(self):
        require()
        import tty

        self._host, self._slave = os.openpty()
        tty.setraw(self._slave)
        self.port = os.ttyname(self._slave)
        self._line, line = socket.socketpair()
        self._monitor, monitor = socket.socketpair()
        with line, monitor:
            self._process = subprocess.Popen(
                [
                    *(EMULATOR, "-M", "microbit", "-nographic", "-nodefaults", "-device", f"loader,file={FIRMWARE}"),
                    *("-chardev", f"socket,id=line,fd={line.fileno()}", "-serial", "chardev:line"),
                    *("-chardev", f"socket,id=monitor,fd={monitor.fileno()}", "-mon", "chardev=monitor"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[line.fileno(), monitor.fileno()],
            )
        self._relays = [threading.Thread(target=relay, daemon=True) for relay in (self._to_board, self._from_board)]
        for relay in self._relays:
            relay.start()

    def _to_board(self):
        with suppress(OSError):
            while True:
                data = os.read(self._host, CHUNK_B)
                self._line.sendall(data)
                while self._unread_B() > 0:
                    time.sleep(PAUSE_S)
                time.sleep(PAUSE_S)

    def _unread_B(self):
        """Return a number that is 0 if QEMU has read all bytes."""
        import fcntl
        import termios

        return struct.unpack("i", fcntl.ioctl(self._line, termios.TIOCOUTQ, bytes(4)))[0]

    def _from_board(self):
        with suppress(OSError):
            while data := self._line.recv(4096):
                os.write(self._host, data)

    def press_reset(self):
        """Press the reset button: memory is lost, and files stay."""
        self._monitor.sendall(b"system_reset\n")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        self._monitor.close()
        os.close(self._slave)  # ends the relay to the board
        for relay in self._relays:
            relay.join(10)
        self._line.close()
        os.close(self._host)
