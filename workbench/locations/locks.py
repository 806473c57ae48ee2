"""Locks of folders and of object stores: one process at a time writes into a location.

Theory of operation: folders
    The process holds a lock of the operating system (``flock``) on a file in the folder. The system releases the lock
    when the process ends, however it ends, so no lock outlives its holder. A paused process still holds its lock. The
    file's content names the holder for messages only.

    The holder removes the file before it releases the lock. A process that has opened the file meanwhile locks a file
    that has no name any more; it compares the file's identity with the file of that name in the folder, and tries again
    if they differ.

Theory of operation: object stores
    The holder creates an object, and replaces it every `BEAT_S` (a heartbeat). Both writes are conditional: the first
    fails if the object exists, the second if the object is not the one that this process wrote last. Another process
    watches the object. If it does not change for `EXPIRES_S`, its holder is dead or cut off, and the process replaces
    it; only one process can succeed. The next heartbeat of the former holder fails, and it writes nothing more. Clocks
    of other hosts are not used.

Limits
    A process that is forked without ``exec`` shares its parent's lock, and keeps it if the parent is killed. On a
    network file system without locks between hosts, processes on two hosts may both hold the lock. On a file system
    without locks, and on a system without ``flock`` (Windows), nothing is locked, and a warning states this.

    In an object store, a holder that pauses for `EXPIRES_S` between a check of its lock and the following write may
    write at the same time as the next holder.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import threading
import time
import uuid
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

from workbench.errors import DataError
from workbench.locations.objects import ObjectPath
from workbench.notice import Notice

try:
    import fcntl
except ImportError:  # Windows
    fcntl: Any = None  # type: ignore[no-redef]

BEAT_S = 5.0
EXPIRES_S = 30.0
_POLL_S = 1.0
_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}


class FolderLock:
    """The exclusive right to write into a folder, held from the construction to `release`.

    ``name`` is the name of the lock's file, and ``activity`` is the work of the holder, for messages, such as "runs a
    sweep into it". The folder is created if it is missing. Raises DataError if another process holds the lock, or if
    the folder cannot be written.
    """

    def __init__(self, folder: Path, name: str, activity: str) -> None:
        self._path = folder / name
        self._file = -1
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"{folder} cannot be used as a folder: {error.strerror}") from None
        try:
            while not self._lock_file():
                pass
            self._write_holder(activity)
        except BlockingIOError:
            raise _in_use_error(folder, _read_or_none(self._path), activity) from None
        except OSError as error:
            self.release()
            raise DataError(f"{folder} cannot be written: {error.strerror}") from None

    def _lock_file(self) -> bool:
        """Open and lock the lock's file. Return False if its last holder has removed the file meanwhile.

        Raises BlockingIOError if another process holds the lock.
        """
        file = os.open(self._path, os.O_CREAT | os.O_RDWR, 0o644)
        try:
            if fcntl is None:
                _warn_unlocked(self._path.parent, "this system has no flock")
            else:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_current = _is_file_at(file, self._path)
        except BlockingIOError:
            os.close(file)
            raise
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                os.close(file)
                raise
            _warn_unlocked(self._path.parent, "its file system has no locks")
            is_current = True
        if is_current:
            self._file = file
        else:
            os.close(file)
        return is_current

    def _write_holder(self, activity: str) -> None:
        os.ftruncate(self._file, 0)
        os.write(self._file, _make_content(activity))

    def check(self) -> None:
        """Do nothing: the system keeps the lock as long as this process lives, even while it is paused."""

    def release(self) -> None:
        """Release the lock and remove its file. A second call does nothing."""
        if self._file < 0:
            return
        file, self._file = self._file, -1
        try:
            if _is_file_at(file, self._path):
                with suppress(PermissionError):  # Windows does not remove an open file.
                    self._path.unlink(missing_ok=True)
        finally:
            if fcntl is not None:
                # Closing alone does not release the lock while a forked process has the file open.
                with suppress(OSError):  # A file system without locks refuses this call, too.
                    fcntl.flock(file, fcntl.LOCK_UN)
            os.close(file)


def _is_file_at(file: int, path: Path) -> bool:
    """Return whether the open ``file`` (a descriptor) is the file that has the name ``path`` now."""
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except FileNotFoundError:
        return False


def _warn_unlocked(folder: Path, reason: str) -> None:
    warnings.warn(
        f"{folder} cannot be locked: {reason}; make sure that no other process writes into this folder", stacklevel=6
    )


class ObjectLock:
    """The exclusive right to write into a folder of an object store, held from the construction to `release`.

    The arguments and errors are those of `FolderLock`. The constructor waits up to `EXPIRES_S` for a lock whose holder
    has probably ended.
    """

    def __init__(self, folder: ObjectPath, name: str, activity: str) -> None:
        self._folder, self._path, self._activity = folder, folder / name, activity
        self._owner = uuid.uuid4().hex
        self._beats = 0
        self._is_over = threading.Event()
        self._is_lost = False
        self._beat_thread: threading.Thread | None = None
        try:
            tag = self._path.create(self._make_next_content())
            while tag is None:
                tag = self._take_over()
        except OSError as error:
            raise DataError(f"{folder} cannot be written: {error.strerror}") from None
        self._renewed_s = time.monotonic()
        self._beat_thread = threading.Thread(target=self._renew_lock, args=(tag,), name="lock", daemon=True)
        self._beat_thread.start()

    def _make_next_content(self) -> bytes:
        self._beats += 1
        return _make_content(self._activity, owner=self._owner, beat=self._beats)

    def _take_over(self) -> str | None:
        """Replace the lock object if it does not change for `EXPIRES_S`; return its new tag.

        If the object is missing, or is removed meanwhile, create it. Return None if another process replaces or creates
        the object first. Raises DataError if the object changes, which shows that its holder is alive.
        """
        try:
            content, tag = self._path.read_version()
        except FileNotFoundError:
            return self._path.create(self._make_next_content())
        if self._is_own(content):
            return tag
        end_s = time.monotonic() + EXPIRES_S
        with Notice() as notice:
            holder = _name_holder(content)
            notice.show(f"{self._folder} is locked; waiting up to {EXPIRES_S:.0f} s for a sign of life of {holder}")
            while time.monotonic() < end_s:
                time.sleep(_POLL_S)
                try:
                    newer_content, newer_tag = self._path.read_version()
                except FileNotFoundError:
                    return self._path.create(self._make_next_content())
                if newer_tag != tag:
                    raise _in_use_error(self._folder, newer_content, self._activity)
        return self._path.replace_version(self._make_next_content(), tag)

    def _renew_lock(self, tag: str) -> None:
        while not self._is_over.wait(BEAT_S):
            with suppress(OSError):  # The store may be reachable again before the lock expires.
                new_tag = self._path.replace_version(self._make_next_content(), tag)
                if new_tag is None:
                    # A request that was sent twice fails although its first copy has succeeded.
                    content, new_tag = self._path.read_version()
                    if not self._is_own(content):
                        self._is_lost = True
                        return
                tag, self._renewed_s = new_tag, time.monotonic()

    def check(self) -> None:
        """Raise DataError if this lock has expired: another process may have taken over the folder."""
        if self._is_lost or time.monotonic() - self._renewed_s > EXPIRES_S - BEAT_S:
            raise DataError(
                f"{self._folder}: this process has lost its lock, because it was paused or cut off from the store for "
                f"{EXPIRES_S:.0f} s; start the process again to continue with the stored results"
            )

    def release(self) -> None:
        """Remove the object, unless another process has taken it over. A second call does nothing."""
        self._is_over.set()
        if self._beat_thread is None:
            return
        self._beat_thread.join()
        self._beat_thread = None
        with suppress(OSError):
            if self._is_own(self._path.read_bytes()):
                self._path.unlink(missing_ok=True)

    def _is_own(self, content: bytes) -> bool:
        try:
            return json.loads(content)["owner"] == self._owner
        except (ValueError, KeyError, TypeError):
            return False


def _make_content(activity: str, **more: Any) -> bytes:
    """Return the content of a lock's file: a JSON object with ``activity``, this process, its host, and ``more``."""
    holder = {
        "what": f"This process {activity}. The lock is removed when the process has finished.",
        "pid": os.getpid(),
        "host": socket.gethostname(),
    }
    return (json.dumps(holder | more) + "\n").encode()


def _name_holder(content: bytes | None) -> str:
    """Return a text for messages that names the holder of a lock, from the ``content`` of the lock's file.

    Returns "another process" if the content is missing or damaged.
    """
    try:
        holder = json.loads(content or b"")
        return f"process {holder['pid']} on {holder['host']}"
    except (ValueError, KeyError, TypeError):
        return "another process"


def _in_use_error(folder: Path | ObjectPath, content: bytes | None, activity: str) -> DataError:
    return DataError(f"{folder} is in use: {_name_holder(content)} {activity}; wait for its end, or use another folder")


def _read_or_none(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
