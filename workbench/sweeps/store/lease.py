"""The lease of a folder: one driver writes into it at a time.

Theory of operation
    The file `NAME` says who writes: owner, process, host. It is created by whoever comes first, and its content changes
    with every beat of the owner's, `BEAT_S` apart. Who finds the file watches it: a change says that the owner lives.
    If it stays the same for `EXPIRES_S`, or if it names a process that is gone, the owner is dead. No clock of another
    host is asked.

    A process is named by its number, when it began, and the namespace and the start of the system that its number is
    of: containers and machines may share a host name, and numbers are given again. Whether one is gone is only said of
    the same namespace of the same system. Where /proc does not tell all this, the lease is watched.

    Who takes the place of a dead owner first creates the file `_lease-<owner>.json`, which only one can, and then moves
    it over the dead owner's file. Who was second finds another file there than the one that was watched, and begins
    anew. A `_lease-<owner>.json` is a lease in itself: one whose owner has died is taken over in the same way.

    The owner beats through its file, which it has open: it can never write into that of a successor. Before it writes
    results it looks whether the file in the folder is still its own.

Limits
    An owner that stands still for `EXPIRES_S` between that look and its writing may write beside its successor. The
    next driver finds what is there twice and drops one of them.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
import threading
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

from workbench.errors import DataError

NAME = "_lease.json"
BEAT_S = 1.0
EXPIRES_S = 15.0
_POLL_S = 0.2
_PROC = Path("/proc")
_SYSTEM = ("host", "boot", "namespace")  # what a process's number is of


class Lease:
    """The right to write into a folder, from ``take`` to ``release``."""

    def __init__(self, folder: Path) -> None:
        self.owner = uuid.uuid4().hex
        self._folder, self._path = folder, folder / NAME
        self._file = -1
        self._beats = 0
        self._is_over = threading.Event()
        self._beating: threading.Thread | None = None

    def take(self) -> None:
        """Wait for the end of a dead owner's; DataError if somebody lives who has it."""
        self._process = _this_process()
        try:
            while not (self._put(self._path) and self._opened()):
                pass
            self._beating = threading.Thread(target=self._keep, name="lease", daemon=True)
            self._beating.start()
            self._tidy()
        except BaseException:
            self.release()
            raise

    def check(self) -> None:
        """DataError if somebody else has taken over the folder: this process had stopped for long."""
        if not self._is_mine():
            raise DataError(
                f"{self._folder} was taken over by another sweep while this one stood still; run this one again, and "
                "it goes on with what is there then"
            )

    def release(self) -> None:
        """End it. A successor's is left alone."""
        self._is_over.set()
        if self._beating is not None:
            self._beating.join()  # The number of a closed file may be another file's.
            self._beating = None
        is_mine = self._is_mine()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        if is_mine:
            self._path.unlink(missing_ok=True)

    def _is_mine(self) -> bool:
        return _told(_content(self._path)).get("owner") == self.owner

    # Beating

    def _opened(self) -> bool:
        """Open our file; False if it is another one by now."""
        try:
            self._file = os.open(self._path, os.O_RDWR)
        except OSError:
            return False
        if _told(os.read(self._file, 1 << 16)).get("owner") == self.owner:
            return True
        os.close(self._file)
        self._file = -1
        return False

    def _keep(self) -> None:
        while not self._is_over.wait(BEAT_S):
            with suppress(OSError):  # A full disk may have room again before the lease expires.
                self._write(self._file)

    def _write(self, file: int) -> None:
        self._beats += 1
        told = {
            "what": "A sweep writes into this folder. The file goes with its end.",
            "owner": self.owner,
            **self._process,
            "beat": f"{self._beats:012}",  # of one length: a beat is written over the one before
        }
        os.lseek(file, 0, os.SEEK_SET)
        os.write(file, (json.dumps(told) + "\n").encode())
        os.fsync(file)

    # Taking

    def _put(self, path: Path) -> bool:
        """Have a file of ours at a path, where there is none or a dead owner's. False: look again, it has changed."""
        if self._create(path):
            return True
        seen = self._outlived(path)
        if seen is None:
            return False
        claim = self._folder / f"_lease-{_name(seen)}.json"
        if not self._put(claim):
            return False
        if _content(path) == seen and self._moved(claim, path):
            return True
        claim.unlink(missing_ok=True)
        return False

    def _create(self, path: Path) -> bool:
        try:
            file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        except FileExistsError:
            return False
        except OSError as error:
            raise self._unwritable(error) from None
        try:
            self._write(file)
        except OSError as error:
            path.unlink(missing_ok=True)
            raise self._unwritable(error) from None
        finally:
            os.close(file)
        return True

    def _unwritable(self, error: OSError) -> DataError:
        return DataError(f"{self._folder} cannot be written: {error.strerror}")

    def _outlived(self, path: Path) -> bytes | None:
        """What a dead owner has left at a path, None if nothing is there; DataError if the owner lives."""
        seen = _content(path)
        if seen is None or _is_gone(seen):
            return seen
        end = time.perf_counter() + EXPIRES_S
        while time.perf_counter() < end:
            time.sleep(_POLL_S)
            now = _content(path)
            if now is None:
                return None
            if now != seen:
                raise _in_use(self._folder, now)
        return seen

    def _moved(self, claim: Path, path: Path) -> bool:
        """Move our claim to its place; False if we stood still for so long that it was taken over."""
        try:
            claim.replace(path)
        except FileNotFoundError:
            return False
        except OSError:  # Windows moves no file over one that somebody has open.
            claim.unlink(missing_ok=True)
            raise _in_use(self._folder, _content(path)) from None
        return True

    def _tidy(self) -> None:
        """Remove what was to take the place of an earlier owner: whoever has such a file looks at ours first."""
        for path in self._folder.glob("_lease-*"):
            if path.name != f"_lease-{self.owner}.json":
                path.unlink(missing_ok=True)


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _told(content: bytes | None) -> dict[str, Any]:
    try:
        told = json.loads(content or b"")
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _name(content: bytes) -> str:
    """What the file of an owner's successor is named by; damaged leases have a name of their own, too."""
    owner = str(_told(content).get("owner"))
    return owner if re.fullmatch("[0-9a-f]{32}", owner) else hashlib.sha256(content).hexdigest()[:32]


def _this_process() -> dict[str, Any]:
    """What tells this process from all others; host and number alone where /proc does not say more."""
    told = {"host": socket.gethostname(), "pid": os.getpid()}
    try:
        if os.readlink(_PROC / "self") != str(os.getpid()):
            return told  # It is the /proc of another namespace.
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        namespace = os.readlink(_PROC / "self/ns/pid")
        return {**told, "boot": boot, "namespace": namespace, "began": _began(os.getpid())}
    except (OSError, IndexError):
        return told


def _began(pid: int) -> str:
    """When a process began, in ticks since the system did; OSError or IndexError where that cannot be read."""
    return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[19]


def _is_gone(content: bytes) -> bool:
    """Whether a lease names a process that there is no more; False where it cannot be told."""
    told, here = _told(content), _this_process()
    pid = told.get("pid")
    is_of_this_system = "began" in here and all(told.get(name) == here[name] for name in _SYSTEM)
    if not is_of_this_system or not isinstance(pid, int) or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:  # It is another user's.
        pass
    try:
        return _began(pid) != told.get("began")
    except (OSError, IndexError):
        return False


def _in_use(folder: Path, content: bytes | None) -> DataError:
    told = _told(content)
    who = f"process {told['pid']} on {told.get('host')}" if "pid" in told else "another process"
    return DataError(f"{folder} is in use: {who} runs a sweep into it; wait for its end, or take another folder")
