"""Sweeps that store traces: each run's trace is stored once and unchanged, even if the driver is killed."""

import os
import signal
import subprocess
import sys
from itertools import pairwise

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.repository import REPOSITORY
from tests.sweeps.made import Counting
from tests.until import wait_until
from workbench.sim import trace
from workbench.sweeps import LocalRunner, ProcessRunner, store
from workbench.sweeps.store import journal, traces
from workbench.sweeps.work import pack

SILENT = {"progress": False}


def scenario(**changes):
    """Return a scenario that loses frames, with a sink at one end of a line of five nodes and a source at the other."""
    workload = [wb.subscribe(at=0, what="TEMP GE 25"), wb.publish(at=4, what="TEMP IS 26.5", every_s=2)]
    return wb.Scenario(wb.topology.line(5), wb.Flooding(), workload, wb.Radio(loss=0.2), duration_s=5).replace(
        **changes
    )


def sweep(seeds, **options):
    return wb.Sweep(scenario(), {"seed": seeds}, engine="reference", keep="trace", **options)


def ran(seeds, folder, **options):
    """Return the points that a sweep into a folder runs."""
    runner = Counting()
    sweep(seeds).run(out=folder, runner=runner, **SILENT, **options)
    return runner.ran


def read_traces(folder):
    """Return {scenario: trace} of all runs in a folder of results; fail if a run is stored twice."""
    traces_by_scenario = {}
    for path in traces.files(folder):
        file = traces.File(path).checked()
        for run in file.runs:
            assert run.scenario not in traces_by_scenario
            table = pa.Table.from_batches(file.batches(run))
            assert set(table["scenario"].to_pylist()) == {run.scenario}
            assert table["row"].to_pylist() == list(range(run.rows))
            traces_by_scenario[run.scenario] = table.select(trace.SCHEMA.names).unify_dictionaries()
    return traces_by_scenario


def assert_traces_are_those_of(folder, seeds):
    digests = {hash_: trace.digest(table) for hash_, table in read_traces(folder).items()}
    assert digests == {run.scenario.hash: run.trace_hash for run in (scenario(seed=s).run("reference") for s in seeds)}


@pytest.mark.parametrize("runner", [LocalRunner(), ProcessRunner(1)], ids=repr)
def test_stored_traces_are_those_of_the_runs_and_results_are_readable(tmp_path, runner):
    table = sweep(range(4)).run(out=tmp_path, runner=runner, **SILENT)
    assert_traces_are_those_of(tmp_path, range(4))
    assert len(traces.files(tmp_path)) == 1  # instead of a file per run
    assert len(pd.read_parquet(tmp_path)) == len(store.read(tmp_path)) == 4
    without = wb.Sweep(scenario(), {"seed": range(4)}, engine="reference").run(runner=LocalRunner(), **SILENT)
    pd.testing.assert_frame_equal(*(rows.to_pandas().drop(columns="wall_s") for rows in (table, without)))


def test_files_are_sorted_so_that_one_run_is_read_from_one_row_group(tmp_path, monkeypatch):
    monkeypatch.setattr(traces, "ROWS_IN_GROUP", 100)
    sweep(range(12)).run(out=tmp_path, runner=LocalRunner(), **SILENT)
    (path,) = traces.files(tmp_path)
    metadata = pq.ParquetFile(path).metadata
    groups = [metadata.row_group(group).column(0).statistics for group in range(metadata.num_row_groups)]
    assert metadata.row_group(0).column(0).path_in_schema == "scenario"
    assert len(groups) > 3
    assert [group.min for group in groups] == sorted(group.min for group in groups)
    assert all(group.max <= following.min for group, following in pairwise(groups))
    for run in traces.File(path).runs:
        assert run.rows < 100
        assert sum(group.min <= run.scenario <= group.max for group in groups) == 1


def test_a_run_longer_than_a_row_group_is_complete_and_in_order(tmp_path, monkeypatch):
    monkeypatch.setattr(traces, "ROWS_IN_GROUP", 7)
    sweep(range(3)).run(out=tmp_path, runner=LocalRunner(), **SILENT)
    assert_traces_are_those_of(tmp_path, range(3))


def test_a_full_spool_becomes_a_file_and_small_files_are_joined(tmp_path, monkeypatch):
    monkeypatch.setattr(traces, "CHUNK_B", 10_000)
    monkeypatch.setattr(traces, "_SMALL_B", 0)
    sweep(range(20)).run(out=tmp_path, runner=LocalRunner(), **SILENT)
    assert 3 <= len(traces.files(tmp_path)) <= 10
    assert_traces_are_those_of(tmp_path, range(20))
    monkeypatch.undo()
    assert ran(range(21), tmp_path) == [20]
    assert len(traces.files(tmp_path)) == 1
    assert_traces_are_those_of(tmp_path, range(21))


def test_a_stopped_sweep_continues_and_runs_no_point_again(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        sweep(range(6)).run(out=tmp_path, runner=Counting(4), **SILENT)
    assert_traces_are_those_of(tmp_path, range(4))
    assert ran(range(6), tmp_path) == [4, 5]
    assert ran(range(6), tmp_path) == []
    assert_traces_are_those_of(tmp_path, range(6))


def test_points_stored_without_their_traces_are_run_again(tmp_path):
    wb.Sweep(scenario(), {"seed": range(3)}, engine="reference").run(out=tmp_path, runner=LocalRunner(), **SILENT)
    assert not traces.files(tmp_path)
    assert ran(range(4), tmp_path) == [0, 1, 2, 3]
    assert len(store.read(tmp_path)) == 4
    assert_traces_are_those_of(tmp_path, range(4))


def test_failed_points_have_no_trace_and_are_run_again_on_request(tmp_path):
    is_broken = True

    def moody(run):
        if is_broken and run.scenario.seed == 1:
            raise ValueError("no")
        return {}

    moody_sweep = sweep(range(3), measure=moody)
    with pytest.warns(UserWarning, match="1 of 3 points failed"):
        moody_sweep.run(out=tmp_path, runner=LocalRunner(), **SILENT)
    assert_traces_are_those_of(tmp_path, [0, 2])
    is_broken = False
    moody_sweep.run(out=tmp_path, runner=LocalRunner(), retry=True, **SILENT)


def test_a_damaged_file_is_an_error_and_its_points_are_run_again_after_its_removal(tmp_path):
    sweep(range(3)).run(out=tmp_path, runner=LocalRunner(), **SILENT)
    (path,) = traces.files(tmp_path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(wb.DataError, match=f"{path.name} is damaged"):
        ran(range(3), tmp_path)
    path.unlink()
    assert ran(range(3), tmp_path) == [0, 1, 2]
    assert_traces_are_those_of(tmp_path, range(3))


def test_files_of_a_killed_driver_are_recovered(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        sweep(range(6)).run(out=tmp_path, runner=Counting(2), **SILENT)
    folder = tmp_path / traces.FOLDER
    (old,) = traces.files(tmp_path)
    # A spool with three traces: one is already in a file, one is complete, and one is truncated.
    spool = traces._Spool(folder / "_spool-dead")
    plan = sweep(range(6)).plan
    for seed in (1, 2, 3):
        run = scenario(seed=seed).run("reference")
        spool.add((run.scenario.hash, plan.code_of(seed)), pack(run.trace))
    spool.flush()
    spool.path.write_bytes(spool.path.read_bytes()[:-5])
    # A complete draft, which replaces the file, and an incomplete one.
    run = scenario(seed=5).run("reference")
    pieces = [*traces._find_file_sources(traces.File(old))]
    pieces.append(traces._TraceSource((run.scenario.hash, plan.code_of(5)), run.trace.to_batches))
    traces._write_draft(folder / "_new-1", pieces)
    (folder / "_new-traces-0123456789abcdef").write_bytes(b"cut o")
    assert ran(range(6), tmp_path) == [2, 3, 4, 5]  # the journal did not have their rows
    assert_traces_are_those_of(tmp_path, range(6))
    assert not old.exists()
    assert sorted(path.name[:7] for path in folder.iterdir()) == ["traces-"]


def half_joined(folder, monkeypatch):
    """Return a function that completes a join of a folder's files, and the runs; one file is already deleted."""
    monkeypatch.setattr(traces, "CHUNK_B", 10_000)
    monkeypatch.setattr(traces, "_SMALL_B", 0)
    sweep(range(20)).run(out=folder, runner=LocalRunner(), **SILENT)
    opened = [traces.File(path) for path in traces.files(folder)]
    draft = traces._write_draft(
        folder / traces.FOLDER / "_new-1", [source for file in opened for source in traces._find_file_sources(file)]
    )
    assert len(opened) > 2
    opened[0].path.unlink()
    return lambda: traces.TraceStore(folder, lambda: None)._finish_draft(draft), {
        key for file in opened for key in file.keys
    }


def keys_in(runs):
    return {(run.scenario, run.code) for runs_of_file in runs.values() for run in runs_of_file}


def test_a_reader_waits_for_all_runs_while_files_are_joined(tmp_path, monkeypatch):
    finish, keys = half_joined(tmp_path, monkeypatch)
    waits = []
    monkeypatch.setattr(traces.time, "sleep", lambda seconds: waits.append(seconds) or finish())
    assert keys_in(traces.list_runs(tmp_path)) == keys
    assert len(waits) == 1 and len(traces.files(tmp_path)) == 1


def test_a_join_that_does_not_end_is_an_error(tmp_path, monkeypatch):
    finish, keys = half_joined(tmp_path, monkeypatch)
    monkeypatch.setattr(traces, "JOIN_S", 0.0)
    with pytest.raises(wb.DataError, match="a sweep is replacing files of traces; wait for the end of the sweep"):
        wb.pipelines.traces(tmp_path)
    finish()
    assert keys_in(traces.list_runs(tmp_path)) == keys


def test_a_file_that_is_joined_while_it_is_read_does_not_count_as_damaged(tmp_path, monkeypatch):
    finish, keys = half_joined(tmp_path, monkeypatch)
    finish()
    (path,) = files = traces.files(tmp_path)
    listings = [[path.with_name("traces-0123456789abcdef.parquet")]]
    monkeypatch.setattr(traces, "files", lambda folder: listings.pop() if listings else files)
    assert keys_in(traces.list_runs(tmp_path)) == keys


@given(st.binary(max_size=200), st.integers(0, 1_000), st.integers(0, 255))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_spool_of_any_bytes_gives_the_traces_before_the_damage(tmp_path, tail, position, change):
    spool, ends = traces._Spool(tmp_path / "_spool-dead"), []
    for name in ("one", "other"):
        spool.add((name, "code"), b"packed" * 20)
        spool.flush()
        ends.append(spool.path.stat().st_size)
    damaged = bytearray(spool.path.read_bytes() + tail)
    position %= len(damaged)
    damaged[position] ^= change
    spool.path.write_bytes(damaged)
    whole = [name for name, end in zip(("one", "other"), ends, strict=True) if position >= end or not change]
    assert [piece.key for piece in traces._find_spool_sources(spool.path)] == [(name, "code") for name in whole]
    spool.end()


KILLED = """
import sys
from tests.sweeps.test_kept_traces import *
traces.CHUNK_B = 20_000
sweep(range(100_000)).run(out=sys.argv[1], runner=LocalRunner(), progress=False)
"""


def test_a_killed_driver_loses_no_confirmed_trace(tmp_path):
    driver = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], cwd=REPOSITORY)
    wait_until(lambda: len(traces.files(tmp_path)) >= 2 or driver.poll() is not None)
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    lines = [line for path in tmp_path.glob(journal.NAMES) for line in journal.lines(path)]
    confirmed = {content["scenario"] for kind, content in lines if kind == "row"}
    confirmed |= {row["scenario"] for row in (store.read(tmp_path).to_pylist() if [*tmp_path.glob("rows-*")] else [])}
    again = ran(range(len(confirmed) + 2), tmp_path)
    assert len(confirmed) > 5
    assert len(again) <= 4  # the two new points, and those in progress
    assert confirmed <= set(read_traces(tmp_path))
    assert_traces_are_those_of(tmp_path, range(max(again) + 1))


def test_traces_need_a_folder_and_a_valid_value_of_keep():
    with pytest.raises(wb.ScenarioError, match='must be a folder for the traces: run\\(out="results/name"\\)'):
        sweep(range(2)).run(**SILENT)
    with pytest.raises(
        wb.ScenarioError, match=r"`keep` is 'traces' \(did you mean trace\?\); it must be one of trace, me"
    ):
        wb.Sweep(scenario(), {"seed": [1]}, keep="traces")
