"""Accounts of undelivered readings, compared with an oracle that walks the rows of random networks.

What the oracle checks is described in `benchmarks/why_not_oracle.py`, which plays hundreds of networks.
"""

import sys

import pytest

from tests.repository import REPOSITORY
from workbench.sim.accounts import accounts

sys.path.append(str(REPOSITORY / "benchmarks"))
from why_not_facts import Facts
from why_not_networks import PROTOCOLS, draw
from why_not_oracle import Check, judge

NETWORKS = 2  # of each protocol
MOST_EXPECTED = 60  # a larger network takes more than a tenth of a second


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_accounts_of_random_networks_are_true(protocol):
    seed = played = 0
    while played < NETWORKS:
        facts = Facts(draw(seed, protocol))
        expected = facts.expected()
        if 0 < len(expected) <= MOST_EXPECTED and any(reading.delivered_us is None for reading in expected):
            false, causes = judge(facts, accounts(facts.run))
            again = f"benchmarks/why_not_oracle.py --engine auto --protocol {protocol} --seed {seed}"
            assert not false, f"{again}: {false[0]}"
            assert not causes["not_proven"], again
            played += 1
        seed += 1
