"""Hypothesis strategies of networks that change: valid items for a topology, and whole scenarios with them."""

from itertools import pairwise

import networkx as nx
from hypothesis import strategies as st

import workbench as wb
from workbench import mobility
from workbench.errors import ParameterError
from workbench.sim.changes.items import Join, Leave, Move
from workbench.sim.changes.measured import LinkQualities
from workbench.topology.edits import has_link_rule

KINDS = ("outage", "crash", "join", "leave", "partition", "move", "burst_loss", "link_trace", "jam")
# Short interruptions cut frames, retries and strobes; long ones cut routes.
LENGTHS_S = (0.0, 0.02, 0.3, 2.0, 5.0, 10.0)
CURRENTS = {"tx_mA": 17.4, "rx_mA": 18.8}
RADIOS = (
    wb.Radio(),
    wb.Radio(loss=0.1, collisions=True, jitter_ms=(0, 2)),
    wb.Radio(collisions=True, csma=True, retries=3, capture_dB=3, link_quality="learned", **CURRENTS),
    wb.Radio(collisions=True, csma=True, retries=2, wake_interval_ms=125, sleep_mA=0.02, **CURRENTS),
)


def times(duration_s):
    """Return a strategy of times in s before the end of a run: round numbers, which coincide, and any microsecond."""
    whole = st.integers(0, int(duration_s) - 1).map(float)
    return st.one_of(st.just(0.0), whole, st.integers(0, int(duration_s * 1e6) - 1).map(lambda time_us: time_us / 1e6))


@st.composite
def intervals(draw, duration_s):
    """Draw (start_s, stop_s) of an item; stop_s may be None."""
    start_s = draw(times(duration_s))
    length_s = draw(st.sampled_from([None, *LENGTHS_S]))
    return start_s, None if length_s is None else round(start_s + length_s, 6)


def some(nodes, most=4):
    """Return a strategy of some of the nodes, at least one."""
    return st.lists(st.sampled_from(nodes), min_size=1, max_size=min(most, len(nodes)), unique=True).map(sorted)


@st.composite
def items(draw, topology, duration_s, kinds=KINDS):
    """Draw a change of the network: an item of one of ``kinds``."""
    kind, nodes = draw(st.sampled_from(kinds)), sorted(topology)
    start_s, stop_s = draw(intervals(duration_s))
    at = draw(some(nodes))
    if kind in ("crash", "partition") and stop_s == start_s:
        stop_s = round(start_s + LENGTHS_S[1], 6)  # these changes take time
    if kind in ("outage", "crash", "partition"):
        return getattr(wb, kind)(at, start_s, stop_s)
    if kind in ("join", "leave"):
        return getattr(wb, kind)(at, start_s)
    if kind == "move":
        return _draw_movement(draw, topology, at, duration_s)
    if kind == "burst_loss":
        means_s = draw(st.sampled_from([(0.1, 0.1), (0.5, 2.0), (4.0, 1.0), (0.02, 0.005)]))
        at = draw(st.sampled_from(["all", at])) if len(at) > 1 else "all"
        return wb.burst_loss(*means_s, draw(st.sampled_from([0.0, 0.3, 1.0])), at, start_s, stop_s)
    if kind == "link_trace":
        return wb.link_trace(draw(link_qualities(nodes, duration_s)))
    x_m, y_m = topology.nodes[draw(st.sampled_from(nodes))]["pos"]
    pulses = draw(st.sampled_from([(None, None), (1.0, 0.2), (0.01, 0.004)]))
    return wb.jam(x_m, y_m + 1, draw(st.sampled_from([0.5, 15.0, 60.0])), start_s, stop_s, *pulses)


def _draw_movement(draw, topology, at, duration_s):
    model = draw(
        st.one_of(
            st.builds(
                mobility.RandomWaypoint, fastest_m_s=st.sampled_from([1.5, 20.0]), pause_s=st.sampled_from([0, 2])
            ),
            st.builds(mobility.GaussMarkov, mean_m_s=st.sampled_from([1.0, 10.0])),
            paths(duration_s),
        )
    )
    at = draw(st.sampled_from(["all", at]))
    radius_m = None if has_link_rule(topology) else 25.0
    return wb.move(at, model, draw(st.sampled_from([1.0, 0.5, 2.5])), radius_m)


@st.composite
def paths(draw, duration_s):
    """Draw waypoints with ascending times."""
    times_us = draw(st.lists(st.integers(0, int(duration_s * 1e6)), min_size=1, max_size=4, unique=True))
    coordinates = st.sampled_from([0.0, 12.5, 30.0, 60.0])
    return [(time_us / 1e6, draw(coordinates), draw(coordinates)) for time_us in sorted(times_us)]


@st.composite
def link_qualities(draw, nodes, duration_s):
    """Draw delivery ratios of some links over time."""
    ends = st.lists(st.sampled_from(nodes), min_size=2, max_size=2, unique=True).map(tuple)
    keys = draw(st.lists(st.tuples(times(duration_s), ends), min_size=1, max_size=6, unique=True))
    ratios = [draw(st.sampled_from([0.0, 0.5, 0.9, 1.0])) for _ in keys]
    columns = zip(*((time_s, *link, ratio) for (time_s, link), ratio in zip(keys, ratios, strict=True)), strict=True)
    return LinkQualities(*columns)


@st.composite
def changes(draw, topology, duration_s, most=4, kinds=KINDS):
    """Draw up to ``most`` changes of a network, of which at most one moves nodes. No node leaves before it joins."""
    drawn = draw(st.lists(items(topology, duration_s, kinds), min_size=1, max_size=most))
    is_move = [isinstance(item, Move) for item in drawn]
    drawn = [item for index, item in enumerate(drawn) if not is_move[index] or not any(is_move[:index])]
    return [item for item in drawn if not (isinstance(item, Join) and _leaves_before(drawn, item))]


def _leaves_before(drawn, join):
    """Return whether a node of the item ``join`` leaves before it joins."""
    earlier = (item for item in drawn if isinstance(item, Leave) and item.start_s < join.start_s)
    return any(set(item.at) & set(join.at) for item in earlier)


@st.composite
def topologies(draw, most=10):
    """Draw a network of 2 to ``most`` nodes, with a rule for its links or without."""
    count, seed = draw(st.integers(2, most)), draw(st.integers(1, 50))
    kind = draw(st.sampled_from(["disc", "random_geometric", "from_positions", "graph"]))
    try:
        if kind == "disc":
            return wb.topology.disc(count, 50, 50, 35, seed=seed)
        if kind == "random_geometric":
            return wb.topology.random_geometric(count, 60, 60, seed=seed)
    except ParameterError:  # These positions are not connected.
        kind = "from_positions"
    positions_m = {3 * node + 2: ((seed * 7 * node) % 50, (seed * 11 * node) % 37) for node in range(count)}
    if kind == "from_positions":
        return wb.topology.from_positions(positions_m, radius_m=25)
    graph = nx.DiGraph()
    graph.add_nodes_from((node, {"pos": place_m}) for node, place_m in positions_m.items())
    nodes = sorted(graph)
    for a, b in pairwise(nodes):
        graph.add_edge(a, b, pdr=draw(st.sampled_from([1.0, 0.7])))
        graph.add_edge(b, a, pdr=draw(st.sampled_from([1.0, 0.4])))
    return graph


@st.composite
def scenarios(draw, protocols, radios=RADIOS, most_nodes=10):
    """Draw a scenario whose network changes. ``protocols``: a function that returns a strategy for a list of nodes."""
    topology = draw(topologies(most_nodes))
    nodes, duration_s = sorted(topology), draw(st.sampled_from([6.0, 20.0]))
    workload = [
        wb.subscribe(
            draw(some(nodes, 2)),
            "TEMP GE 20",
            expires_s=draw(st.sampled_from([None, 4.0])),
            stop_s=draw(st.sampled_from([None, 0.75 * duration_s])),
        ),
        wb.subscribe(draw(st.sampled_from(["all", nodes[0]])), "TEMP GE 22", start_s=draw(times(duration_s))),
        wb.publish(draw(some(nodes)), "TEMP IS 25", every_s=draw(st.sampled_from([0.4, 1.0])), stagger=True),
    ]
    if draw(st.booleans()):
        workload.append(wb.publish("all", wb.SensorField(), every_s=4))
    workload += draw(changes(topology, duration_s))
    radio = draw(st.sampled_from(radios))
    return wb.Scenario(topology, draw(protocols(nodes)), workload, radio, duration_s, draw(st.integers(0, 99)))
