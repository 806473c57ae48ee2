"""Sweeps in processes of this machine: the same rows as a local run, whatever single points do to their process."""

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
    """Return a sweep over filters and seeds; the points of a filter are adjacent."""
    for function in filters:
        wb.register_filter(function.__name__, function)
    over = {function.__name__: (wb.Filter(function.__name__),) for function in filters}
    return wb.Sweep(scenario(), {"protocol.filters": over, "seed": seeds})


def run(plan, runner, numbers=None):
    """Return {number: row}, without times."""
    numbers = range(len(plan)) if numbers is None else numbers
    rows = [row for some in runner.run(plan, numbers, lambda points: None) for row in some]
    assert sorted(row.number for row in rows) == sorted(numbers)
    return {row.number: row._replace(wall_s=0.0, compile_s=0.0) for row in rows}


def same(rows, expected):
    """Return whether rows are the same; NaN metrics count as equal."""
    return {number: repr(row) for number, row in rows.items()} == {n: repr(row) for n, row in expected.items()}


def test_processes_give_the_same_rows_as_this_process():
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
def test_a_point_that_ends_its_process_becomes_a_row_and_affects_no_other_point(function, how):
    plan = sweep_of(harmless, function).plan
    numbers = [*range(6), 7]
    rows, expected = run(plan, ProcessRunner(2), numbers), run(plan, LocalRunner(), range(6))
    bad = rows.pop(7)
    assert same(rows, expected)
    assert bad.error == f"the process that ran this point ended twice ({how})"
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


def test_an_endless_point_becomes_a_row_at_its_time_limit():
    plan = sweep_of(harmless, endless).plan
    rows = run(plan, ProcessRunner(2, timeout_s=1.5), [*range(6), 6, 8])
    message = "the point did not end within 1.5 s and was stopped"
    assert {number: row.error for number, row in rows.items() if row.error} == {6: message, 8: message}


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


@pytest.mark.family
def test_a_process_killed_from_outside_before_its_limit_did_not_time_out():
    plan = sweep_of(kills_itself, seeds=range(2)).plan
    rows = run(plan, ProcessRunner(1, timeout_s=60), [0, 1])
    assert {row.error for row in rows.values()} == {"the process that ran this point ended twice (signal SIGKILL)"}


def kills_itself(attributes):
    os.kill(os.getpid(), signal.SIGKILL)


HELD_MEMORY = []


def hungry(attributes):
    while True:
        HELD_MEMORY.append(bytearray(50_000_000))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems do not keep to RLIMIT_AS")
def test_a_point_that_needs_too_much_memory_becomes_a_row_and_affects_no_other_point():
    plan = sweep_of(harmless, hungry).plan
    rows = run(plan, ProcessRunner(1, memory_MB=500), [*range(3), 6, 3, 8, 4])
    assert {number for number, row in rows.items() if row.error} == {6, 8} and len(rows) == 7
    assert all(rows[number].error.startswith("out of memory: the point exceeded its limit") for number in (6, 8))


def test_the_memory_of_a_point_is_limited_by_default():
    rows = run(sweep_of(names_its_limit, seeds=[1]).plan, ProcessRunner(1))
    assert 0 < float(rows[0].error.rpartition("limit ")[2].partition(" ")[0]) < 1e15


def names_its_limit(attributes):
    import resource

    raise ValueError(f"limit {resource.getrlimit(resource.RLIMIT_AS)[0]} ")


def test_the_time_limit_does_not_include_imports(monkeypatch):
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
        # A point that is killed twice has an error, so the point of the last killed process must have its row.
        if killed < 3 and len(rows) > 10 + 40 * killed:
            os.kill(runner._group._members[0].process.pid, signal.SIGKILL)
            killed += 1
    assert killed == 3
    assert len(rows) == 150
    assert same({row.number: row._replace(wall_s=0.0, compile_s=0.0) for row in rows}, run(plan, LocalRunner()))


def test_a_process_killed_just_after_sending_its_rows_costs_nothing(monkeypatch):
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


def test_an_interrupt_ends_running_points_and_keeps_finished_ones(tmp_path):
    sweep = sweep_of(harmless, endless)
    runner, pids = ProcessRunner(2), []

    class Interrupted:
        def run(self, plan, numbers, report_progress):
            rows_before_interrupt = []

            def interrupt(points):
                pids[:] = [member.process.pid for member in runner._group._members]
                if rows_before_interrupt:
                    raise KeyboardInterrupt

            for rows in runner.run(plan, numbers, interrupt):
                rows_before_interrupt.extend(rows)
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


def test_the_next_sweep_reuses_running_processes_with_its_own_code():
    wb.register_filter("choosy", lambda attributes: attributes)
    plan = wb.Sweep(scenario(protocol=wb.Diffusion(filters=(wb.Filter("choosy"),))), {"seed": range(4)}).plan
    first = run(plan, ProcessRunner(1))
    pids = [process.pid for process in processes._pool._idle]
    wb.register_filter("choosy", lambda attributes: None)
    second = run(plan.fresh(), ProcessRunner(1))
    assert [process.pid for process in processes._pool._idle] == pids
    assert all(row.metrics["delivered"] > 0 for row in first.values())
    assert {row.metrics["delivered"] for row in second.values()} == {0}
    processes._pool.end_idle()
    assert not any(map(is_running, pids))


class UnpicklingFails:
    """An object that can be pickled, but not unpickled."""

    def __reduce__(self):
        return int, ("no number",)


def filter_that_holds(thing):
    return lambda attributes: attributes if thing else None


def test_an_object_that_a_process_cannot_unpickle_is_an_error_with_one_sentence():
    wb.register_filter("holder", filter_that_holds(UnpicklingFails()))
    plan = wb.Sweep(scenario(protocol=wb.Diffusion(filters=(wb.Filter("holder"),))), {"seed": [1, 2]}).plan
    with pytest.raises(wb.WorkbenchError, match="ValueError: invalid literal for int.*'no number'"):
        run(plan, ProcessRunner(2))
    assert len(run(sweep_of(harmless).plan, ProcessRunner(2))) == 6


@pytest.mark.parametrize("wrong", [{"processes": 0}, {"timeout_s": 0}, {"timeout_s": "5 s"}, {"memory_MB": 0}])
def test_wrong_settings_are_refused(wrong):
    (name,) = wrong
    with pytest.raises(wb.ScenarioError, match=f"`{name}` is .*; it must be"):
        ProcessRunner(**wrong)


def test_a_sweep_uses_processes_by_default():
    plan = wb.Sweep(scenario(), {"seed": [1]}).plan
    assert isinstance(runners.default_runner(plan, 5), ProcessRunner)
    assert isinstance(runners.default_runner(plan, 1), LocalRunner)


# Progress


def test_the_remaining_time_follows_the_last_minute_and_falls_between_results():
    pace = progress.Pace()
    assert pace.points_per_second(0.0) == 0.0
    for second in range(100):  # a slow start: one point per second, then ten
        pace.add(second, 1 if second < 30 else 10)
    assert pace.points_per_second(99.0) == pytest.approx(10.0, rel=0.05)
    bursts = progress.Pace()
    for second in (0, 20, 40):  # a task of 40 points every 20 s
        bursts.add(second, 40)
    assert {bursts.points_per_second(40.0 + later) for later in range(20)} == {2.0}  # the next task is not late yet
    assert bursts.points_per_second(100.0) == pytest.approx(1.0)


class Recorded:
    """A display that stores the texts it showed."""

    def __init__(self):
        self.texts = []

    def show(self, share, text):
        self.texts.append(text)


def test_progress_shows_failures_pace_and_the_state_of_workers(monkeypatch):
    monkeypatch.setattr(progress, "SHOWN_S", 0.0)
    now_s = iter(range(100))
    monkeypatch.setattr(progress.time, "perf_counter", lambda: float(next(now_s)))
    shown = Recorded()
    reported = progress.Progress(shown, 100, 10, lambda: ["point 7 for 3 s", "idle"])
    reported.advance(10)
    reported.advance(10, failed=1)
    assert shown.texts[0] == "sweep: 10 of 100 points [point 7 for 3 s; idle]"
    assert shown.texts[-1].startswith("sweep: 30 of 100 points, 1 failed, 5 a second, about 14 s left [point 7")


@pytest.mark.parametrize(("a_second", "text"), [(25.0, "25 a second"), (0.05, "3 a minute"), (0.001, "3.6 an hour")])
def test_a_pace_is_shown_in_a_suitable_unit(a_second, text):
    assert progress.format_rate(a_second) == text


# Shares


@given(st.integers(0, 400), st.integers(1, 8), st.lists(st.floats(1e-4, 100), min_size=1, max_size=5))
def test_shares_distribute_each_point_once_including_returned_ones(points, workers, times):
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


def test_shares_start_with_single_points_of_the_whole_range_and_grow_to_their_time():
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
