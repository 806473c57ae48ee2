"""The mesh of processes that notebooks start: its functions, its texts, and its removal."""

import os
import signal
import subprocess
import sys

import networkx as nx
import pytest

import workbench as wb
from figures import processes
from tests.until import PATIENCE_S, wait_until
from workbench.errors import LinkError, ParameterError
from workbench.protocols.dps.processes import DPSMesh, links_of
from workbench.views.drawing import Text


def processes_of(mesh):
    return [process.process for process in mesh.nodes.values()]


@pytest.mark.family
def test_a_small_mesh_publishes_heals_and_ends():
    ring = nx.cycle_graph(4)
    with wb.dps_mesh(ring) as mesh:
        started = processes_of(mesh)
        mesh.settle()
        assert set(mesh.links()) == {(0, 1), (0, 3), (1, 2), (2, 3)}
        mesh.subscribe(2, "a/+")
        mesh.settle()
        outcome = mesh.publish(0, "a/b", "hello", within_s=PATIENCE_S)
        assert outcome.wanted == (2,) and outcome.missing == () and outcome.answers[2] > 0
        assert mesh.nodes[2].publications[0]["text"] == "hello"
        assert mesh.publish(0, "b/b", within_s=1).wanted == ()

        critical_node = mesh.find_critical_node(0)
        assert critical_node in (1, 3)
        mesh.kill(critical_node)
        assert mesh.alive == [node for node in range(4) if node != critical_node]
        mesh.settle()
        assert mesh.publish(0, "a/b", within_s=PATIENCE_S).missing == ()
        picture = [item.text for item in processes.processes_drawing(mesh, outcome).items if isinstance(item, Text)]
        assert "4 processes on this machine, 3 of them alive" in picture and "killed" in picture
        with pytest.raises(ParameterError, match=f"node {critical_node} is not alive"):
            mesh.subscribe(critical_node, "a")
        mesh.restart(critical_node)
        mesh.settle()
        assert mesh.alive == [0, 1, 2, 3]
        with pytest.raises(ParameterError, match=f"node {critical_node} is running; kill it first"):
            mesh.restart(critical_node)
        started += processes_of(mesh)
    assert mesh.alive == [] and all(process.poll() is not None for process in started)


def test_an_error_of_a_node_is_raised_here_and_the_mesh_continues():
    with wb.dps_mesh(1) as mesh:
        with pytest.raises(LinkError, match="may only be the last segment"):
            mesh.subscribe(0, "a/#/b")
        mesh.subscribe(0, "a")
        assert mesh.publish(0, "a", within_s=PATIENCE_S).missing == ()
        with pytest.raises(ParameterError, match="every live node except the publisher, node 0, has a subscription"):
            mesh.find_critical_node(0)


def test_an_error_in_the_with_block_ends_all_processes():
    started = []
    with pytest.raises(ZeroDivisionError), wb.dps_mesh(2) as mesh:
        started = processes_of(mesh)
        1 / 0
    assert len(started) == 2 and all(process.poll() is not None for process in started)


def test_nodes_end_when_their_parent_process_is_killed():
    program = (
        "import workbench as wb, time\n"
        "with wb.dps_mesh(2) as mesh:\n"
        "    print(*[one.process.pid for one in mesh.nodes.values()], flush=True)\n"
        "    time.sleep(600)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(pids) == 2
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        parent.stdout.close()
    wait_until(lambda: not any(map(is_running, pids)))


def is_running(pid):
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (OSError, ValueError):
        return False


def test_unknown_settings_are_refused_before_anything_starts():
    with pytest.raises(ParameterError):
        wb.dps_mesh(2, filter_bits=100)
    for nodes in (0, 1000):
        with pytest.raises(ParameterError, match=f"{nodes} nodes; 1 to 200 are allowed"):
            wb.dps_mesh(nodes)


@pytest.mark.parametrize("nodes, links", [(1, 0), (2, 1), (5, 5), (25, 40)])
def test_a_number_of_nodes_becomes_a_grid_of_that_size(nodes, links):
    mesh = wb.dps_mesh(nodes)
    assert sorted(mesh.graph) == list(range(nodes)) and len(mesh.pairs()) == links


def test_the_state_of_a_link_depends_on_both_ends():
    state = {
        0: {"links": {1: "active", 2: "active", 3: "muted", 4: "active"}},
        1: {"links": {0: "active"}},
        2: {"links": {0: "linking"}},
        3: {"links": {0: "active"}},
    }
    assert links_of(state) == {(0, 1): "active", (0, 2): "linking", (0, 3): "muted", (0, 4): "half open"}


def test_a_table_of_outcomes_names_missing_subscribers():
    from workbench.protocols.dps.processes import Outcome

    table = processes.outcome_table({"one": Outcome(0, "a", (1, 2), {1: 3.0}), "none": Outcome(0, "a", (), {})})
    assert table.loc["one", "missing"] == "2" and table.loc["one", "slowest_ms"] == 3.0
    assert table.loc["none", "missing"] == "none" and isinstance(wb.dps_mesh(1), DPSMesh)
