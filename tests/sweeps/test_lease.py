"""The lease of a folder: a live owner keeps it, a dead owner loses it, and only one process takes it over."""

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

import workbench as wb
from tests.sweeps.made import Clock
from workbench.sweeps.store import lease


def dead_process():
    """Return the id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def leave(folder, **fields):
    """Write a lease of this process into a folder, with some fields replaced."""
    content = {"owner": "0" * 32, **lease._this_process(), "beat": "1", **fields}
    (folder / lease.NAME).write_text(json.dumps(content))


@pytest.fixture
def clock(monkeypatch):
    """Return the clock of all leases, which advances only while a lease is watched."""
    clock = Clock()
    monkeypatch.setattr(lease, "time", clock)
    return clock


def is_waited_for(folder, clock):
    """Return whether the lease in a folder is watched until it expires; the alternative is not to watch it at all."""
    ours = lease.Lease(folder)
    begin_s = clock.now_s
    ours.take()
    waited_s = clock.now_s - begin_s
    ours.release()
    assert list(folder.iterdir()) == []
    assert waited_s == 0 or waited_s >= lease.EXPIRES_S
    return waited_s > 0


needs_proc = pytest.mark.skipif(not Path("/proc/self").exists(), reason="the identity of a process is read from /proc")


def test_a_lease_of_another_host_expires_without_beats(tmp_path, clock):
    (tmp_path / lease.NAME).write_text(json.dumps({"owner": "x", "host": "elsewhere", "pid": 1, "beat": "1"}))
    ours = lease.Lease(tmp_path)
    ours.take()
    assert clock.now_s >= lease.EXPIRES_S
    ours.check()
    ours.release()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"\xff\x00", b"[]", b'{"pid": "1"}', b'{"owner": 1'])
def test_an_unreadable_lease_expires_like_any_other(tmp_path, clock, content):
    (tmp_path / lease.NAME).write_bytes(content)
    ours = lease.Lease(tmp_path)
    ours.take()
    ours.check()
    ours.release()


def test_a_paused_owner_that_lost_the_folder_writes_no_more(tmp_path, monkeypatch, clock):
    monkeypatch.setattr(lease, "BEAT_S", 3600.0)
    first, second = lease.Lease(tmp_path), lease.Lease(tmp_path)
    first.take()
    second.take()
    with pytest.raises(wb.DataError, match="was taken over by another sweep while this one was paused"):
        first.check()
    first.release()
    second.check()
    second.release()
    assert not (tmp_path / lease.NAME).exists()


# Identity of the owner


@needs_proc
def test_the_lease_of_an_ended_process_of_this_system_is_taken_at_once(tmp_path, clock):
    leave(tmp_path, pid=dead_process())
    assert not is_waited_for(tmp_path, clock)


@needs_proc
def test_a_process_that_reuses_the_id_of_the_owner_is_not_taken_for_the_owner(tmp_path, clock):
    leave(tmp_path, began="1")  # an earlier process with the id of this one
    assert not is_waited_for(tmp_path, clock)


@needs_proc
@pytest.mark.parametrize("fields", [{"namespace": "pid:[1]"}, {"boot": "another"}, {"host": "elsewhere"}])
def test_a_process_of_another_system_is_watched_regardless_of_its_id(tmp_path, clock, fields):
    leave(tmp_path, pid=dead_process(), **fields)
    assert is_waited_for(tmp_path, clock)


@pytest.mark.parametrize("absent", ["boot", "namespace", "began"])
def test_a_lease_with_an_incomplete_identity_is_watched(tmp_path, clock, absent):
    leave(tmp_path, pid=dead_process() if absent != "began" else os.getpid(), **{absent: None})
    assert is_waited_for(tmp_path, clock) == (absent != "began" or not Path("/proc/self").exists())


def proc_of_a_container(folder, pid):
    """Return a folder that imitates /proc as a process in a container sees it."""
    own = folder / str(pid)
    for path in (own / "ns", folder / "sys/kernel/random"):
        path.mkdir(parents=True)
    (folder / "sys/kernel/random/boot_id").write_text("0f0f\n")
    (folder / "self").symlink_to(str(pid))
    (own / "ns/pid").symlink_to("pid:[4026532001]")
    (own / "stat").write_text(f"{pid} (python (3)) S " + " ".join(["0"] * 18) + " 4711 0\n")
    return folder


def test_containers_with_the_same_host_name_do_not_take_each_others_leases(tmp_path, monkeypatch):
    """The process id of the first container does not exist in the second one."""
    folder, number = tmp_path / "results", dead_process()
    folder.mkdir()
    monkeypatch.setattr(lease, "BEAT_S", 0.3)
    with monkeypatch.context() as inside:
        inside.setattr(lease, "_PROC", proc_of_a_container(tmp_path / "proc", number))
        inside.setattr(os, "getpid", lambda: number)
        first = lease.Lease(folder)
        first.take()
    content = json.loads((folder / lease.NAME).read_text())
    assert (content["pid"], content["boot"], content["began"]) == (number, "0f0f", "4711")
    with pytest.raises(wb.DataError, match=f"is in use: process {number} on "):
        lease.Lease(folder).take()
    first.check()
    first.release()


def test_a_proc_of_another_process_does_not_identify_this_process(tmp_path, monkeypatch):
    monkeypatch.setattr(lease, "_PROC", proc_of_a_container(tmp_path, os.getpid() + 1))
    assert set(lease._this_process()) == {"host", "pid"}


# Takeover


@needs_proc
def test_only_the_first_of_three_contenders_takes_a_dead_lease(tmp_path, monkeypatch):
    """The first process takes the lease after the second one found it dead; the third one starts at the next step."""
    monkeypatch.setattr(lease, "BEAT_S", 0.02)
    monkeypatch.setattr(lease, "_POLL_S", 0.01)
    leave(tmp_path, pid=dead_process())
    first, second, third = (lease.Lease(tmp_path) for _ in range(3))
    judged = lease._is_gone
    came = []

    def first_is_quicker(content):
        monkeypatch.setattr(lease, "_is_gone", judged)
        first.take()
        for name in ("rename", "replace", "unlink"):
            monkeypatch.setattr(Path, name, third_comes_after(getattr(Path, name)))
        return True

    def third_comes_after(step):
        def stepped(path, *arguments, **options):
            answer = step(path, *arguments, **options)
            if not came:
                came.append(path.name)
                with suppress(wb.DataError):
                    third.take()
            return answer

        return stepped

    monkeypatch.setattr(lease, "_is_gone", first_is_quicker)
    with pytest.raises(wb.DataError, match="is in use"):
        second.take()
    assert came
    first.check()
    for loser in (second, third):
        with pytest.raises(wb.DataError):
            loser.check()
    monkeypatch.undo()
    first.release()
    assert list(tmp_path.iterdir()) == []


@needs_proc
def test_only_one_of_many_processes_takes_a_dead_lease(tmp_path, monkeypatch):
    monkeypatch.setattr(lease, "BEAT_S", 0.02)
    monkeypatch.setattr(lease, "_POLL_S", 0.01)
    number = dead_process()
    for turn in range(10):
        folder = tmp_path / str(turn)
        folder.mkdir()
        leave(folder, pid=number)
        some, begin = [lease.Lease(folder) for _ in range(6)], threading.Barrier(6)
        owners = []

        def contend(contender, begin=begin, owners=owners):
            begin.wait()
            with suppress(wb.DataError):
                contender.take()
                owners.append(contender)

        threads = [threading.Thread(target=contend, args=(contender,)) for contender in some]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        (owner,) = owners
        owner.check()
        owner.release()
        assert list(folder.iterdir()) == []


@needs_proc
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_the_lease_of_a_process_killed_during_a_takeover_is_taken_over(tmp_path, monkeypatch, clock, steps):
    """Each process dies before it has moved its file into place."""
    dead = lease._this_process() | {"pid": dead_process()}
    leave(tmp_path, **dead)
    for _ in range(steps):
        taker = lease.Lease(tmp_path)
        with monkeypatch.context() as dying:
            dying.setattr(lease, "_this_process", lambda: dead)
            dying.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            dying.setattr(lease, "_is_gone", lambda _: True)
            with pytest.raises(KeyboardInterrupt):
                taker.take()
    assert len(list(tmp_path.iterdir())) == 1 + steps
    assert not is_waited_for(tmp_path, clock)


def test_an_obsolete_lease_file_is_removed_by_the_next_owner(tmp_path):
    (tmp_path / f"_lease-{'1' * 32}.json").write_text("{}")
    ours = lease.Lease(tmp_path)
    ours.take()
    assert [path.name for path in tmp_path.iterdir()] == [lease.NAME]
    ours.release()
