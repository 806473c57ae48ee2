"""TinyMQ's published algorithms 3.1 and 3.2: their next hops at a node, and their losses in a network."""

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.families import examples
from tests.protocols.tinymq.checks import graphs_with_roots
from workbench.attributes.text import parse
from workbench.errors import ParameterError
from workbench.protocols.contract import NOBODY
from workbench.protocols.tinymq import TinyMQ, as_published
from workbench.protocols.tinymq.overlay import Neighbor, Position
from workbench.protocols.tinymq.wire import InfoPosition

MAPPING = TinyMQ(dimensions=("TEMP 0 16",), key_bits=4).mapping


class Positions:
    """An overlay of which a node knows the positions of its neighbors: {address: (tree, parent, key)}."""

    def __init__(self, **positions):
        self.neighbors = {}
        for name, (tree, parent, key) in positions.items():
            neighbor = self.neighbors[int(name[1:])] = Neighbor()
            neighbor.positions = {tree: InfoPosition(tree, 1, parent, key)}


def position_of(key, parent, **children):
    position = Position(0, parent, 1, key, 0)
    position.children = {int(name[1:]): slot for name, slot in children.items()}
    return position


#        0 ""            node 2 has the key 01: its universe is 4 to 7
#       /    \           its children have 011 (6, 7) and 0101 (5), so its zone is 4
#    1 "1"   2 "01"
#            /    \
#       3 "011"   4 "0101"
NODE_2 = position_of("01", 0, n3=0, n4=1)
AROUND_2 = Positions(n0=(0, NOBODY, ""), n1=(0, 0, "1"), n3=(0, 2, "011"), n4=(0, 2, "0101"), n8=(1, 9, "0011"))


def query_hops(text, overlay=AROUND_2, position=NODE_2):
    return as_published.query_hops(overlay, position, MAPPING.query_box(parse(text)), MAPPING)


@pytest.mark.parametrize(
    ("text", "hops"),
    [
        ("TEMP GE 4, TEMP LE 4.5", [NOBODY, 3, 4]),  # all children get it, although it concerns none of them
        ("TEMP GE 6, TEMP LE 7", [3, 4]),
        ("TEMP GE 4, TEMP LE 7", [NOBODY, 3, 4]),
        ("TEMP GE 8, TEMP LE 9", [1]),  # the shortcut: node 1 has the longest prefix
        ("TEMP GE 4, TEMP LE 9", [1]),  # nothing is stored here or sent down: the branch `else`
        ("TEMP GE 2, TEMP LE 3", [8]),  # the longest common prefix is in another tree
    ],
)
def test_published_query_takes_the_hops_of_algorithm_3_1(text, hops):
    assert query_hops(text) == hops


@pytest.mark.parametrize(
    ("string", "hop"), [(0b0100, NOBODY), (0b0101, 4), (0b0110, 3), (0b0111, 3), (0b1000, 1), (0b0000, 8), (0b0011, 8)]
)
def test_published_event_takes_the_hop_of_algorithm_3_2(string, hop):
    assert as_published.event_hop(AROUND_2, NODE_2, string, MAPPING) == hop


def test_of_equally_long_prefixes_the_parent_wins_and_then_the_lowest_address():
    overlay = Positions(n0=(0, NOBODY, ""), n7=(0, 0, "11"), n5=(0, 0, "101"), n9=(0, 0, "111"))
    position = position_of("01", 0)
    assert as_published.event_hop(overlay, position, 0b1100, MAPPING) == 7
    assert as_published.event_hop(overlay, position, 0b1000, MAPPING) == 5
    assert as_published.event_hop(overlay, position, 0b0011, MAPPING) == 0


def test_two_nodes_that_consider_each_other_nearer_send_an_event_in_a_loop():
    # 010 and 0111 are neighbors, and the event is for 00; both share one bit more with it than their parent, the root.
    first_position, second_position = position_of("010", 0), position_of("0111", 0)
    first = Positions(n0=(0, NOBODY, ""), n2=(0, 0, "0111"))
    second = Positions(n0=(0, NOBODY, ""), n1=(0, 0, "010"))
    assert as_published.event_hop(first, first_position, 0b0000, MAPPING) == 2
    assert as_published.event_hop(second, second_position, 0b0000, MAPPING) == 1


def scenario(graph, roots, seed=1, **options):
    protocol = TinyMQ(roots=roots, dimensions=("TEMP 0 50",), retries=0, info_s=0.0, refresh_s=0.0, **options)
    nodes = sorted(graph)
    workload = [
        wb.subscribe(at=nodes[i * 7 % len(nodes)], what=f"TEMP GE {i * 8}, TEMP LE {i * 8 + 12}", start_s=3)
        for i in range(5)
    ]
    workload += [
        wb.publish(at=nodes[i * 11 % len(nodes)], what=f"TEMP IS {i * 7 % 50}", start_s=6 + i * 0.1) for i in range(20)
    ]
    return wb.Scenario(graph, protocol, workload, duration_s=10, seed=seed)


@given(graph_and_roots=graphs_with_roots(), seed=st.integers(0, 99))
@settings(max_examples=examples(40))
def test_published_algorithms_deliver_nothing_wrong_and_end(graph_and_roots, seed):
    graph, roots = graph_and_roots
    metrics = scenario(graph, roots, seed, literal=True).run(engine="reference").metrics
    assert metrics["wrong_deliveries"] == metrics["duplicate_deliveries"] == 0
    assert metrics["delivered"] <= metrics["expected"]
    assert metrics.get("dropped_ttl", 0) == 0


def test_published_algorithms_lose_and_loop_messages_unlike_the_corrected_ones():
    graph = wb.topology.disc(80, 110, 50, radius_m=20, seed=2)
    printed = scenario(graph, (0, 40), literal=True).run(engine="reference").metrics
    corrected = scenario(graph, (0, 40)).run(engine="reference").metrics
    assert printed["expected"] == corrected["expected"] > 20
    assert corrected["delivery_ratio"] == 1.0
    assert printed["delivery_ratio"] < 0.95
    assert printed["dropped_loop"] > 0 and "dropped_loop" not in corrected


def test_one_protocol_has_two_names_and_one_text_form():
    printed = wb.PrintedTinyMQ(roots=(0, 5))
    assert printed == TinyMQ(literal=True, roots=(0, 5)) == pickle.loads(pickle.dumps(printed))
    assert repr(printed) == "TinyMQ(roots=(0, 5), literal=True)"
    literal, named = (
        wb.Scenario(wb.topology.line(6), protocol, [], duration_s=1)
        for protocol in (printed, TinyMQ(roots=(0, 5), literal=True))
    )
    assert literal == named and literal.hash == named.hash and literal.to_json() == named.to_json()
    assert wb.Scenario.from_json(literal.to_json()) == literal
    assert '"name": "TinyMQ"' in literal.to_json()


def test_literal_can_be_replaced_like_any_setting():
    printed = wb.Scenario(wb.topology.line(6), wb.PrintedTinyMQ(), [], duration_s=1)
    corrected = printed.replace(**{"protocol.literal": False})
    assert type(corrected.protocol) is TinyMQ
    assert corrected.replace(**{"protocol.literal": True}) == printed
    assert [variant.replace(**{"protocol.roots": (0, 5)}).protocol.literal for variant in (printed, corrected)] == [
        True,
        False,
    ]


class Mine(TinyMQ):
    """A custom protocol with the routing of TinyMQ."""


@pytest.mark.parametrize(("cls", "literal"), [(wb.PrintedTinyMQ, False), (Mine, True)])
def test_protocol_with_fixed_routing_does_not_accept_the_other_setting_of_literal(cls, literal):
    with pytest.raises(ParameterError, match=rf"literal is {literal}.*write TinyMQ\(literal={literal}\)"):
        cls(literal=literal)
