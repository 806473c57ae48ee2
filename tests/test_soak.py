"""The soak: a few networks of all kinds that never change, and random families that are new in each session.

`benchmarks/soak_detectors.py` defines the faults, and the changes that excuse a missed delivery.
"""

import contextlib
import itertools
import sys

import pytest

from tests.repository import REPOSITORY
from workbench.errors import DataError

sys.path.append(str(REPOSITORY / "benchmarks"))
from soak_cases import LENGTHS, LINKS, PROTOCOLS, draw
from soak_detectors import judge
from soak_shapes import CHANGES, SHAPES, draw_shape

MOST_NODES = 12
HARDSHIPS = 20  # for each protocol
WHOLE_NETWORKS = 25  # for each protocol: 175 in all
FIRST_SEED = 1  # of the networks that never change, which are small where their shape permits
SMALL, SHORT = 20, 150  # nodes, entries of the workload: a burst of 500 takes TinyMQ's nodes seconds
SIMULATED_LINKS = tuple(kind for kind in LINKS if kind != "measured")


def check_hardship(seed, protocol, links, drawn_with=""):
    """Play a case of minutes on the reference engine; a failure prints the arguments that play it again."""
    case = draw(seed, (protocol,), links, ("minutes",), MOST_NODES)
    verdict = judge(case, case.scenario.run(engine="reference"))
    again = f"benchmarks/soak.py --protocol {protocol} {drawn_with}--length minutes --nodes {MOST_NODES} {case}"
    assert not verdict._replace(missed=0).is_fault, f"{again}: {verdict}"
    # On links that lose frames one delivery in some 100,000 is missed for a cause that the trace does not name.
    assert verdict.missed <= (0 if case.is_ideal else 1), f"{again}: {verdict}"


def check_whole_network(case, drawn_with=""):
    """Play a whole network; a failure prints the arguments that play it again."""
    verdict = judge(case, case.scenario.run(engine="fast"))
    assert not verdict.is_fault, f"benchmarks/soak.py --shapes --protocol {case.protocol} {drawn_with}{case}: {verdict}"


def small_network(protocol, shape, change):
    """Return the first case with few nodes and readings; a line has 60 nodes."""
    for seed in itertools.count(FIRST_SEED):
        case = draw_shape(seed, (protocol,), (shape,), (change,))
        if (len(case.scenario.topology) <= SMALL or shape == "line") and len(case.scenario.workload) <= SHORT:
            return case


@pytest.mark.parametrize(("protocol", "links"), list(zip(PROTOCOLS, itertools.cycle(SIMULATED_LINKS), strict=False)))
def test_hardship_costs_no_delivery_that_is_not_excused(protocol, links):
    check_hardship(FIRST_SEED, protocol, (links,), f"--links {links} ")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_whole_networks_on_ideal_links_miss_no_settled_reading(protocol):
    """Each shape is there, and each change: none, late joiners, outages, reboots without memory, deaths."""
    changes = itertools.cycle((CHANGES[-1], *CHANGES[:-1]))
    for shape, change in zip(SHAPES, changes, strict=False):
        check_whole_network(small_network(protocol, shape, change), f"--shape {shape} --change {change} ")


@pytest.mark.family
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_random_hardship_costs_no_delivery_that_is_not_excused(protocol, family_seed):
    """On the reference engine, for minutes: hours and the fast engine are the benchmark's."""
    for seed in range(family_seed, family_seed + HARDSHIPS):
        with contextlib.suppress(DataError):  # no testbed is on this machine
            check_hardship(seed, protocol, LINKS)


@pytest.mark.family
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_random_whole_networks_on_ideal_links_miss_no_settled_reading(protocol, family_seed):
    """Shapes with loops, late joiners, reboots, deaths, bursts: nothing is missed, and DPS meshes are whole in time."""
    for seed in range(family_seed, family_seed + WHOLE_NETWORKS):
        check_whole_network(draw_shape(seed, (protocol,), SHAPES, CHANGES))


def test_a_case_is_a_function_of_its_seed():
    first, again = (draw(7, PROTOCOLS, ("ideal", "lossy"), tuple(LENGTHS)) for _ in range(2))
    assert first.scenario.hash == again.scenario.hash and str(first) == str(again)
    whole, again = (draw_shape(7, PROTOCOLS, SHAPES, CHANGES) for _ in range(2))
    assert whole.scenario.hash == again.scenario.hash and str(whole) == str(again)
