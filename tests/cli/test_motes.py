"""``workbench motes``, and the view that ``show()`` displays of a run in progress."""

import signal
import subprocess
import sys
import time
from threading import Thread

import pytest

import workbench as wb
from tests.until import PATIENCE_S, wait_until
from workbench import cli, motes
from workbench.motes import rack
from workbench.motes.live.driver import LiveDriver
from workbench.motes.mote import Mote
from workbench.motes.program import boards, program_files
from workbench.views import notebook
from workbench.views.player import living

needs_node = pytest.mark.skipif(rack.missing() is not None, reason=str(rack.missing()))

#   0 --- 1 --- 2      the sink is node 0, the source node 2
SCENARIO = wb.Scenario(
    wb.topology.line(3),
    wb.Diffusion(),
    [wb.subscribe(0, "TEMP GE 25"), wb.publish(2, "TEMP IS 26.5", every_s=0.5, start_s=0.5)],
    duration_s=2,
)


@pytest.fixture
def scenario_file(tmp_path):
    path = tmp_path / "line.json"
    path.write_text(SCENARIO.to_json())
    return path


def test_listing_shows_which_virtual_motes_are_available(capsys):
    assert cli.main(["motes", "list"]) == 0
    last = capsys.readouterr().out.splitlines()[-3:]
    for kind, line in zip(("micropython", "c", "cortex-m3"), last, strict=True):
        assert line.startswith(f"virtual, {kind} ")
        assert (motes.missing(kind) or "as many as a scenario has nodes") in line


@needs_node
@pytest.mark.parametrize("options", [[], ["--lockstep"]], ids=["live", "lockstep"])
def test_run_on_virtual_motes_prints_and_writes_the_same_as_a_simulation(scenario_file, tmp_path, capsys, options):
    out = tmp_path / "results"
    assert cli.main(["motes", "run", str(scenario_file), "--speed", "2", "--out", str(out), *options]) == 0
    printed = dict(line.split()[:2] for line in capsys.readouterr().out.splitlines())
    assert float(printed["delivery_ratio"]) == 1.0
    assert {path.name for path in out.iterdir()} == {
        "scenario.json",
        "metrics.json",
        "record.json",
        "trace.parquet",
        "run.html",
        "run.png",
    }
    assert cli.main(["reproduce", str(out / "run.png")]) == (0 if options else 2)
    printed = capsys.readouterr()
    assert "identical" in printed.out if options else "clocks of their own" in printed.err


def test_missing_boards_end_in_a_sentence(scenario_file, capsys):
    missing = [f"--on=socket://127.0.0.1:{port}" for port in (9, 9, 9)]
    assert cli.main(["motes", "run", str(scenario_file), *missing]) == cli.BAD_INPUT
    assert "socket://127.0.0.1:9 cannot be opened" in capsys.readouterr().err


def test_too_few_boards_end_in_a_sentence(scenario_file, capsys):
    assert cli.main(["motes", "run", str(scenario_file), "--on", "socket://127.0.0.1:9"]) == cli.BAD_INPUT
    assert "1 entries for 3 nodes" in capsys.readouterr().err


@needs_node
def test_monitor_prints_the_greeting_of_a_mote(capsys):
    with rack.Rack(1, program_files("virtual")) as motes_rack:
        listener = Thread(target=cli.main, args=(["motes", "monitor", motes_rack.urls[0], "--seconds", "1.5"],))
        listener.start()
        listener.join()
        with Mote(motes_rack.urls[0]):
            pass
    printed = capsys.readouterr().out
    assert "board virtual, without a radio of its own, earlier starts: 0" in printed


@needs_node
def test_monitor_continues_when_the_mote_is_lost_and_reports_its_return(capsys):
    with rack.Rack(1, program_files("virtual")) as motes_rack:
        listener = Thread(target=cli.main, args=(["motes", "monitor", motes_rack.urls[0], "--seconds", "6"],))
        listener.start()
        printed = []

        def has_printed(text):
            printed.append(capsys.readouterr().out)
            return text in "".join(printed)

        wait_until(lambda: has_printed("earlier starts: 0"))
        motes_rack.kill(0)
        wait_until(lambda: has_printed("lost: "))
        time.sleep(1.2)  # The monitor pings the mote each second, and a lost mote does not end it.
        motes_rack.restart(0)
        wait_until(lambda: has_printed("ready: board virtual, without a radio of its own, earlier starts: 1"))
        listener.join(PATIENCE_S)


INTERRUPTED = """
import signal, sys, threading
from workbench import cli
from workbench.motes.live.run import LiveRun

wait = LiveRun.wait

def wait_a_moment(run):
    threading.Timer(1, lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)).start()
    return wait(run)

LiveRun.wait = wait_a_moment
sys.exit(cli.main(sys.argv[1:]))
"""


@needs_node
@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="threads cannot be signalled here")
def test_an_interrupt_ends_the_run_and_writes_the_results_so_far(tmp_path):
    path = tmp_path / "long.json"
    path.write_text(SCENARIO.replace(duration_s=300).to_json())
    command = [sys.executable, "-c", INTERRUPTED, "motes", "run", str(path), "--out", str(tmp_path / "out")]
    process = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert (process.returncode, process.stderr) == (130, "")
    assert "delivery_ratio" in process.stdout
    assert (tmp_path / "out" / "trace.parquet").is_file()


@needs_node
def test_a_run_that_ends_early_reports_why_and_writes_the_results_so_far(scenario_file, tmp_path, capsys, monkeypatch):
    def stumble(run, *_):
        raise RuntimeError("stumbled")

    monkeypatch.setattr(LiveDriver, "_request_clocks", stumble)
    out = tmp_path / "out"
    assert cli.main(["motes", "run", str(scenario_file), "--out", str(out)]) == 1
    assert "the run ended early: stumbled" in capsys.readouterr().err
    assert (out / "metrics.json").is_file()


def test_monitor_of_a_missing_mote_ends_in_a_sentence(capsys):
    assert cli.main(["motes", "monitor", "socket://127.0.0.1:9"]) == cli.BAD_INPUT
    assert "cannot be opened" in capsys.readouterr().err


@pytest.mark.parametrize("board", boards())
def test_program_of_a_board_is_written_as_files(tmp_path, capsys, board):
    assert cli.main(["motes", "program", "--board", board, "--out", str(tmp_path), "--source"]) == 0
    assert "files" in capsys.readouterr().out
    assert (tmp_path / "main.py").is_file()
    assert (tmp_path / "board.py").read_text().count(f'NAME = "{board}"') == 1
    assert (tmp_path / "workbench" / "protocols" / "diffusion" / "node.py").is_file()


def test_board_without_driver_ends_in_a_sentence(tmp_path, capsys):
    assert cli.main(["motes", "program", "--board", "toaster", "--out", str(tmp_path)]) == cli.BAD_INPUT
    assert "board is 'toaster', which has no driver" in capsys.readouterr().err


class View:
    """A stand-in for a player: it stores the arguments of each update."""

    def __init__(self, *_, **live):
        self.fed = [live]

    def feed(self, run, **live):
        assert run.trace.num_rows >= 0
        self.fed.append(live)


@pytest.fixture
def followed(monkeypatch):
    """Replace the player by `View`, as if in a notebook; return the list of displayed views."""
    display = pytest.importorskip("IPython.display")
    shown = []
    monkeypatch.setattr(display, "display", shown.append)
    monkeypatch.setattr(living, "PlayerView", View)
    monkeypatch.setattr(notebook, "in_notebook", lambda: True)
    monkeypatch.setattr(notebook, "EVERY_S", 0.2)
    return shown


@needs_node
def test_show_feeds_players_until_the_run_has_ended(followed):
    run = SCENARIO.run(on=motes.virtual(speed=2))
    run.show()
    run.show()
    wait_until(lambda: len(followed) == 2 and all(view.fed[-1]["now_s"] is None for view in followed), 60)
    assert not run.is_running
    times = [fed["now_s"] for fed in followed[0].fed[:-1]]
    assert len(times) > 2 and times == sorted(times)


class EndedRun:
    """A run that has ended early, with the attributes that a follower reads, and without motes."""

    scenario = SCENARIO
    is_running, error, now_s = False, RuntimeError("stumbled"), 1.5
    notes = ("node 1: it is silent", "the run ended early: stumbled")

    def so_far(self):
        return SCENARIO.run()


def test_reason_why_a_run_ended_early_is_displayed(followed):
    run = EndedRun()
    notebook.show_live(run)
    wait_until(lambda: len(followed[0].fed) > 1)
    assert followed[0].fed[-1]["notes"][:2] == ["The run ended early, at 1.5 s.", "node 1: it is silent."]


def test_a_player_that_fails_to_draw_is_reported_and_the_others_continue(followed, capsys, monkeypatch):
    def refuse(view, run, **live):
        raise ValueError("no picture")

    run = EndedRun()
    first, second = View(), View()
    monkeypatch.setattr(first, "feed", refuse.__get__(first))
    notebook._views[run] = [first, second]
    notebook._follow_run(run)
    assert len(second.fed) == 2 and notebook._views[run] == [second]
    assert "is no longer updated: drawing the run raised ValueError('no picture')" in capsys.readouterr().err


@needs_node
def test_show_without_a_notebook_waits_for_the_end_and_writes_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    run = SCENARIO.run(on=motes.virtual(speed=4))
    run.show()
    assert not run.is_running
    assert "open it in a browser" in capsys.readouterr().out
    assert list((tmp_path / "out").glob("*.html"))
