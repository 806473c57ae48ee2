"""The lease of a folder: one driver writes into it at a time.

Theory of operation
    The file `NAME` says who writes: owner, process, host. It is created by whoever comes first, and its content changes
    with every beat of the owner's, `BEAT_S` apart. Who finds the file watches it: a change says that the owner lives.
    If it stays the same for `EXPIRES_S`, or if it names a process of this host that is gone, the owner is dead, and the
    file is moved aside and created anew. No clock of another host is asked.

    The owner beats through the file that it created and still has open: it can never write into that of a successor.
    Before it writes results it looks whether the file in the folder is still its own.

Limits
    An owner that stands still for `EXPIRES_S` between that look and its writing may write beside its successor. The
    next driver finds what is there twice and drops one of them.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import uuid
from contextlib import suppress
from pathlib import Path

from workbench.errors import DataError

NAME = "_lease.json"
BEAT_S = 1.0
EXPIRES_S = 15.0
_POLL_S = 0.2


class Lease:
    """The right to write into a folder, from ``take`` to ``release``."""

    def __init__(self, folder: Path) -> None:
        self.owner = uuid.uuid4().hex
        self._folder, self._path = folder, folder / NAME
        self._file = -1
        self._beats = 0
        self._is_over = threading.Event()

    def take(self) -> None:
        """Wait for the end of a dead owner's; DataError if somebody lives who has it."""
        while not self._create():
            self._outlive()
        self._beating = threading.Thread(target=self._keep, name="lease", daemon=True)
        self._beating.start()

    def check(self) -> None:
        """DataError if somebody else has taken over the folder: this process had stopped for long."""
        if _owner(_content(self._path)) != self.owner:
            raise DataError(
                f"{self._folder} was taken over by another sweep while this one stood still; run this one again, and "
                "it goes on with what is there then"
            )

    def release(self) -> None:
        """End it. A successor's is left alone."""
        if self._file < 0:
            return
        self._is_over.set()
        self._beating.join()  # The number of a closed file may be another file's.
        is_mine = _owner(_content(self._path)) == self.owner
        os.close(self._file)
        self._file = -1
        if is_mine:
            self._path.unlink(missing_ok=True)

    def _create(self) -> bool:
        try:
            self._file = os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        except FileExistsError:
            return False
        except OSError as error:
            raise DataError(f"{self._folder} cannot be written: {error.strerror}") from None
        self._beat()
        return True

    def _keep(self) -> None:
        while not self._is_over.wait(BEAT_S):
            with suppress(OSError):  # A full disk may have room again before the lease expires.
                self._beat()

    def _beat(self) -> None:
        self._beats += 1
        told = {
            "what": "A sweep writes into this folder. The file goes with its end.",
            "owner": self.owner,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "beat": f"{self._beats:012}",  # of one length: a beat is written over the one before
        }
        os.lseek(self._file, 0, os.SEEK_SET)
        os.write(self._file, (json.dumps(told) + "\n").encode())
        os.fsync(self._file)

    def _outlive(self) -> None:
        """Return when the owner's file is gone, its own or by us; DataError if the owner lives."""
        seen = _content(self._path)
        if seen is not None and not _is_gone(seen):
            end = time.perf_counter() + EXPIRES_S
            while time.perf_counter() < end:
                time.sleep(_POLL_S)
                now = _content(self._path)
                if now is None:
                    return
                if now != seen:
                    raise _in_use(self._folder, now)
        if seen is not None:
            self._displace(seen)

    def _displace(self, seen: bytes) -> None:
        """Move a dead owner's file out of the way; if it is another one by now, that goes back."""
        aside = self._path.with_name(f"_lease-{self.owner}")
        try:
            self._path.rename(aside)
        except FileNotFoundError:
            return
        except OSError:
            raise _in_use(self._folder, seen) from None
        found = aside.read_bytes()
        if found != seen and not self._path.exists():
            aside.rename(self._path)
            raise _in_use(self._folder, found)
        aside.unlink(missing_ok=True)


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _told(content: bytes | None) -> dict:
    try:
        told = json.loads(content or b"")
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _owner(content: bytes | None) -> object:
    return _told(content).get("owner")


def _is_gone(content: bytes) -> bool:
    """Whether a lease is that of a process of this host which there is no more."""
    told = _told(content)
    pid = told.get("pid")
    if told.get("host") != socket.gethostname() or not isinstance(pid, int) or pid <= 0 or os.name == "nt":
        return False  # Windows would end the process that is asked.
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:
        pass
    return False


def _in_use(folder: Path, content: bytes) -> DataError:
    told = _told(content)
    who = f"process {told['pid']} on {told.get('host')}" if "pid" in told else "another process"
    return DataError(f"{folder} is in use: {who} runs a sweep into it; wait for its end, or take another folder")
