"""Connectivity of meshes: networks with loops, late neighbors, nodes that die, and C nodes among ours.

A network is whole when active links join all nodes that are up. `benchmarks/dps_whole.py` plays hundreds of them."""

import sys

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from tests.both_engines import assert_same_trace
from tests.protocols.dps.mixed import mixed
from tests.repository import REPOSITORY
from workbench.draws import Stream
from workbench.protocols.dps import rules
from workbench.protocols.dps.automaton import ACTIVE
from workbench.protocols.dps.fast import mesh_ids as fast_ids
from workbench.protocols.dps.mesh_ids import MeshIds, add_mark, mesh_id_number
from workbench.protocols.dps.remotes import NO_MESH_ID, Remote, owner_of

sys.path.append(str(REPOSITORY / "benchmarks"))
import dps_whole

SLOWEST_S = 60.0  # two link_loss_s


def assert_whole(scenario):
    outcome = dps_whole.play(scenario)
    assert outcome.whole_s is not None and outcome.whole_s <= SLOWEST_S, outcome
    assert outcome.missed == 0, outcome


# With these seeds a dead id circulated in a loop, and muted links between the parts compared it for ever.
@pytest.mark.parametrize("seed", [73, 177, 233, 257])
def test_a_network_with_loops_does_not_stay_in_two_parts(seed):
    assert_whole(dps_whole.loops(seed))


@pytest.mark.parametrize("seed", [177, *range(1, 15)])
def test_networks_of_all_shapes_are_whole(seed):
    assert_whole(dps_whole.shapes(seed))


# With these seeds two ends gave each other up alternately, for ever or for minutes.
@pytest.mark.parametrize("seed", [9, 11, 21, 54, 87, 122, 199])
def test_a_tree_is_whole_after_its_last_node_has_come_up(seed):
    assert_whole(dps_whole.late(seed))


@pytest.mark.parametrize("seed", [20, 62, 76, 181])
def test_a_network_is_whole_after_its_last_node_has_come_up(seed):
    assert_whole(dps_whole.joiners(seed))


# With these seeds a node without links waited until a neighbor in a dense neighborhood reached it in its rotation.
@pytest.mark.parametrize("seed", [53, 123, 228])
def test_a_network_is_whole_after_deaths(seed):
    assert_whole(dps_whole.deaths(seed))


@pytest.mark.parametrize(
    "scenario", [dps_whole.late(11), dps_whole.off(3).replace(duration_s=200.0)], ids=["late", "off"]
)
def test_both_engines_play_the_same_trace_of_networks_that_change(scenario):
    assert_same_trace(scenario)


def test_without_a_mesh_the_measure_finds_parts():
    arcs = nx.DiGraph()
    arcs.add_edge(0, 1, pdr=1.0)
    arcs.add_edge(1, 0, pdr=1.0)
    alone = wb.Scenario(arcs, wb.DPS(worst_link=1.0), [wb.outage(1, start_s=0)], wb.Radio(loss="none"), 5)
    assert dps_whole.play(alone).whole_s == 0.0
    assert dps_whole.play(alone.replace(workload=[], radio=wb.Radio(loss=0.5))).whole_s is None


# C nodes among ours


def in_part(graph, share, seed):
    plain = np.random.default_rng(seed).permutation(len(graph))[: round(share * len(graph))].tolist()
    workload = [wb.subscribe(at=0, what="TEMP GE 1", start_s=1)]
    return dps_whole.play(
        wb.Scenario(graph, mixed(plain), workload, wb.Radio(loss="none"), 120, seed), engine="reference"
    )


# With these seeds a loop of C nodes keeps two versions of an id of ours if C nodes get its hop count.
@pytest.mark.parametrize("seed", [6, 19, 28, 36])
def test_a_mesh_of_our_nodes_and_c_nodes_is_whole(seed):
    graph = dps_whole.loops(seed).topology
    outcome = in_part(graph, 0.5, seed)
    assert outcome.whole_s is not None and outcome.whole_s <= SLOWEST_S


def test_c_nodes_get_ids_without_hops_and_our_nodes_with_hops():
    sent_ids = {}
    for sender in (1, 3):
        nodes = _line_of_four(plain=(2,))
        sent_ids[sender] = {peer: remote.sent_mesh_id for peer, remote in nodes[sender].links.remotes.items()}
    ids = [nodes[node].links.mesh_ids.own for node in range(4)]
    assert rules.hops_of(min(ids)) == 0
    for sender, neighbors in sent_ids.items():
        for peer, mesh_id in neighbors.items():
            if peer == 2:
                assert mesh_id == owner_of(mesh_id)
            elif owner_of(mesh_id) not in ids[sender : sender + 1]:
                assert rules.hops_of(mesh_id) > 0


def _line_of_four(plain):
    protocol, nodes = mixed(plain), {}
    make_node = type(protocol).make_node

    def noted(self, address, random):
        nodes[address] = make_node(self, address, random)
        return nodes[address]

    type(protocol).make_node = noted
    wb.Scenario(wb.topology.line(4), protocol, [], wb.Radio(loss="none"), 10).run(engine="reference")
    return nodes


# The rules of mesh ids, of nodes and of the twin

words = st.integers(0, (1 << 128) - 1)
ids = st.one_of(
    words, words.map(add_mark), st.builds(lambda word, hops: add_mark(word) | hops, words, st.integers(0, 255))
)


def remote_with(mesh_id, rises=0):
    remote = Remote(1, True, 0)
    remote.state, remote.inbound_mesh_id, remote.rises = ACTIVE, mesh_id, rises
    return remote


@given(ids, st.integers(0, rules.MOST_RISES))
def test_an_id_gains_a_hop_at_each_node_and_keeps_its_owner(mesh_id, rises):
    local_id = remote_with(mesh_id, rises).effective_mesh_id()
    if rules.is_circulating(rises) or (rules.hop_to_add(mesh_id) < 0):
        assert local_id == NO_MESH_ID
    else:
        assert owner_of(local_id) == owner_of(mesh_id)
        assert local_id - mesh_id == (1 if mesh_id >> 8 & 0xFFFF == rules.MARK >> 8 else 0)


@given(ids, ids)
def test_an_id_below_all_others_has_the_mark_and_no_hops(own, received_id):
    random = Stream(own & 0xFFFF)
    known = MeshIds({})
    known.own = add_mark(own)
    known.note_seen(received_id)
    known.choose_lower_id(random)
    assert add_mark(known.own) == known.own
    low = min(add_mark(own), received_id)
    assert known.own < low or low >> 24 <= 1 << 64


@given(ids, ids, st.integers(0, rules.MOST_RISES))
def test_the_twin_has_the_same_rules_of_mesh_ids(mesh_id, before, rises):
    remote = remote_with(before, rises)
    row = np.zeros(1, [(name, np.uint64) for name in ("mesh_high", "mesh_low")] + [("rises", np.int16)]).view(
        np.recarray
    )[0]
    row.mesh_high, row.mesh_low, row.rises = *_words(before), rises
    assert _number(*fast_ids.mesh_id_here(row)) in (remote.effective_mesh_id(), NO_MESH_ID - 1)
    remote.note_mesh_id(mesh_id)
    fast_ids.note_mesh_id(row, *_words(mesh_id))
    assert (_number(row.mesh_high, row.mesh_low), row.rises) == (remote.inbound_mesh_id, remote.rises)
    same = fast_ids.is_same_owner(*_words(mesh_id), *_words(before))
    assert same == (owner_of(mesh_id) == owner_of(before))


def _words(mesh_id):
    return np.uint64(mesh_id >> 64), np.uint64(mesh_id & ((1 << 64) - 1))


def _number(high, low):
    return int(high) << 64 | int(low)


def test_the_text_form_of_an_id_shows_its_encoded_bytes():
    mesh_id = add_mark(mesh_id_number(bytes(range(16))))
    assert mesh_id.to_bytes(16, "little")[:3] == b"\0WB"
    assert mesh_id.to_bytes(16, "little")[15] == 0
