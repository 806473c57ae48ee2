"""Locks of locations: a live holder keeps its lock, a dead one loses it, and only one process takes it over."""

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest

import workbench as wb
from tests.repository import REPOSITORY
from tests.until import wait_until
from workbench.locations import FolderLock, ObjectLock, location, locks

NAME, ACTIVITY = "_lock.json", "writes here"
HOLDER = """
import os, subprocess, sys, time
from pathlib import Path
from workbench.locations import FolderLock
lock = FolderLock(Path(sys.argv[1]), sys.argv[2], "writes here")
{}
print("held", flush=True)
time.sleep(600)
"""


def holder(folder, more=""):
    """Start a process that locks a folder, runs the code ``more``, and waits; return it when it holds the lock."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER.format(more), str(folder), NAME], cwd=REPOSITORY, stdout=subprocess.PIPE
    )
    assert process.stdout.readline() == b"held\n"
    return process


def folder_lock(folder):
    return FolderLock(folder, NAME, ACTIVITY)


def object_lock(url):
    return ObjectLock(location(url), NAME, ACTIVITY)


# Folders


def test_a_held_folder_is_refused_at_once_also_by_a_symlink_and_while_its_holder_is_stopped(tmp_path):
    folder, link = tmp_path / "folder", tmp_path / "link"
    link.symlink_to(folder)
    process = holder(folder)
    try:
        for path in (folder, link):
            with pytest.raises(wb.DataError, match=rf"is in use: process {process.pid} on .* writes here; wait"):
                folder_lock(path)
        process.send_signal(signal.SIGSTOP)
        with pytest.raises(wb.DataError, match="is in use"):
            folder_lock(folder)
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("more", ["", "subprocess.Popen(['sleep', '20'], stdout=subprocess.DEVNULL)"])
def test_a_killed_holder_loses_its_lock_also_while_a_program_that_it_started_lives(tmp_path, more):
    process = holder(tmp_path, more)
    process.kill()
    process.communicate()
    lock = folder_lock(tmp_path)
    assert json.loads((tmp_path / NAME).read_bytes())["pid"] == os.getpid()
    lock.release()
    assert list(tmp_path.iterdir()) == []


def test_a_released_lock_is_free_although_a_forked_process_has_its_file_open(tmp_path):
    lock = folder_lock(tmp_path)
    file = os.dup(lock._file)  # as in a forked process
    lock.release()
    lock.release()
    folder_lock(tmp_path).release()
    os.close(file)


def test_only_one_of_many_processes_holds_the_lock_at_a_time(tmp_path):
    """Each process counts in a file without another protection, so two holders at a time would lose counts."""
    program = """
import sys
from pathlib import Path
from workbench.errors import DataError
from workbench.locations import FolderLock
folder, counter, held = Path(sys.argv[1]), Path(sys.argv[1]).with_name("counter"), 0
for _ in range(300):
    try:
        lock = FolderLock(folder, "_lock.json", "counts")
    except DataError:
        continue
    counter.write_text(str(int(counter.read_text()) + 1))
    held += 1
    lock.release()
print(held)
"""
    (tmp_path / "counter").write_text("0")
    command = [sys.executable, "-c", program, str(tmp_path / "folder")]
    processes = [subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE) for _ in range(4)]
    held = sum(int(process.communicate()[0]) for process in processes)
    assert held == int((tmp_path / "counter").read_text()) > 0


def test_a_lock_whose_file_was_removed_between_opening_and_locking_is_taken_anew(tmp_path, monkeypatch):
    lock_file, calls = fcntl.flock, []

    def removed_first(file, operation):
        calls.append(file)
        if len(calls) == 1:
            (tmp_path / NAME).unlink()
        return lock_file(file, operation)

    monkeypatch.setattr(fcntl, "flock", removed_first)
    lock = folder_lock(tmp_path)
    monkeypatch.undo()
    assert len(calls) == 2
    with pytest.raises(wb.DataError, match=f"process {os.getpid()} on"):
        folder_lock(tmp_path)
    lock.release()


def test_a_file_system_without_locks_causes_a_warning(tmp_path, monkeypatch):
    def unsupported(file, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    with pytest.warns(UserWarning, match="cannot be locked: its file system has no locks; make sure that no other"):
        lock = folder_lock(tmp_path)
    lock.release()
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_place_of_a_folder_is_refused_with_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(wb.DataError, match="file cannot be used as a folder: "):
        folder_lock(tmp_path / "file")


# Object stores


def test_a_held_object_store_is_refused_after_a_heartbeat(memory_url):
    lock = object_lock(memory_url)
    with pytest.raises(wb.DataError, match=f"{memory_url} is in use: process {os.getpid()} on .* writes here; wait"):
        object_lock(memory_url)
    lock.check()
    lock.release()
    lock.release()
    assert list(location(memory_url).iterdir()) == []


def test_a_lock_without_heartbeats_expires_and_its_holder_notices(memory_url, monkeypatch):
    with monkeypatch.context() as paused:
        paused.setattr(locks, "BEAT_S", 600.0)
        former = object_lock(memory_url)
    begin_s = time.monotonic()
    lock = object_lock(memory_url)
    assert time.monotonic() - begin_s >= locks.EXPIRES_S
    with pytest.raises(wb.DataError, match="this process has lost its lock"):
        former.check()
    former.release()
    lock.check()
    assert (location(memory_url) / NAME).exists()
    lock.release()


def test_the_heartbeat_of_a_replaced_lock_fails(memory_url):
    lock = object_lock(memory_url)
    (location(memory_url) / NAME).write_bytes(b'{"owner": "another"}')
    wait_until(lambda: lock._is_lost, 10)
    with pytest.raises(wb.DataError, match="this process has lost its lock"):
        lock.check()
    lock.release()
    assert (location(memory_url) / NAME).read_bytes() == b'{"owner": "another"}'


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff", b'{"pid": 1}'])
def test_a_damaged_lock_expires(memory_url, content):
    (location(memory_url) / NAME).write_bytes(content)
    lock = object_lock(memory_url)
    lock.check()
    lock.release()


def test_a_heartbeat_whose_answer_was_lost_keeps_the_lock(memory_url, monkeypatch):
    """The client repeats a request without an answer; the second copy fails, as the first one has succeeded."""
    replace = locks.ObjectPath.replace_version

    def repeated(path, content, tag):
        replace(path, content, tag)
        return replace(path, content, tag)

    lock = object_lock(memory_url)
    monkeypatch.setattr(locks.ObjectPath, "replace_version", repeated)
    beats = lock._beats
    wait_until(lambda: lock._beats > beats + 3, 10)
    lock.check()
    lock.release()


def test_only_one_of_many_contenders_takes_a_dead_lock(s3_url, monkeypatch):
    for name, seconds in (("BEAT_S", 0.2), ("EXPIRES_S", 1.0), ("_POLL_S", 0.1)):
        monkeypatch.setattr(locks, name, seconds)
    (location(s3_url) / NAME).write_bytes(b'{"owner": "dead", "pid": 1, "host": "elsewhere"}')
    begin, owners = threading.Barrier(6), []

    def contend():
        begin.wait()
        with suppress(wb.DataError):
            owners.append(object_lock(s3_url))

    threads = [threading.Thread(target=contend) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (owner,) = owners
    owner.check()
    owner.release()
    assert list(location(s3_url).iterdir()) == []
