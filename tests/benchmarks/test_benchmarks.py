"""The benchmarks compare like with like: every contender plays the same flood to the same number of receptions."""

import sys
from importlib import import_module

import pytest

from tests.repository import REPOSITORY
from workbench import topology

sys.path.append(str(REPOSITORY / "benchmarks"))
import measure_diffusion
import measure_flood
import run
from contender import Contender, without_preparation
from flood_workbench import REFERENCE, REFERENCE_TRACE
from native import Absent, run_command, write_network
from networks import Network
from tables import ratio, table
from timing import Timed, interleaved

GRID = Network("small grid", topology.grid(4, 5), 10.0)
DISC = Network("small disc", topology.disc(30, 60, 40, radius_m=20), 20.0)
# ns-3's programs take long to build; `make bench` runs them, and checks the same.
QUICK_PEERS = [peer for peer in measure_flood.PEERS if peer[0] != "flood_ns3_graph"]


@pytest.mark.parametrize("network", [GRID, DISC], ids=lambda network: network.name)
@pytest.mark.parametrize("module, name", QUICK_PEERS)
def test_every_peer_comes_to_a_reception_per_arc_and_flood(module, name, network):
    peer = getattr(pytest.importorskip(module, exc_type=ImportError), name)
    if reason := peer.absent():
        pytest.skip(reason)
    assert peer.prepare(network, 5)() == 5 * network.arcs


@pytest.mark.parametrize("ours", [REFERENCE, REFERENCE_TRACE], ids=lambda contender: contender.name)
def test_the_workbench_comes_to_a_reception_per_arc_and_flood(ours):
    assert ours.prepare(DISC, 5)() == 5 * DISC.arcs


def test_plain_c_publishes_while_earlier_floods_still_spread():
    plain_c = import_module("flood_plain_c").PLAIN_C
    if reason := plain_c.absent():
        pytest.skip(reason)
    line = Network("a line", topology.grid(1, 700), 10.0)  # a flood takes some 2.5 s to cross it
    assert plain_c.prepare(line, 4)() == 4 * line.arcs


def test_a_contender_that_does_other_work_is_an_error():
    lazy = Contender("lazy", "none", "none", without_preparation(lambda network, floods: 1), 100)
    with pytest.raises(AssertionError, match="lazy: 1 receptions"):
        measure_flood.measure(GRID, [lazy], repetitions=1)


@pytest.mark.family
def test_the_last_column_says_how_many_times_as_fast_the_first_row_is():
    everything = [
        Contender(name, "", "", without_preparation(lambda network, floods, s=s: Timed(floods * network.arcs, s)), 100)
        for name, s in (("ours", 0.5), ("slow", 10.0), ("fast", 0.25))
    ]
    rows = measure_flood.measure(GRID, everything, repetitions=2)
    assert [row[-1] for row in rows] == ["1", "20", "0.5"]
    assert [row[0] for row in rows] == ["ours", "slow", "fast"]
    assert all("100.0%" in row for row in rows)


def test_a_peer_that_is_not_there_is_skipped_with_a_line(monkeypatch):
    monkeypatch.setattr(measure_flood, "PEERS", (("no_such_peer", "NONE"),))
    here = REFERENCE._replace(name="here")
    gone = REFERENCE._replace(name="gone", absent=lambda: "gcc is missing")
    contenders, lines = measure_flood._find_available((here, gone), measure_flood.PEERS)
    assert [contender.name for contender in contenders] == ["here"]
    assert lines[0].startswith("no_such_peer is skipped: no_such_peer is missing")
    assert lines[1] == "gone is skipped: gcc is missing"


def test_a_slow_contender_plays_fewer_floods_and_nobody_none():
    floods = [REFERENCE._replace(receptions=receptions).floods(GRID) for receptions in (1, 100 * GRID.arcs)]
    assert floods == [3, 100]
    assert REFERENCE._replace(receptions=1).floods(GRID, quick=True) == 1


@pytest.mark.family
def test_jobs_are_interleaved_and_one_that_has_taken_long_sits_out():
    order = []

    def job(name, seconds):
        return lambda: order.append(name) or Timed(7, seconds)

    results = interleaved({"quick": job("quick", 1.0), "slow": job("slow", 30.0)}, 3, patience_s=20)
    assert order == ["quick", "slow", "quick", "quick"]
    assert (results["quick"].runs, results["slow"].runs) == (3, 1)
    assert results["slow"].seconds == 30


def test_runs_that_differ_are_an_error():
    counts = iter((1, 2))
    with pytest.raises(AssertionError, match="another number"):
        interleaved({"fickle": lambda: next(counts)}, 2)


def test_a_network_is_the_same_as_lists_as_arrays_and_as_text():
    lines = write_network(DISC).read_text().splitlines()
    assert lines[0] == "30 20.0"
    for node, neighbors in enumerate(DISC.neighbors):
        words = lines[1 + node].split()
        assert (float(words[0]), float(words[1])) == tuple(DISC.graph.nodes[node]["pos"])
        assert [int(word) for word in words[2:]] == [len(neighbors), *neighbors]
        assert list(DISC.targets[DISC.starts[node] : DISC.starts[node + 1]]) == neighbors


def test_a_program_that_fails_says_why():
    with pytest.raises(Absent, match="python.* failed: .*no reason"):
        run_command(sys.executable, "-c", "raise SystemExit('no reason')")


@pytest.mark.family
def test_diffusion_has_a_row_for_each_engine_and_says_who_is_skipped():
    rows, skipped = measure_diffusion.measure_engines(GRID, sinks=2, sources=4, repetitions=1)
    assert len(rows) + len(skipped) == len(measure_diffusion.ENGINES)
    assert [row[3] for row in rows][-1] == "reference"
    assert measure_diffusion.engines_table(rows).count("\n") == 1 + len(rows)


def test_an_unknown_part_and_a_part_of_the_results_are_refused(monkeypatch, capsys):
    for arguments, sentence in ((["hash"], "unknown part 'hash'"), (["--write", "flood"], "--write takes no parts")):
        monkeypatch.setattr(sys, "argv", ["run.py", *arguments])
        with pytest.raises(SystemExit):
            run.main()
        assert sentence in capsys.readouterr().err


def test_table_lines_up():
    text = table(["network", "x"], [["grid", "1.5"], ["a longer name", "10"]])
    assert text.splitlines() == [
        "| network       |   x |",
        "|---------------|----:|",
        "| grid          | 1.5 |",
        "| a longer name |  10 |",
    ]


def test_ratios_have_the_digits_that_mean_something():
    assert [ratio(value) for value in (1234.5, 97.66, 1, 0.5, 0.0071)] == ["1,234", "97.7", "1", "0.5", "0.007"]
