"""Folders of results: points are stored once, columns have types, damage is detected, changed code has new results."""

import itertools
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import workbench as wb
from tests.families import family_except
from tests.repository import REPOSITORY
from tests.sweeps.made import Counting
from tests.until import wait_until
from workbench.locations import FolderLock, location
from workbench.sweeps import LocalRunner, store
from workbench.sweeps.design import Design, grid
from workbench.sweeps.plan import Plan
from workbench.sweeps.store import files, journal
from workbench.sweeps.store.columns import Columns
from workbench.sweeps.store.folder import LOCK, FolderStore

SILENT = {"runner": LocalRunner(), "progress": False}


def scenario(**changes):
    """Return a scenario with a sink at one end of a line of five nodes and a source at the other."""
    workload = [wb.subscribe(at=0, what="TEMP GE 25"), wb.publish(at=4, what="TEMP IS 26.5", every_s=2)]
    return wb.Scenario(wb.topology.line(5), wb.Flooding(), workload, duration_s=5).replace(**changes)


def frame_of(table):
    """Return the columns that do not depend on time or process; a process uses the fast engine once it is loaded."""
    return table.to_pandas().drop(columns=["wall_s", "engine"])


def ran(sweep, folder, **options):
    """Return the points that a sweep into a folder runs, and its table."""
    runner = Counting()
    table = sweep.run(out=folder, runner=runner, **options)
    return runner.ran, table


# Columns


def test_each_column_has_one_type_regardless_of_the_sweeps_in_the_folder(tmp_path):
    wb.Sweep(scenario(), {"radio.loss": [0.1, 0.2]}).run(out=tmp_path, **SILENT)
    over = {"radio.loss": ["links", 0.5], "protocol": {"slow": wb.Diffusion(), "plain": wb.Flooding()}}
    wb.Sweep(scenario(), over).run(out=tmp_path, **SILENT)
    wb.Sweep(scenario(protocol=wb.TinyMQ()), {"seed": [2**70, 3]}).run(out=tmp_path, **SILENT)
    schema = pq.read_schema(next(tmp_path.glob("*.parquet")))
    assert {path.name for path in tmp_path.glob("*.parquet") if pq.read_schema(path) != schema} == set()
    types = {name: str(schema.field(name).type) for name in schema.names}
    assert not any("." in name for name in types)
    assert (types["radio_loss"], types["radio_loss_text"], types["seed"]) == ("double", "string", "int64")
    assert (types["radio_collisions"], types["protocol_ttl"], types["protocol"]) == ("bool", "double", "string")
    assert types["wall_s"] == types["compile_s"] == types["delivery_ratio"] == "double"
    stored = pd.read_parquet(tmp_path)
    assert sorted(stored["radio_loss"].dropna()) == [0.1, 0.2, 0.5, 0.5]
    assert stored["radio_loss_text"].value_counts().to_dict() == {"links": 4}
    assert sorted(stored["protocol"].dropna()) == ["plain", "plain", "slow", "slow"]
    assert stored["seed"].isna().sum() == 1  # 2**70 does not fit into the column; the document has it


def test_unvaried_parameters_are_stored_with_their_values(tmp_path):
    wb.Sweep(scenario(), {"seed": [1, 2]}).run(out=tmp_path, **SILENT)
    row = pd.read_parquet(tmp_path).iloc[0]
    assert (row["protocol_name"], row["protocol_ttl"]) == ("Flooding", wb.Flooding().ttl)
    assert (row["radio_retries"], row["radio_loss_text"], row["duration_s"]) == (0, "links", 5)
    assert (row["workload_1_every_s"], row["workload_0_what"]) == (2, "TEMP GE 25")
    assert row["topology"] == "line(nodes=5, spacing_m=10.0)"
    assert row["versions"].startswith(f"workbench {wb.__version__}, Python 3.")


def test_metrics_of_any_name_have_columns_that_sql_accepts(tmp_path):
    def odd(run):
        return {"seed": 1.5, "a.b c": 2.5, "Seed": 3.5, "protocol_ttl": 4.5, "nothing": float("nan")}

    sweep = wb.Sweep(scenario(), {"seed": [1]}, measure=odd)
    table = sweep.run(out=tmp_path, **SILENT)
    stored = pd.read_parquet(tmp_path)
    assert len({name.lower() for name in stored.columns}) == len(stored.columns)
    assert (stored["seed_2"][0], stored["a_b_c"][0], stored["Seed_3"][0], stored["seed"][0]) == (1.5, 2.5, 3.5, 1)
    assert {stored["protocol_ttl"][0], stored["protocol_ttl_2"][0]} == {wb.Flooding().ttl, 4.5}
    pd.testing.assert_frame_equal(sweep.run(out=tmp_path, **SILENT).to_pandas(), table.to_pandas())


def test_scenarios_rebuilt_from_a_folder_have_the_same_hash_and_metrics(tmp_path):
    wb.register_key(172, "GAS", unit="ppm")
    gas = [wb.subscribe(at=0, what="GAS GE 400"), wb.publish(at=4, what="GAS IS 500", every_s=2)]
    sweeps = [
        ({"protocol": [wb.Flooding(ttl=7), wb.Gossip(), wb.Diffusion()], "radio.loss": ["links", 0.2]}, scenario()),
        ({"topology": [wb.topology.random_geometric(9, 30, 30, seed=3), wb.topology.grid(2, 3)]}, scenario()),
        ({"workload": {"gas": gas}, "radio": [wb.Radio(collisions=True, csma=True)]}, scenario()),
        ({"protocol.filters": {"mean": (wb.Filter("running_mean", window=3),)}}, scenario(protocol=wb.Diffusion())),
    ]
    for over, base in sweeps:
        wb.Sweep(base, {**over, "seed": [1, 2]}).run(out=tmp_path, **SILENT)
    stored = store.read(tmp_path)
    origins = json.loads(stored.schema.metadata[b"workbench.columns"])
    metrics = {column: name for column, (kind, name, _) in origins.items() if kind == "metric"}
    rows = stored.to_pylist()
    assert len(rows) == 20
    for row in rows:
        again = wb.Scenario.from_json(row["document"])
        assert again.hash == row["scenario"]
        expected = again.run(engine=row["engine"], record="metrics").metrics.to_dict()
        # An event that did not happen in a run is 0 in the folder, so that the mean of the column is that of its runs.
        stored_metrics = {metrics[name]: row[name] for name in metrics if row[name] is not None}
        counted = {name: value for name, value in stored_metrics.items() if name in expected or value != 0.0}
        assert counted == pytest.approx(expected, rel=0, abs=0, nan_ok=True)


def test_events_that_never_happened_in_a_run_are_0_in_the_folder_too(tmp_path):
    over = {"protocol": [wb.Flooding(), wb.Diffusion()]}
    table = wb.Sweep(scenario(), over).run(out=tmp_path, **SILENT)
    wb.Sweep(scenario(protocol=wb.TinyMQ()), {"seed": [1]}).run(out=tmp_path, **SILENT)
    stored = pd.read_parquet(tmp_path).set_index("protocol_name")
    assert stored["sent_flood"].gt(0).to_dict() == {"Flooding": True, "Diffusion": False, "TinyMQ": False}
    assert stored["sent_interest"].isna().sum() == stored["sent_flood"].isna().sum() == 0
    assert np.isnan(stored["coverage"]["Diffusion"])  # diffusion has no coverage: it is unknown, not 0
    pd.testing.assert_frame_equal(wb.Sweep(scenario(), over).run(out=tmp_path, **SILENT).to_pandas(), table.to_pandas())


def test_duckdb_reads_a_folder_without_a_schema(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    table = wb.Sweep(scenario(), {"radio.loss": [0.0, 0.5], "seed": range(4)}).run(out=tmp_path, **SILENT)
    query = f"""
        SELECT radio_loss, avg(delivery_ratio), count(*) FROM read_parquet('{tmp_path}/*.parquet')
        WHERE error IS NULL GROUP BY radio_loss ORDER BY radio_loss
    """
    rows = duckdb.sql(query).fetchall()
    assert [row[0] for row in rows] == [0.0, 0.5] and [row[2] for row in rows] == [4, 4]
    assert [row[1] for row in rows] == pytest.approx(table.summary("radio.loss")["mean"].tolist())


# Each point is stored once


def test_results_of_another_sweep_are_reused_by_their_scenario(tmp_path):
    wb.Sweep(scenario(), {"protocol.ttl": [3, 9], "seed": [1, 2]}).run(out=tmp_path, **SILENT)
    numbers, table = ran(wb.Sweep(scenario(seed=2), {"protocol.ttl": [9, 10, 3]}), tmp_path)
    assert numbers == [1]
    assert table.to_pandas()["protocol.ttl"].tolist() == [9, 10, 3]
    assert pd.read_parquet(tmp_path)["key"].is_unique


def test_results_of_another_sweep_are_compared_only_with_points_that_can_match(tmp_path, monkeypatch):
    losses = [number / 10_000 for number in range(4)]
    wb.Sweep(scenario(), {"radio.loss": losses, "seed": [7]}).run(out=tmp_path, **SILENT)
    wb.Sweep(scenario(protocol=wb.Gossip()), {"seed": [9]}).run(out=tmp_path, **SILENT)
    built = []
    whole = Plan.scenario_of
    monkeypatch.setattr(Plan, "scenario_of", lambda plan, number: built.append(number) or whole(plan, number))
    larger = wb.Sweep(scenario(seed=3), {"seed": range(5, 10), "radio.loss": [i / 10_000 for i in range(4000)]})
    built.clear()
    stored = store.FolderStore(tmp_path).open(larger.plan)
    assert sorted(stored) == [2 * 4000 + offset for offset in range(4)]
    assert built == list(range(2 * 4000, 3 * 4000))  # points with the seed of a stored row of the same code


def test_a_row_that_is_already_stored_is_dropped(tmp_path, monkeypatch):
    # As if the other sweep added its rows after this one searched for them.
    monkeypatch.setattr(store.FolderStore, "_find_candidates", lambda self, table, numbers: set())
    wb.Sweep(scenario(), {"protocol.ttl": [3, 9], "seed": [1, 2]}).run(out=tmp_path, **SILENT)
    numbers, table = ran(wb.Sweep(scenario(seed=2), {"protocol.ttl": [9, 10, 3]}), tmp_path)
    assert numbers == [0, 1, 2]
    assert len(table) == 3
    stored = pd.read_parquet(tmp_path)
    assert len(stored) == 5 and stored["key"].is_unique


def test_rows_stored_twice_are_stored_once_after_the_next_sweep(tmp_path):
    wb.Sweep(scenario(), {"seed": [1, 2, 3]}).run(out=tmp_path, **SILENT)
    (path,) = tmp_path.glob("*.parquet")
    files.write(tmp_path, pq.read_table(path).slice(1))
    assert len(pd.read_parquet(tmp_path)) == 5
    numbers, _ = ran(wb.Sweep(scenario(), {"seed": [1, 2, 3, 4]}), tmp_path)
    assert numbers == [3]
    assert sorted(pd.read_parquet(tmp_path)["seed"]) == [1, 2, 3, 4]


DRIVER = """
import os, signal, sys, time
import workbench as wb
from tests.sweeps.test_store import Counting, scenario
from workbench.sweeps.work import failed_row

class Dying(Counting):
    def run(self, plan, numbers, report_progress):
        for rows in super().run(plan, numbers, report_progress):
            yield {rows}
            if len(self.ran) == 5:
                {end}

wb.Sweep(scenario(), {{"seed": range(8)}}).run(out=sys.argv[1], runner=Dying())
"""


def driver(folder, end, rows="rows"):
    """Start a process that runs a sweep into a folder, and executes `end` after five points."""
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER.format(end=end, rows=rows), str(folder)], cwd=REPOSITORY, stdout=subprocess.PIPE
    )


def test_a_killed_driver_loses_no_row_that_it_returned(tmp_path):
    killed = driver(tmp_path, "os.kill(os.getpid(), signal.SIGKILL)")
    assert killed.wait(300) == -signal.SIGKILL
    assert list(tmp_path.glob("*.parquet")) == [] and (tmp_path / LOCK).exists()
    numbers, table = ran(wb.Sweep(scenario(), {"seed": range(8)}), tmp_path)
    assert numbers == [5, 6, 7]  # the journal had the other rows
    pd.testing.assert_frame_equal(frame_of(table), frame_of(wb.Sweep(scenario(), {"seed": range(8)}).run(**SILENT)))
    assert sorted(pd.read_parquet(tmp_path)["seed"]) == list(range(8))
    assert {path.suffix for path in tmp_path.iterdir()} == {".parquet", ".json"}
    assert not (tmp_path / LOCK).exists()


def test_drafts_of_dead_processes_of_this_host_are_removed_by_the_next_sweep(tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    host = socket.gethostname()
    obsolete = tmp_path / f".about.json.{host}.{gone.pid}.draft"
    other_drafts = [f".about.json.{host}.{os.getpid()}.draft", f".about.json.x-{host}.{gone.pid}.draft", ".mine.draft"]
    for path in (obsolete, *(tmp_path / name for name in other_drafts)):
        path.write_bytes(b"cut o")
    ran(wb.Sweep(scenario(), {"seed": range(2)}), tmp_path)
    assert sorted(path.name for path in tmp_path.glob(".*")) == sorted(other_drafts)


def test_a_failed_point_of_a_killed_driver_is_run_again_on_request(tmp_path):
    rows = "[failed_row(plan, row.number, 'it fell') if row.number == 3 else row for row in rows]"
    assert driver(tmp_path, "os.kill(os.getpid(), signal.SIGKILL)", rows).wait(300) == -signal.SIGKILL
    runner = Counting()
    table = wb.Sweep(scenario(), {"seed": range(8)}).run(out=tmp_path, runner=runner, retry=True, progress=False)
    assert sorted(runner.ran) == [3, 5, 6, 7]
    assert [row.error for row in table.rows] == [None] * 8
    stored = pd.read_parquet(tmp_path)
    assert sorted(stored["seed"]) == list(range(8)) and stored["error"].isna().all()


@pytest.mark.parametrize("retry", [False, True])
def test_rows_that_another_sweep_stores_before_the_lock_are_not_computed_again(tmp_path, monkeypatch, retry):
    begin = FolderStore.begin

    def begin_late(self, rows):
        monkeypatch.setattr(FolderStore, "begin", begin)
        ran(wb.Sweep(scenario(), {"seed": range(6)}), tmp_path)
        return begin(self, rows)

    ran(wb.Sweep(scenario(), {"seed": range(2)}), tmp_path)
    monkeypatch.setattr(FolderStore, "begin", begin_late)
    numbers, table = ran(wb.Sweep(scenario(), {"seed": range(8)}), tmp_path, retry=retry)
    assert sorted(numbers) == [6, 7] and len(table.rows) == 8


def test_a_second_driver_is_refused_while_the_first_one_lives(tmp_path):
    first = driver(tmp_path, "print('here', flush=True); time.sleep(600)")
    try:
        assert first.stdout.readline() == b"here\n"
        with pytest.raises(wb.DataError, match=rf"is in use: process {first.pid} on .* runs a sweep into it"):
            wb.Sweep(scenario(), {"seed": range(8)}).run(out=tmp_path, **SILENT)
    finally:
        first.kill()
        first.communicate()
    numbers, _ = ran(wb.Sweep(scenario(), {"seed": range(8)}), tmp_path)
    assert numbers == [5, 6, 7]
    assert pd.read_parquet(tmp_path)["key"].is_unique


def test_a_driver_that_lost_the_folder_writes_no_more_and_reports_the_stored_points(memory_url):
    """Only a lock of an object store can be lost: the system keeps the lock of a folder."""

    class Slow:
        """A runner during which another driver takes the folder over."""

        def run(self, plan, numbers, report_progress):
            for count, rows in enumerate(LocalRunner().run(plan, numbers, report_progress)):
                if count == 2:
                    taken.write_bytes(b'{"owner": "another"}')
                    wait_until(lambda: "lock" not in [thread.name for thread in threading.enumerate()], 10)
                yield rows

    taken = location(memory_url) / LOCK
    sweep = wb.Sweep(scenario(), {"seed": range(5)})
    with pytest.raises(wb.DataError, match="this process has lost its lock") as error:
        sweep.run(out=memory_url, runner=Slow(), progress=False)
    (note,) = error.value.__notes__
    assert note.startswith(
        f"sweep stopped after 2 of 5 points, and its store in {memory_url} could not be closed; run it again"
    )
    assert taken.exists()
    taken.unlink()
    assert ran(sweep, memory_url)[0] == [2, 3, 4]


def test_a_folder_that_cannot_be_closed_is_a_note_of_the_error_that_ended_the_sweep(tmp_path, monkeypatch):
    def full(folder, table, instead_of=()):
        raise wb.DataError(f"{folder} cannot be written: No space left on device")

    sweep = wb.Sweep(scenario(), {"seed": range(5)})
    with monkeypatch.context() as later:
        later.setattr(files, "write", full)
        with pytest.raises(wb.WorkbenchError, match="the cluster is gone") as error:
            sweep.run(out=tmp_path, runner=Counting(3, wb.WorkbenchError("the cluster is gone")), progress=False)
    assert "could not be closed (" in error.value.__notes__[0] and "No space left" in error.value.__notes__[0]
    assert not (tmp_path / LOCK).exists()
    assert ran(sweep, tmp_path)[0] == [3, 4]  # the journal has the other rows


def test_an_interrupt_before_the_first_point_leaves_no_lock(tmp_path, monkeypatch):
    def interrupted(plan, count):
        raise KeyboardInterrupt

    monkeypatch.setattr("workbench.sweeps.sweep.default_runner", interrupted)
    with pytest.raises(KeyboardInterrupt):
        wb.Sweep(scenario(), {"seed": range(5)}).run(out=tmp_path, progress=False)
    assert not (tmp_path / LOCK).exists()


def test_a_sweep_without_points_to_run_needs_no_lock(tmp_path):
    sweep = wb.Sweep(scenario(), {"seed": [1, 2]})
    sweep.run(out=tmp_path, **SILENT)
    other_lock = FolderLock(tmp_path, LOCK, "runs a sweep into it")
    assert ran(sweep, tmp_path)[0] == []
    other_lock.release()


def test_a_driver_killed_while_it_writes_duplicates_and_loses_no_rows(tmp_path, monkeypatch):
    """The driver is killed at each step of writing files in turn; the next sweep has all rows, each once."""
    reference = wb.Sweep(scenario(), {"protocol.ttl": [2, 9], "seed": range(3)}).run(**SILENT)
    steps = itertools.count()

    class Killed(BaseException):
        pass

    def dies_at(step, method):
        def run(path, *arguments, **options):
            if path.parent.name.startswith("at-") and next(steps) >= step:
                raise Killed
            return method(path, *arguments, **options)

        return run

    for step in range(40):
        folder = tmp_path / f"at-{step}"
        wb.Sweep(scenario(), {"protocol.ttl": [2]}).run(out=folder, **SILENT)
        wb.Sweep(scenario(), {"protocol.ttl": [2, 9], "seed": [1]}, measure=lambda run: {"one": 1.0}).run(
            out=folder, **SILENT
        )
        steps = itertools.count()
        with monkeypatch.context() as patch:
            for name in ("replace", "unlink"):
                patch.setattr(Path, name, dies_at(step, getattr(Path, name)))
            sweep = wb.Sweep(scenario(), {"protocol.ttl": [2, 9], "seed": range(3)})
            try:
                sweep.run(out=folder, **SILENT)
                done = True
            except Killed:
                done = False
        keys = [key for path in folder.glob("*.parquet") for key in pq.read_table(path)["key"].to_pylist()]
        assert len(keys) == len(set(keys))
        again = wb.Sweep(scenario(), {"protocol.ttl": [2, 9], "seed": range(3)}).run(out=folder, **SILENT)
        pd.testing.assert_frame_equal(frame_of(again), frame_of(reference))
        stored = store.read(folder)
        assert len(stored) == len(set(stored.column("key").to_pylist())) == 8
        if done:
            assert step > 5
            return
    pytest.fail("there are more steps than expected")


# Damage


def test_a_folder_of_an_older_layout_is_refused_with_a_sentence(tmp_path):
    old = pa.table({"point": ["0123456789abcdef"], "seed": [1], "delivery_ratio": [1.0]})
    pq.write_table(old.replace_schema_metadata({"workbench.metrics": '["delivery_ratio"]'}), tmp_path / "0123.parquet")
    with pytest.raises(
        wb.DataError, match=r"0123.parquet has results in an older layout, which does not record the code"
    ):
        wb.Sweep(scenario(), {"seed": [1]}).run(out=tmp_path, **SILENT)


def test_a_folder_of_a_newer_layout_is_refused_with_a_sentence(tmp_path):
    new = pa.table({"point": ["0123456789abcdef"]}).replace_schema_metadata({"workbench.layout": "17"})
    path = files.write(tmp_path, new)
    with pytest.raises(wb.DataError, match=rf"{path.name} has results in layout 17; this version uses layout 2"):
        wb.Sweep(scenario(), {"seed": [1]}).run(out=tmp_path, **SILENT)


def test_a_folder_that_is_empty_or_missing_has_no_results(tmp_path):
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(wb.DataError, match="contains no results of a sweep"):
            store.read(folder)


def test_small_files_of_many_sweeps_become_one(tmp_path):
    for seed in range(4):
        wb.Sweep(scenario(), {"seed": [seed]}).run(out=tmp_path, **SILENT)
    assert len(list(tmp_path.glob("*.parquet"))) == 1
    assert sorted(store.read(tmp_path).column("seed").to_pylist()) == [0, 1, 2, 3]


def test_rows_are_in_a_file_within_seconds(tmp_path, monkeypatch):
    monkeypatch.setattr(store.folder, "FLUSH_S", 0.0)

    class Looking:
        def run(self, plan, numbers, report_progress):
            for count, rows in enumerate(LocalRunner().run(plan, numbers, report_progress)):
                assert sum(pq.read_metadata(path).num_rows for path in tmp_path.glob("*.parquet")) == count
                yield rows

    wb.Sweep(scenario(), {"seed": range(3)}).run(out=tmp_path, runner=Looking(), progress=False)


def _leave_a_journal(folder):
    """Create the files that a killed driver leaves: a journal with a row of a file, and a lock in a folder."""
    path = max(folder.glob("*.parquet"))
    columns = Columns()
    columns.merge(files.File(path).origins, "here")
    table = files.File(path).table()
    rows = [{name: value for name, value in row.items() if value is not None} for row in table.to_pylist()]
    journal_ = journal.Journal(folder, "left")
    journal_.add([["columns", columns.origins()], *(["row", row] for row in rows[:1])])
    files.write(folder, table.slice(1), [path])
    if isinstance(folder, Path):  # a URL's lock would have to expire before each run
        (folder / LOCK).write_text(json.dumps({"host": "elsewhere", "pid": 1}))


FLIPS = [("tmp_path", 100), ("tmp_path", 600), ("memory_url", 300), ("s3_url", 100)]


@pytest.mark.parametrize(("place", "flips"), family_except(FLIPS, ("tmp_path", 100)))
def test_a_flipped_bit_gives_the_same_numbers_or_an_error(request, monkeypatch, place, flips):
    monkeypatch.setattr(os, "fsync", lambda file: None)  # no power failure is simulated here
    whole = location(request.getfixturevalue(place)) / "whole"
    wb.Sweep(scenario(), {"protocol.ttl": [2, 9], "seed": range(4)}).run(out=whole, **SILENT)
    _leave_a_journal(whole)
    sweep = wb.Sweep(scenario(), {"protocol.ttl": [2, 9], "seed": range(5)})
    rows = {row.number: [row] for rows in LocalRunner().run(sweep.plan, range(10), None) for row in rows}
    expected = frame_of(sweep.run(**SILENT))

    class Replaying:
        def run(self, plan, numbers, report_progress):
            return (rows[number] for number in numbers)

    content = {path.name: path.read_bytes() for path in whole.iterdir()}
    places = [(name, bit) for name, text in sorted(content.items()) for bit in range(8 * len(text))]
    errors = 0
    for name, bit in random.Random(7).sample(places, flips):
        damaged = bytearray(content[name])
        damaged[bit // 8] ^= 1 << bit % 8
        (whole / name).write_bytes(damaged)
        try:
            rows_read = frame_of(sweep.run(out=whole, runner=Replaying(), progress=False))
        except wb.DataError as error:
            assert "\n" not in str(error) and name in str(error)
            (whole / name).write_bytes(content[name])
            errors += 1
        else:
            assert rows_read.equals(expected)
            _restore(whole, content)
    assert 0.6 * flips < errors < flips


def _restore(folder, content):
    for path in folder.iterdir():
        if path.name not in content:
            path.unlink()
    for name, text in content.items():
        (folder / name).write_bytes(text)


def test_a_point_that_cannot_be_built_is_stored_with_its_reason(tmp_path):
    over = {"workload": {"here": scenario().workload, "nowhere": [wb.publish(at=77, what="TEMP IS 1")]}, "seed": [1]}
    design = grid(over)
    sweep = wb.Sweep(scenario(), _Unprobed(design))
    with pytest.warns(UserWarning, match="1 of 2 points failed; the first failure is workload=nowhere, seed=1: .*77"):
        table = sweep.run(out=tmp_path, **SILENT)
    with pytest.warns(UserWarning, match="1 of 2 points failed"):
        numbers, again = ran(sweep, tmp_path)
    assert numbers == []
    pd.testing.assert_frame_equal(frame_of(again), frame_of(table))
    stored = pd.read_parquet(tmp_path).set_index("workload")
    assert stored["document"]["nowhere"] == "" and "77" in stored["error"]["nowhere"]
    assert stored["transmissions"].isna().to_dict() == {"here": False, "nowhere": True}


class _Unprobed(Design):
    """A design of which only the first point is checked before the sweep."""

    def __init__(self, design):
        self.design, self.paths = design, design.paths
        self.overrides, self.labels = design.overrides, design.labels

    def __len__(self):
        return len(self.design)

    def probes(self):
        return [0]
