"""Flipped bits in Parquet files of traces: a query gives the same numbers, or one sentence."""

import os
import shutil

import duckdb
import pytest

from tests.pipelines import flipped
from workbench.errors import DataError
from workbench.pipelines import damage, traces
from workbench.pipelines.queries import run_query

FLIPS = 40  # for each of two kinds of files; benchmarks/trace_damage.py tries more
KINDS = ("sweep", "run")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return {kind: path} of undamaged files of traces."""
    return flipped.write(tmp_path_factory.mktemp("whole"))


@pytest.mark.parametrize("kind", KINDS)
def test_no_flipped_bit_changes_a_number_silently_or_raises_an_error_of_a_library(whole, tmp_path, kind):
    counts = flipped.outcomes(whole[kind], tmp_path, FLIPS)
    assert counts["silent"] == counts["raw"] == 0 and counts.total() == FLIPS, counts
    assert counts["sentence"] > FLIPS * (0.9 if kind == "sweep" else 0.3), counts


@pytest.mark.parametrize("kind", KINDS)
def test_without_checksums_flipped_bits_would_change_numbers(whole, tmp_path, kind, monkeypatch):
    """Otherwise the test above could not fail: DuckDB would find the damage by itself."""
    monkeypatch.setattr(damage, "check", lambda path: None)
    monkeypatch.setattr(damage, "trace_in", lambda path: None)
    assert flipped.outcomes(whole[kind], tmp_path, 30)["silent"] > 0


def test_one_run_of_a_damaged_folder_is_refused_in_one_sentence(whole, tmp_path):
    path = tmp_path / "_traces" / whole["sweep"].name
    path.parent.mkdir()
    content = bytearray(whole["sweep"].read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    run = flipped.scenario().replace(seed=1).hash
    with pytest.raises(DataError, match=r"is damaged: its content does not match"):
        traces(tmp_path, only=[run])


def test_a_checked_file_is_read_again_only_if_it_changed(whole, tmp_path, monkeypatch):
    path = tmp_path / whole["sweep"].name
    shutil.copy(whole["sweep"], path)
    reads = []
    real = damage.checksum_of
    monkeypatch.setattr(damage, "checksum_of", lambda path: reads.append(path) or real(path))
    for changed_s in (1e9, 1.1e9):
        os.utime(path, (1e9, changed_s))
        for _ in range(3):
            damage.check(path)
    assert len(reads) == 2


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("SELECT no_such_column FROM {trace}", duckdb.BinderException),
        ("SELECT regexp_matches(event, '(') FROM {trace}", duckdb.InvalidInputException),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_an_error_in_a_query_is_raised_unchanged(whole, kind, query, error):
    with pytest.raises(error):
        run_query(query, trace=whole[kind])
