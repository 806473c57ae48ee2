"""Twins that are compiled in advance: how a process detects them, which process compiles, and which ones wait."""

import importlib
import os
import subprocess
import sys
import threading

import numba
import pytest

import workbench as wb
from tests.repository import REPOSITORY
from tests.until import PATIENCE_S, wait_until
from workbench.public_names import PROTOCOLS
from workbench.sim import fast
from workbench.sim.fast import code_cache, engine, warming

TWIN = "workbench.protocols.flooding.fast"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return the folder for the machine code of `TWIN`'s loop, as if this process had loaded none of it."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(code_cache, "_loaded", set())
    monkeypatch.setattr(warming, "_started", {})
    (tmp_path / "loop.flood-1.py.nbi").write_text("")
    return tmp_path


def note_as_another_process_does(folder):
    code_cache.record_loaded(TWIN, str(folder), "flood")
    code_cache._loaded.clear()


def test_twin_is_warm_once_it_is_noted(folder):
    assert not fast.is_warm(wb.Flooding())
    note_as_another_process_does(folder)
    assert fast.is_warm(wb.Flooding())
    assert not fast.is_warm(wb.Diffusion())


def test_a_twin_loaded_by_this_process_is_warm_without_a_file(folder):
    code_cache.record_loaded(TWIN, None, "flood")
    assert fast.is_warm(wb.Flooding())
    assert not list(folder.glob("*.json"))


@pytest.mark.parametrize("change", ["the machine code is gone", "a source has changed", "the note is torn"])
def test_outdated_note_is_ignored(folder, change, tmp_path_factory, monkeypatch):
    source = tmp_path_factory.mktemp("package") / "rules.py"
    source.write_text("TTL = 1\n")
    monkeypatch.setattr(code_cache, "_numba_source", lambda: [str(source)])
    note_as_another_process_does(folder)
    assert fast.is_warm(wb.Flooding())
    if change == "the machine code is gone":
        (folder / "loop.flood-1.py.nbi").unlink()
    elif change == "a source has changed":
        source.write_text("TTL = 12\n")
    else:
        (path,) = folder.glob("*.json")
        path.write_text(path.read_text()[:-9])
    assert not fast.is_warm(wb.Flooding())


def test_protocol_without_a_twin_is_refused_by_name():
    with pytest.raises(fast.NoFastTwinError, match="PrintedTinyMQ has no version for the fast engine"):
        fast.is_warm(wb.PrintedTinyMQ())
    with pytest.raises(fast.NoFastTwinError, match="PrintedTinyMQ has no version for the fast engine"):
        fast.warm(wb.PrintedTinyMQ())


def test_the_warm_query_does_not_import_numba(folder):
    note_as_another_process_does(folder)
    code = (
        "import sys, workbench as wb\nfrom workbench.sim import fast\n"
        "assert fast.is_warm(wb.Flooding()) and 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, timeout=600, check=True)


class Stop(Exception):
    """Raised to end a run where it would need machine code."""


@pytest.mark.parametrize("name", [name for name in PROTOCOLS if "fast" in vars(getattr(wb, name))])
def test_types_compiled_in_advance_are_those_that_runs_need(name, monkeypatch):
    types = []

    def note_types(twin, setup, core, state, needs, *_):
        types.append([numba.typeof(argument) for argument in (core, state, *needs)])
        raise Stop

    monkeypatch.setattr(engine, "_play", note_types)
    protocol = getattr(wb, name)
    try:
        twin = fast.twin_of(protocol())
    except fast.NoFastTwinError:
        pytest.skip("no twin")
    workload = [wb.subscribe(0, "TEMP GE 20"), wb.publish("all", "TEMP IS 26", every_s=5), wb.outage(4, 2, 3)]
    radio = wb.radios.cc2420()
    with pytest.raises(Stop):
        warming.compile_here(twin, protocol)
    with pytest.raises(Stop):
        wb.Scenario(wb.topology.grid(3, 3), protocol(), workload, radio).run(engine="fast")
    assert types[0] == types[1]


@pytest.fixture
def command(monkeypatch):
    """Return a function that sets the program that replaces the compiler."""
    start = subprocess.Popen

    def use(program):
        monkeypatch.setattr(subprocess, "Popen", lambda _, **more: start([sys.executable, "-c", program], **more))

    return use


def test_one_process_compiles_a_twin_at_a_time(folder, command):
    command("import sys; sys.stdin.read()")
    first = fast.warm(wb.Flooding())
    try:
        assert fast.warm(wb.Flooding()) is first
        assert not first.is_done
        assert not first.wait(0.01)
        assert first.error == ""
    finally:
        first.stop()
    assert first.is_done
    second = fast.warm(wb.Flooding())
    assert second is not first
    second.stop()


def test_error_of_the_compiler_is_reported(folder, command):
    command("raise MemoryError('no room')")
    handle = fast.warm(wb.Flooding())
    assert handle.wait(PATIENCE_S)
    assert handle.error == "MemoryError: no room"


def test_warm_twin_starts_no_process(folder, monkeypatch):
    note_as_another_process_does(folder)
    monkeypatch.setattr(subprocess, "Popen", None)
    handle = fast.warm(wb.Flooding())
    assert handle.is_done
    assert handle.error == ""


def test_compiler_process_ends_with_the_process_that_started_it(folder):
    code = (
        "import os, workbench as wb\nfrom workbench.sim import fast\n"
        "print(fast.warm(wb.Diffusion())._process.pid, flush=True)\nos._exit(0)"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, timeout=600, check=True)
    pid = int(ran.stdout)
    wait_until(lambda: not is_running(pid))


def is_running(pid):
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat") as file:  # a zombie counts as ended: its parent may not have collected it
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (OSError, ProcessLookupError):
        return False


@pytest.mark.skipif(code_cache.fcntl is None, reason="this platform lacks file locks (fcntl)")
def test_second_compiler_waits_for_the_first(folder):
    order = []

    def second():
        with code_cache.lock(TWIN, lambda: order.append("waits")):
            order.append("second")

    with code_cache.lock(TWIN, lambda: order.append("never")):
        thread = threading.Thread(target=second)
        thread.start()
        wait_until(lambda: order == ["waits"])
        with code_cache.lock("another.twin", lambda: order.append("never")):
            order.append("first")
    thread.join(PATIENCE_S)
    assert order == ["waits", "first", "second"]


def test_compilation_is_announced_but_loading_from_disk_is_not(tmp_path, monkeypatch, capsys):
    (tmp_path / "loops_of_a_test.py").write_text(
        "from numba import njit\n@njit(cache=True)\ndef loop(core, state, first, second, events):\n    return events\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(code_cache, "_path", lambda twin, suffix: tmp_path / suffix)
    monkeypatch.setattr(code_cache, "_loaded", set())
    announced = []
    for _ in range(2):
        monkeypatch.delitem(sys.modules, "loops_of_a_test", raising=False)
        loop = importlib.import_module("loops_of_a_test").loop
        engine._load_machine_code("loops_of_a_test", loop, 1, 2, (3, 4))
        announced.append("compiling the engine" in capsys.readouterr().err)
    assert announced == [True, False]
