"""The fault matrix: its faults, the periods of its numbers, its verdicts, and its heat map."""

import itertools
import math
import re

import networkx as nx
import pytest

import workbench as wb
from workbench.errors import ParameterError
from workbench.sweeps.faults import measure
from workbench.sweeps.faults.cases import FAULTS, PERMANENT, find_victims

SILENT = {"runner": wb.LocalRunner(), "progress": False, "seeds": [1]}
IDEAL = wb.Radio(loss="none")


@pytest.fixture(scope="module")
def matrix():
    """Return a matrix of flooding, whose results are known: it delivers all readings for which a path exists."""
    return wb.faults.matrix([wb.Flooding()], ["none", "partition", "sink crashes", "power cut"], radio=IDEAL, **SILENT)


def test_without_a_fault_flooding_on_ideal_links_delivers_everything(matrix):
    row = matrix.cell("none", "Flooding")
    assert (row.before, row.during, row.after) == (1, 1, 1)
    assert row.recovery_s < 2.1 and row.verdict == "recovers"  # until the first reading


def test_a_partition_loses_the_readings_that_would_cross_it_while_it_lasts(matrix):
    # Two sources and a sink are on each side, so half of the readings cross.
    row = matrix.cell("partition", "Flooding")
    assert (row.before, row.after) == (1, 1) and row.during == pytest.approx(0.5, abs=0.01)


def test_a_sink_that_is_down_expects_nothing_and_gets_all_after_its_restart(matrix):
    row = matrix.cell("sink crashes", "Flooding")
    assert (row.before, row.during, row.after) == (1, 1, 1) and row.repeated == row.wrong == 0


def test_the_reasons_of_lost_readings_after_the_fault_are_sentences():
    matrix = wb.faults.matrix([wb.Flooding(ttl=2)], ["none"], radio=IDEAL, **SILENT)
    (sentence, *_) = matrix.why("none", "Flooding")
    assert re.match(r"\d+ readings, such as: Reading \d+ of node \d+, published at .* did not reach node", sentence)
    assert wb.faults.matrix([wb.Flooding()], ["none"], radio=IDEAL, **SILENT).why("none", "Flooding") == []


def test_the_heat_map_has_a_cell_for_each_fault_and_protocol(matrix):
    svg = matrix.plot().to_svg()
    assert all(f">{fault}<" in svg for fault in matrix.faults) and svg.count("Flooding, partition: before") == 3
    assert matrix._repr_mimebundle_()["text/plain"] == "FaultMatrix(4 faults, 1 protocols: 4 of 4 recover)"


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_a_valid_scenario_whose_changes_lie_in_its_period(fault):
    matrix = wb.faults.matrix([wb.Flooding()], [fault], duration_s=30, radio=IDEAL, **SILENT)
    scenario = matrix.runs.run(0).scenario
    changes = scenario.workload[2:]
    assert wb.Scenario.from_json(scenario.to_json()) == scenario
    assert changes or fault == "none"
    stops_s = [item.stop_s for item in changes if getattr(item, "stop_s", None) is not None]
    assert all(stop_s <= 18 for stop_s in stops_s)
    assert fault in PERMANENT or stops_s or fault in ("deaf relay", "sink moves", "all move")


def test_victims_leave_the_other_nodes_connected():
    graph = wb.topology.disc(40, 100, 60, radius_m=22, seed=3)
    victims = find_victims(graph, {0, 5, 18})
    assert 0 < len(victims) <= 8 and not {0, 5, 18} & set(victims)
    rest = graph.subgraph(set(graph) - set(victims))
    assert all(nx.has_path(rest, *ends) for ends in itertools.permutations((0, 5, 18), 2))


def test_measured_recovery_is_the_time_to_the_first_reading_from_which_delivery_is_steady():
    scenario = wb.Scenario(
        wb.topology.line(3),
        wb.Flooding(),
        [wb.subscribe(0, "TEMP GE 20"), wb.publish(2, "TEMP IS 25", every_s=1, start_s=0.5), wb.outage(1, 40, 71)],
        IDEAL,
        duration_s=100,
    )
    numbers = measure(scenario.run())
    assert (numbers["before"], numbers["during"]) == (1, 0)
    assert numbers["after"] == pytest.approx(29 / 40)
    # Of 32 readings from 68.5 s on, 29 arrive: 90.6 %.
    assert numbers["steady_from_end_s"] == pytest.approx(8.5)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (([wb.Flooding()], ["partitoin"]), "did you mean partition?"),
        (([],), "at least one protocol"),
        ((["flooding"],), "must be a list of protocols"),
    ],
)
def test_wrong_arguments_are_refused_with_a_sentence(arguments, part):
    with pytest.raises(ParameterError, match=re.escape(part)):
        wb.faults.matrix(*arguments, **SILENT)


def test_unknown_cells_are_refused(matrix):
    with pytest.raises(ParameterError, match="is not in this matrix"):
        matrix.cell("partition", "DPS")
    assert math.isfinite(matrix.cell("partition", "Flooding").recovery_s)
