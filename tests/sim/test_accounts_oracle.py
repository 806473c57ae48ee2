"""Accounts of undelivered readings, compared with an oracle that walks the rows of random networks.

What the oracle checks is described in `benchmarks/why_not_oracle.py`, which plays hundreds of networks.
"""

import sys
from functools import cache

import pytest

from tests.repository import REPOSITORY
from workbench.sim.accounts import accounts

sys.path.append(str(REPOSITORY / "benchmarks"))
from why_not_facts import Facts
from why_not_networks import draw
from why_not_oracle import Check, judge

# Seeds of networks with several causes and few rows: each is played and judged in a tenth of a second.
SEEDS = {
    "Flooding": (4, 19),
    "Gossip": (24, 38),
    "Diffusion": (10, 28),
    "CodedDiffusion": (2, 26),
    "TinyMQ": (9, 40),
    "Pub2Sub": (25, 69),
    "DPS": (1, 25),
}
NETWORKS = [(protocol, seed) for protocol, seeds in SEEDS.items() for seed in seeds]


@cache
def facts_of(protocol, seed):
    return Facts(draw(seed, protocol))


@pytest.mark.parametrize(("protocol", "seed"), NETWORKS)
def test_accounts_of_random_networks_are_true(protocol, seed):
    facts = facts_of(protocol, seed)
    false, causes = judge(facts, accounts(facts.run))
    again = f"benchmarks/why_not_oracle.py --engine auto --protocol {protocol} --seed {seed}"
    assert not false, f"{again}: {false[0]}"
    assert causes.total() > causes["delivered"] and not causes["not_proven"], again


@pytest.mark.parametrize(("protocol", "seed"), NETWORKS)
def test_the_oracle_refutes_accounts_with_other_nodes_times_and_rows(protocol, seed):
    facts = facts_of(protocol, seed)
    readings = {(r.publisher, r.number, r.sink, r.subscription): r for r in facts.expected()}
    nodes = sorted(facts.scenario.topology)
    undelivered = [account for account in accounts(facts.run) if account.delivered_us is None]
    for account in undelivered[::5]:
        reading = readings[*account.reading, account.subscriber, account.subscription]
        others = [
            account._replace(rows=()),
            account._replace(time_us=reading.published.time_us - 1),
            account._replace(cause="no_base" if facts.name != "DPS" else "chance"),
        ]
        if account.cause in ("lost", "down", "dropped", "chance", "ttl", "filtered"):
            others.append(account._replace(node=nodes[nodes.index(account.node) - 1]))
            others.append(account._replace(time_us=account.time_us + 1))
        for other in others:
            assert Check(facts, reading, other)(), other


def test_the_oracle_refutes_deliveries_and_readings_that_are_not_so():
    facts = facts_of("Flooding", 19)
    right = accounts(facts.run)
    assert not judge(facts, right)[0]
    delivered = next(account for account in right if account.delivered_us is not None)
    lost = next(account for account in right if account.cause == "lost")
    for wrong in (
        [account for account in right if account != lost],
        [*right, lost._replace(reading=lost.reading._replace(number=999))],
        [*right, lost._replace(cause="delivered", delivered_us=lost.time_us)],
        [*right, delivered._replace(delivered_us=delivered.delivered_us + 1)],
    ):
        assert judge(facts, wrong)[0]
