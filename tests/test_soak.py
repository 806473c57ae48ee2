"""Some minutes of the soak: scenarios drawn anew each time; a failure prints the seed that has it again.

What is sought, and what excuses a delivery that was missed, stands in `benchmarks/soak_detectors.py`.
"""

import random
import sys
import time

import pytest

from tests.repository import REPOSITORY
from workbench.errors import DataError

sys.path.append(str(REPOSITORY / "benchmarks"))
from soak_cases import LENGTHS, LINKS, PROTOCOLS, draw
from soak_detectors import judge
from soak_shapes import CHANGES, SHAPES, draw_shape, play_with_reboots

PATIENCE_S = 14  # for each protocol, of drawing further cases
MOST_NODES = 12
WHOLE_NETWORKS = 43  # for each protocol: 300 in all


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_hardship_costs_no_delivery_that_is_not_excused(protocol):
    """On the reference engine, for minutes: hours and the fast engine are the benchmark's."""
    first = random.SystemRandom().randrange(1 << 30)
    started, played = time.monotonic(), 0
    while time.monotonic() - started < PATIENCE_S or not played:
        try:
            case = draw(first + played, (protocol,), LINKS, ("minutes",), MOST_NODES)
        except DataError:  # no testbed is on this machine
            first += 1
            continue
        verdict = judge(case, case.scenario.run(engine="reference"))
        again = f"benchmarks/soak.py --protocol {protocol} --length minutes --nodes {MOST_NODES} {case}"
        assert not verdict._replace(missed=0).is_fault, f"{again}: {verdict}"
        # On links that lose frames one delivery in some 100,000 is missed for a cause that the trace does not name.
        assert verdict.missed <= (0 if case.is_ideal else 1), f"{again}: {verdict}"
        played += 1


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_whole_networks_on_ideal_links_miss_no_settled_reading(protocol):
    """Shapes with loops, late joiners, reboots, deaths, bursts: nothing is missed, and DPS meshes are whole in time."""
    first = random.SystemRandom().randrange(1 << 30)
    for seed in range(first, first + WHOLE_NETWORKS):
        case = draw_shape(seed, (protocol,), SHAPES, CHANGES)
        run = play_with_reboots(case) if case.reboots else case.scenario.run(engine="fast")
        verdict = judge(case, run)
        assert not verdict.is_fault, f"benchmarks/soak.py --shapes --protocol {protocol} {case}: {verdict}"


def test_a_case_is_a_function_of_its_seed():
    one, again = (draw(7, PROTOCOLS, ("ideal", "lossy"), tuple(LENGTHS)) for _ in range(2))
    assert one.scenario.hash == again.scenario.hash and str(one) == str(again)
    whole, again = (draw_shape(7, PROTOCOLS, SHAPES, CHANGES) for _ in range(2))
    assert whole.scenario.hash == again.scenario.hash and whole.reboots == again.reboots
