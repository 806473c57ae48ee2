"""The lease of a folder: only one driver (process that runs a sweep) writes into the folder at a time.

Theory of operation
    The file `NAME` names the owner of the folder, its process and host. The first driver creates it, and changes its
    content every `BEAT_S` (a heartbeat). Another driver watches the file: a change shows that the owner is alive. If
    the content stays the same for `EXPIRES_S`, or names a process that has ended, the owner is dead. Clocks of other
    hosts are not used.

    A process is identified by its number, its start, its namespace and the boot of its system, since host names and
    process numbers are not unique. Only a process of the same namespace and boot can be recognized as ended. Without
    this information in /proc, the file is watched.

    The successor of a dead owner first creates a *claim*, the file `_lease-<owner>.json`, where <owner> is the id of
    the dead owner. Only one driver can create this file. Then it moves the claim over the dead owner's file. A slower
    driver finds that the file which it watched has changed, and starts again. A claim is itself a lease. It is taken
    over in the same way if the driver that created it dies.

    The owner writes heartbeats through its open file, so it cannot overwrite a successor's file. Before it writes
    results, it checks that the file in the folder is still its own.

Limits
    An owner that pauses for `EXPIRES_S` between this check and the writing may write at the same time as its successor.
    The next driver removes the duplicate rows.
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
_SYSTEM = ("host", "boot", "namespace")  # identify the system in which a process number is valid


class Lease:
    """The exclusive right to write into a folder, held from ``take`` to ``release``; ``owner`` is the holder's id."""

    def __init__(self, folder: Path) -> None:
        self.owner = uuid.uuid4().hex
        self._folder, self._path = folder, folder / NAME
        self._file = -1
        self._beats = 0
        self._is_over = threading.Event()
        self._beat_thread: threading.Thread | None = None

    def take(self) -> None:
        """Take the exclusive right to write into the folder. Wait first until the lease of an ended process expires.

        Raises DataError if another owner's process still runs.
        """
        self._process = _this_process()
        try:
            while not (self._place_file(self._path) and self._open_file()):
                pass
            self._beat_thread = threading.Thread(target=self._beat, name="lease", daemon=True)
            self._beat_thread.start()
            self._remove_claims()
        except BaseException:
            self.release()
            raise

    def check(self) -> None:
        """Raise DataError if another sweep has taken over the folder while this process was paused."""
        if not self._is_own():
            raise DataError(
                f"{self._folder} was taken over by another sweep while this one was paused; run this sweep again "
                "to continue with the stored points"
            )

    def release(self) -> None:
        """Give up the right to write into the folder: remove the lease's file unless another sweep has replaced it."""
        self._is_over.set()
        if self._beat_thread is not None:
            self._beat_thread.join()  # A file descriptor may be reused after it is closed.
            self._beat_thread = None
        is_own = self._is_own()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        if is_own:
            self._path.unlink(missing_ok=True)

    def _is_own(self) -> bool:
        return _parse(_read_or_none(self._path)).get("owner") == self.owner

    # Heartbeat

    def _open_file(self) -> bool:
        """Open the lease's file to update it later. Return False if another process has replaced the file."""
        try:
            self._file = os.open(self._path, os.O_RDWR)
        except OSError:
            return False
        if _parse(os.read(self._file, 1 << 16)).get("owner") == self.owner:
            return True
        os.close(self._file)
        self._file = -1
        return False

    def _beat(self) -> None:
        while not self._is_over.wait(BEAT_S):
            with suppress(OSError):  # A full disk may have room again before the lease expires.
                self._write(self._file)

    def _write(self, file: int) -> None:
        self._beats += 1
        lease = {
            "what": "A sweep writes into this folder. The file is removed when the sweep ends.",
            "owner": self.owner,
            **self._process,
            "beat": f"{self._beats:012}",  # of constant length, because it is overwritten in place
        }
        os.lseek(file, 0, os.SEEK_SET)
        os.write(file, (json.dumps(lease) + "\n").encode())
        os.fsync(file)

    # Taking

    def _place_file(self, path: Path) -> bool:
        """Create the lease's file at ``path``, or replace the file of an owner whose process has ended.

        Return False if another process was faster. The caller then tries again.
        """
        if self._create(path):
            return True
        expired_content = self._wait_for_expiry(path)
        if expired_content is None:
            return False
        claim = self._folder / f"_lease-{_claim_name(expired_content)}.json"
        if not self._place_file(claim):
            return False
        if _read_or_none(path) == expired_content and self._move_claim(claim, path):
            return True
        claim.unlink(missing_ok=True)
        return False

    def _create(self, path: Path) -> bool:
        """Create the lease's file at ``path``. Return False if a file exists there already."""
        try:
            file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        except FileExistsError:
            return False
        except OSError as error:
            raise self._unwritable_error(error) from None
        try:
            self._write(file)
        except OSError as error:
            path.unlink(missing_ok=True)
            raise self._unwritable_error(error) from None
        finally:
            os.close(file)
        return True

    def _unwritable_error(self, error: OSError) -> DataError:
        return DataError(f"{self._folder} cannot be written: {error.strerror}")

    def _wait_for_expiry(self, path: Path) -> bytes | None:
        """Wait until the lease in the file ``path`` expires: its owner has ended or stops updating the file.

        Return the file's content, or None if the file is missing. Raises DataError if the owner updates the file
        meanwhile, which shows that the owner's process runs.
        """
        lease_content = _read_or_none(path)
        if lease_content is None or _is_gone(lease_content):
            return lease_content
        end_s = time.perf_counter() + EXPIRES_S
        while time.perf_counter() < end_s:
            time.sleep(_POLL_S)
            newer_content = _read_or_none(path)
            if newer_content is None:
                return None
            if newer_content != lease_content:
                raise _in_use_error(self._folder, newer_content)
        return lease_content

    def _move_claim(self, claim: Path, path: Path) -> bool:
        """Rename the file ``claim`` to ``path``, which replaces the lease file of an owner whose process has ended.

        Return False if another process removed the claim meanwhile. Raises DataError if the owner still has
        ``path`` open (on Windows).
        """
        try:
            claim.replace(path)
        except FileNotFoundError:
            return False
        except OSError:  # Windows cannot replace an open file.
            claim.unlink(missing_ok=True)
            raise _in_use_error(self._folder, _read_or_none(path)) from None
        return True

    def _remove_claims(self) -> None:
        """Remove the claims (files) with which other processes try to take over this folder.

        A process whose claim is missing starts again, and then finds the file of this lease.
        """
        for path in self._folder.glob("_lease-*"):
            if path.name != f"_lease-{self.owner}.json":
                path.unlink(missing_ok=True)


def _read_or_none(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _parse(content: bytes | None) -> dict[str, Any]:
    try:
        values = json.loads(content or b"")
    except ValueError:
        return {}
    return values if isinstance(values, dict) else {}


def _claim_name(content: bytes) -> str:
    """Return <owner> for the file `_lease-<owner>.json`, a claim on the lease that has this ``content``.

    <owner> is the owner's id in the JSON ``content``, or a digest of the content if it is damaged.
    """
    owner = str(_parse(content).get("owner"))
    return owner if re.fullmatch("[0-9a-f]{32}", owner) else hashlib.sha256(content).hexdigest()[:32]


def _this_process() -> dict[str, Any]:
    """Return the identity of this process: {"host", "pid"}, and on Linux also "boot", "namespace" and "began".

    "boot" is the id of the system's boot, "namespace" the id of the namespace of process numbers, and "began" the
    start of the process in ticks since boot.
    """
    lease = {"host": socket.gethostname(), "pid": os.getpid()}
    try:
        if os.readlink(_PROC / "self") != str(os.getpid()):
            return lease  # This /proc belongs to another namespace.
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        namespace = os.readlink(_PROC / "self/ns/pid")
        return {**lease, "boot": boot, "namespace": namespace, "began": _process_start(os.getpid())}
    except (OSError, IndexError):
        return lease


def _process_start(pid: int) -> str:
    """Return the start of a process in ticks since boot, as text. Raises OSError or IndexError if unreadable."""
    return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[19]


def _is_gone(content: bytes) -> bool:
    """Return whether the process named in a lease (its JSON ``content``) has ended; False if that is unknown."""
    lease, this_process = _parse(content), _this_process()
    pid = lease.get("pid")
    is_of_this_system = "began" in this_process and all(lease.get(name) == this_process[name] for name in _SYSTEM)
    if not is_of_this_system or not isinstance(pid, int) or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:  # It belongs to another user.
        pass
    try:
        return _process_start(pid) != lease.get("began")
    except (OSError, IndexError):
        return False


def _in_use_error(folder: Path, content: bytes | None) -> DataError:
    lease = _parse(content)
    owner = f"process {lease['pid']} on {lease.get('host')}" if "pid" in lease else "another process"
    return DataError(f"{folder} is in use: {owner} runs a sweep into it; wait for its end, or use another folder")
