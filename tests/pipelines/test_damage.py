"""Flipped bits in Parquet files of traces: a question answers with the same numbers, or with one sentence."""

import os
import random
import shutil
from collections import Counter

import pytest

import workbench as wb
from workbench.errors import DataError
from workbench.pipelines import load_per_node, traces
from workbench.pipelines.ask import ask
from workbench.records.record import write_trace
from workbench.sweeps import LocalRunner
from workbench.sweeps.store import damage

FLIPS = 250  # for each of two kinds of files
COUNTS = "SELECT node, event, count(*) AS rows, sum(size_B) AS size_B, sum(time_us) AS at FROM {trace} GROUP BY ALL"
KINDS = ("sweep", "run")


def scenario():
    workload = [wb.subscribe(0, "TEMP GE 20"), wb.publish([5, 8], "TEMP IS 26", every_s=1, start_s=1)]
    return wb.Scenario(wb.topology.grid(3, 3), wb.Diffusion(), workload, wb.Radio(loss=0.1), duration_s=10, seed=5)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """{kind: a file of traces that is not damaged}."""
    folder = tmp_path_factory.mktemp("whole")
    sweep = wb.Sweep(scenario(), {"seed": [1, 2]}, engine="reference", keep="trace")
    sweep.run(out=folder / "sweep", runner=LocalRunner(), progress=False)
    (path,) = (folder / "sweep" / "_traces").glob("traces-*.parquet")
    write_trace(scenario().run("reference"), folder / "trace.parquet")
    return {"sweep": path, "run": folder / "trace.parquet"}


def numbers(path):
    """All numbers of two questions, as text."""
    found = ask(COUNTS, trace=path).sort_values(["node", "event"]).to_csv(index=False)
    return found + load_per_node(traces(path.parent)).to_csv(index=False) if path.name.startswith("traces-") else found


def outcomes(path, folder, flips):
    """What came of single flipped bits all over a file: how often the same numbers, a sentence, others, or an error."""
    content, drawn, found = path.read_bytes(), random.Random(7), Counter()
    expected = numbers(path)
    for flip in range(flips):
        place = drawn.randrange(len(content))
        changed = bytearray(content)
        changed[place] ^= 1 << drawn.randrange(8)
        damaged = folder / str(flip) / path.name
        damaged.parent.mkdir(parents=True)
        damaged.write_bytes(changed)
        try:
            found["same" if numbers(damaged) == expected else "silent"] += 1
        except DataError as error:
            found["sentence" if "\n" not in str(error) and str(damaged) in str(error) else "raw"] += 1
        except Exception:
            found["raw"] += 1
        shutil.rmtree(damaged.parent)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_no_flipped_bit_changes_a_number_silently_or_raises_an_error_of_a_library(whole, tmp_path, kind):
    found = outcomes(whole[kind], tmp_path, FLIPS)
    assert found["silent"] == found["raw"] == 0 and found.total() == FLIPS, found
    assert found["sentence"] > FLIPS * 0.9 if kind == "sweep" else found["sentence"] > FLIPS * 0.3, found


@pytest.mark.parametrize("kind", KINDS)
def test_without_the_look_at_the_checksums_bits_would_change_numbers(whole, tmp_path, kind, monkeypatch):
    """The test above could not fail if DuckDB found such damage itself."""
    monkeypatch.setattr(damage, "check", lambda path: None)
    monkeypatch.setattr(damage, "trace_in", lambda path: None)
    assert outcomes(whole[kind], tmp_path, 30)["silent"] > 0


def test_one_run_of_a_damaged_folder_gets_one_sentence(whole, tmp_path):
    path = tmp_path / "_traces" / whole["sweep"].name
    path.parent.mkdir()
    content = bytearray(whole["sweep"].read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    run = scenario().replace(seed=1).hash
    with pytest.raises(DataError, match=r"is damaged: its content is not what was written"):
        traces(tmp_path, only=[run])


def test_a_file_that_has_passed_twice_is_not_looked_at_until_it_changes(whole, tmp_path, monkeypatch):
    path = tmp_path / whole["sweep"].name
    shutil.copy(whole["sweep"], path)
    looks = []
    real = damage.checksum_of
    monkeypatch.setattr(damage, "SETTLED_S", 0.0)
    monkeypatch.setattr(damage, "checksum_of", lambda one: looks.append(one) or real(one))
    for _ in range(4):
        damage.check(path)
    assert len(looks) == 2
    os.utime(path, (1e9, 2e9))
    damage.check(path)
    assert len(looks) == 3


def test_an_error_in_a_query_stays_as_it_is(whole):
    import duckdb

    with pytest.raises(duckdb.BinderException, match="no_such_column"):
        ask("SELECT no_such_column FROM {trace}", trace=whole["run"])
