"""Sweeps in processes of this machine: the rows of a local run, whatever single points do to their process."""

import itertools
import os
import signal
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from tests.sweeps.made import harmless, poisoned, scenario
from workbench.sim.fast import code_cache
from workbench.sweeps import LocalRunner, ProcessRunner, forking, limits, processes, progress, runners
from workbench.sweeps.shares import Shares

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")


def quits(attributes):
    raise SystemExit(5)


def crashes(attributes):
    os.kill(os.getpid(), signal.SIGSEGV)


def ends_its_group(attributes):
    os.killpg(0, signal.SIGKILL)


def endless(attributes):
    while True:
        time.sleep(0.1)


def sweep_of(*filters, seeds=range(6)):
    """A sweep over filters and seeds; the points of a filter stand together."""
    for function in filters:
        wb.register_filter(function.__name__, function)
    over = {function.__name__: (wb.Filter(function.__name__),) for function in filters}
    return wb.Sweep(scenario(), {"protocol.filters": over, "seed": seeds})


def run(plan, runner, numbers=None):
    """number -> row, without times."""
    numbers = range(len(plan)) if numbers is None else numbers
    rows = [row for some in runner.run(plan, numbers, lambda points: None) for row in some]
    assert sorted(row.number for row in rows) == sorted(numbers)
    return {row.number: row._replace(wall_s=0.0, compile_s=0.0) for row in rows}


def same(rows, expected):
    """Whether rows are the same, where a metric that is no number equals itself."""
    return {number: repr(row) for number, row in rows.items()} == {n: repr(row) for n, row in expected.items()}


def test_processes_give_what_this_process_gives():
    plan = wb.Sweep(scenario(), {"protocol": [wb.Flooding(), wb.Diffusion(ttl=9)], "seed": range(40)}, "reference").plan
    assert same(run(plan, ProcessRunner(2)), run(plan, LocalRunner()))


@pytest.mark.parametrize(
    ("function", "how"),
    [
        (poisoned, "exit status 3"),
        (quits, "exit status 5"),
        (crashes, "signal SIGSEGV"),
        (ends_its_group, "signal SIGKILL"),
    ],
    ids=["_exit", "sys.exit", "segmentation fault", "killpg"],
)
def test_a_point_that_ends_its_process_becomes_a_row_and_costs_no_other(function, how):
    plan = sweep_of(harmless, function).plan
    numbers = [*range(6), 7]
    rows, expected = run(plan, ProcessRunner(2), numbers), run(plan, LocalRunner(), range(6))
    bad = rows.pop(7)
    assert same(rows, expected)
    assert bad.error == f"the point ended its process twice ({how})"
    assert bad.scenario == plan.scenario_of(7).hash
    assert bad.metrics == {}


def test_a_server_that_is_killed_costs_nothing():
    plan = wb.Sweep(scenario(), {"seed": range(60)}, "reference").plan
    runner, rows, killed = ProcessRunner(2), [], False
    for some in runner.run(plan, range(60), lambda points: None):
        rows += some
        if not killed:
            members = runner._group._members
            os.kill(processes._pool._server._process.pid, signal.SIGKILL)
            os.kill(members[0].process.pid, signal.SIGKILL)
            killed = True
    assert len(rows) == 60
    assert not any(row.error for row in rows)


def test_a_point_that_does_not_end_becomes_a_row_in_its_time():
    plan = sweep_of(harmless, endless).plan
    rows = run(plan, ProcessRunner(2, timeout_s=1.5), [*range(6), 6, 8])
    told = "the point did not end within 1.5 s and was stopped"
    assert {number: row.error for number, row in rows.items() if row.error} == {6: told, 8: told}


def ignores_alarms(attributes):
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    while True:
        pass


def blocks_all_signals(attributes):
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, signal.NSIG))
    while True:
        time.sleep(1)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the timer that kills is one of Linux")
@pytest.mark.parametrize("function", [ignores_alarms, blocks_all_signals])
def test_a_point_that_ignores_its_time_limit_is_killed_and_becomes_a_row(function):
    plan = sweep_of(harmless, function).plan
    rows = run(plan, ProcessRunner(2, timeout_s=1.5), [*range(6), 6, 8])
    sentence = "the point did not end within 1.5 s and was stopped"
    assert {number: row.error for number, row in rows.items() if row.error} == {6: sentence, 8: sentence}


def test_a_process_that_is_killed_from_outside_before_its_limit_was_not_late():
    plan = sweep_of(kills_itself, seeds=range(2)).plan
    rows = run(plan, ProcessRunner(1, timeout_s=60), [0, 1])
    assert {row.error for row in rows.values()} == {"the point ended its process twice (signal SIGKILL)"}


def kills_itself(attributes):
    os.kill(os.getpid(), signal.SIGKILL)


LEFT = []


def hungry(attributes):
    while True:
        LEFT.append(bytearray(50_000_000))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems do not keep to RLIMIT_AS")
def test_a_point_that_needs_too_much_memory_becomes_a_row_and_costs_no_other():
    plan = sweep_of(harmless, hungry).plan
    rows = run(plan, ProcessRunner(1, memory_MB=500), [*range(3), 6, 3, 8, 4])
    assert {number for number, row in rows.items() if row.error} == {6, 8} and len(rows) == 7
    assert all(rows[number].error.startswith("out of memory: the point exceeded its limit") for number in (6, 8))


def test_the_memory_of_a_point_is_limited_without_being_asked_for():
    rows = run(sweep_of(names_its_limit, seeds=[1]).plan, ProcessRunner(1))
    assert 0 < float(rows[0].error.rpartition("limit ")[2].partition(" ")[0]) < 1e15


def names_its_limit(attributes):
    import resource

    raise ValueError(f"limit {resource.getrlimit(resource.RLIMIT_AS)[0]} ")


def test_the_time_limit_does_not_count_what_is_loaded(monkeypatch):
    timer = limits.Timer(1_000.0)
    monkeypatch.setattr(code_cache, "around_loading", timer.paused)
    try:
        timer.start()
        with code_cache.loading():
            assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 1_000
    finally:
        timer.stop()
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


def test_a_process_that_is_killed_from_outside_costs_nothing(monkeypatch):
    monkeypatch.setattr(processes, "SHARE_S", 0.05)
    plan = wb.Sweep(scenario(), {"seed": range(150)}, "reference").plan
    runner, rows, killed = ProcessRunner(2), [], 0
    for some in runner.run(plan, range(150), lambda points: None):
        rows += some
        if killed < 3 and len(rows) > 10:
            os.kill(runner._group._members[0].process.pid, signal.SIGKILL)
            killed += 1
    assert killed == 3
    assert len(rows) == 150
    assert same({row.number: row._replace(wall_s=0.0, compile_s=0.0) for row in rows}, run(plan, LocalRunner()))


def test_a_process_that_is_killed_when_it_has_just_sent_its_rows_costs_nothing(monkeypatch):
    plan = wb.Sweep(scenario(), {"seed": range(40)}, "reference").plan
    runner, rows = ProcessRunner(2), []
    end = forking.PointProcess.end
    monkeypatch.setattr(forking.PointProcess, "end", lambda process: end(process)._replace(number=rows[0].number))
    for some in runner.run(plan, range(40), lambda points: None):
        if not rows:
            os.kill(runner._group._members[0].process.pid, signal.SIGKILL)
        rows += some
    assert sorted(row.number for row in rows) == list(range(40))
    assert not any(row.error for row in rows)


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_an_interrupt_ends_what_runs_and_keeps_what_is_done(tmp_path):
    sweep = sweep_of(harmless, endless)
    runner, pids = ProcessRunner(2), []

    class Interrupted:
        def run(self, plan, numbers, report_progress):
            kept = []

            def interrupt(points):
                pids[:] = [member.process.pid for member in runner._group._members]
                if kept:
                    raise KeyboardInterrupt

            for rows in runner.run(plan, numbers, interrupt):
                kept.extend(rows)
                yield rows

    with pytest.raises(KeyboardInterrupt, match="of 12 points are stored in"):
        sweep.run(out=tmp_path, runner=Interrupted(), progress=False)
    ran = []
    healthy = sweep_of(harmless)

    class Recording(LocalRunner):
        def run(self, plan, numbers, report_progress):
            ran.extend(numbers)
            return super().run(plan, numbers, report_progress)

    healthy.run(out=tmp_path, runner=Recording(), progress=False)
    assert len(ran) < 6
    assert runner.doing() == []
    assert not all(map(is_running, pids))


def test_processes_are_found_warm_by_the_next_sweep_and_take_its_code():
    wb.register_filter("choosy", lambda attributes: attributes)
    plan = wb.Sweep(scenario(protocol=wb.Diffusion(filters=(wb.Filter("choosy"),))), {"seed": range(4)}).plan
    first = run(plan, ProcessRunner(1))
    pids = [process.pid for process in processes._pool._idle]
    wb.register_filter("choosy", lambda attributes: None)
    second = run(plan.fresh(), ProcessRunner(1))
    assert [process.pid for process in processes._pool._idle] == pids
    assert {row.metrics["delivery_ratio"] for row in first.values()} == {1.0}
    assert {row.metrics["delivery_ratio"] for row in second.values()} == {0.0}
    processes._pool.end_idle()
    assert not any(map(is_running, pids))


class OpensNowhereElse:
    """Pickles, and cannot be unpickled."""

    def __reduce__(self):
        return int, ("no number",)


def filter_that_holds(thing):
    return lambda attributes: attributes if thing else None


def test_what_a_process_cannot_unpack_is_told_in_a_sentence():
    wb.register_filter("holder", filter_that_holds(OpensNowhereElse()))
    plan = wb.Sweep(scenario(protocol=wb.Diffusion(filters=(wb.Filter("holder"),))), {"seed": [1, 2]}).plan
    with pytest.raises(wb.WorkbenchError, match="ValueError: invalid literal for int.*'no number'"):
        run(plan, ProcessRunner(2))
    assert len(run(sweep_of(harmless).plan, ProcessRunner(2))) == 6


@pytest.mark.parametrize("wrong", [{"processes": 0}, {"timeout_s": 0}, {"timeout_s": "5 s"}, {"memory_MB": 0}])
def test_wrong_settings_are_told(wrong):
    (name,) = wrong
    with pytest.raises(wb.ScenarioError, match=f"{name} is .*; it must be"):
        ProcessRunner(**wrong)


def test_a_sweep_takes_processes_unless_told_otherwise():
    plan = wb.Sweep(scenario(), {"seed": [1]}).plan
    assert isinstance(runners.default_runner(plan, 5), ProcessRunner)
    assert isinstance(runners.default_runner(plan, 1), LocalRunner)


# Progress


def test_the_time_left_is_that_of_the_last_minute_and_goes_down_while_nothing_comes():
    pace = progress.Pace()
    assert pace.points_per_second(0.0) == 0.0
    for second in range(100):  # a slow beginning: a point a second, then ten
        pace.add(second, 1 if second < 30 else 10)
    assert pace.points_per_second(99.0) == pytest.approx(10.0, rel=0.05)
    bursts = progress.Pace()
    for second in (0, 20, 40):  # a task of 40 points each 20 s
        bursts.add(second, 40)
    assert {bursts.points_per_second(40.0 + later) for later in range(20)} == {2.0}  # the next one is not late yet
    assert bursts.points_per_second(100.0) == pytest.approx(1.0)


class Recorded:
    """A display that remembers what it showed."""

    def __init__(self):
        self.texts = []

    def show(self, share, text):
        self.texts.append(text)


def test_progress_tells_failures_pace_and_what_workers_do(monkeypatch):
    monkeypatch.setattr(progress, "SHOWN_S", 0.0)
    now_s = iter(range(100))
    monkeypatch.setattr(progress.time, "perf_counter", lambda: float(next(now_s)))
    shown = Recorded()
    told = progress.Progress(shown, 100, 10, lambda: ["point 7 for 3 s", "idle"])
    told.advance(10)
    told.advance(10, failed=1)
    assert shown.texts[0] == "sweep: 10 of 100 points [point 7 for 3 s; idle]"
    assert shown.texts[-1].startswith("sweep: 30 of 100 points, 1 failed, 5 a second, about 14 s left [point 7")


@pytest.mark.parametrize(("a_second", "text"), [(25.0, "25 a second"), (0.05, "3 a minute"), (0.001, "3.6 an hour")])
def test_a_pace_is_told_in_a_fitting_unit(a_second, text):
    assert progress.format_rate(a_second) == text


# Shares


@given(st.integers(0, 400), st.integers(1, 8), st.lists(st.floats(1e-4, 100), min_size=1, max_size=5))
def test_shares_deal_out_each_point_once_also_those_that_come_back(points, workers, times):
    shares, dealt = Shares(range(points), 2.0), []
    for turn, point_s in enumerate(itertools.cycle(times)):
        share = shares.take(workers)
        if not share:
            break
        if turn % 3 == 0 and len(share) > 1:
            shares.halve(share)
            continue
        dealt += share
        shares.record_time(len(share), len(share) * point_s)
    assert sorted(dealt) == list(range(points))


def test_shares_begin_with_single_points_from_all_over_and_grow_to_their_time():
    shares = Shares(range(1_000_000), 2.0)
    probe = [shares.take(4) for _ in range(8)]
    assert {len(share) for share in probe} == {1}
    assert max(probe)[0] > 700_000 > 300_000 > min(probe)[0]
    shares.record_time(8, 0.08)
    assert len(shares.take(4)) == 64
    shares.record_time(64, 0.64)
    assert len(shares.take(4)) == 200
    shares.record_time(200, 20_000.0)
    assert len(shares.take(4)) == 1


def test_shares_shrink_towards_the_end():
    shares, sizes = Shares(range(100), 10.0), []
    shares.record_time(1_000, 0.1)
    while share := shares.take(2):
        sizes.append(len(share))
    assert sizes[0] == 25
    assert sizes[-4:] == [1, 1, 1, 1]
    assert sizes == sorted(sizes, reverse=True)
