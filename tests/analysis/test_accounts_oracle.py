"""Accounts of undelivered readings, compared with an oracle that walks the rows of random networks.

`benchmarks/why_not_oracle.py` describes the oracle's checks and plays hundreds of networks."""

import sys
from functools import cache

import pytest

from tests.repository import REPOSITORY
from workbench.analysis.accounts import accounts
from workbench.analysis.evidence import Evidence
from workbench.protocols.tinymq import explain
from workbench.protocols.tinymq.explain.copies import CopyRows

sys.path.append(str(REPOSITORY / "benchmarks"))
from why_not_facts import Facts, Life
from why_not_networks import draw
from why_not_oracle import Check, judge

# Seeds of networks with several causes and few rows: each takes a tenth of a second to play and to check.
SEEDS = {
    "Flooding": (4, 19),
    "Gossip": (24, 38),
    "Diffusion": (10, 28),
    "CodedDiffusion": (2, 26),
    "TinyMQ": (5, 40),
    "Pub2Sub": (25, 69),
    "DPS": (1, 25),
}
# Networks in which copies of a reading were confused, or an end was taken for the last although others followed.
MENDED = [
    ("TinyMQ", 95),  # a frame is given up after the claimed end; an event is repeated after its notification was made
    ("TinyMQ", 613),  # the last notification received is that of another subscriber
    ("TinyMQ", 718),  # it reached another rendezvous node after it was lost before the first
    ("TinyMQ", 746),  # the notifications of two subscribers end at the same node for the same reason
    ("Pub2Sub", 187),  # the same without acknowledgements
    ("Diffusion", 177),  # a frame that fails is sent to another neighbor; a later frame to the first one serves others
    ("Diffusion", 247),  # the subscriber lost one copy while another was in flight
    ("DPS", 202),  # sent to a node without useful links of its own
]
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


@pytest.mark.parametrize(("protocol", "seed"), MENDED)
def test_accounts_do_not_contradict_later_rows(protocol, seed):
    facts = facts_of(protocol, seed)
    false, causes = judge(facts, accounts(facts.run))
    assert not false, false[0]
    undelivered = causes.total() - causes["delivered"]
    assert causes["not_proven"] < 0.6 * undelivered


@pytest.mark.parametrize(("protocol", "seed"), [("TinyMQ", 96), ("TinyMQ", 746), ("Pub2Sub", 187)])
def test_the_copies_of_notifications_agree_with_their_frames(protocol, seed):
    facts = facts_of(protocol, seed)
    readings = {(reading.publisher, reading.number): reading for reading in facts.find_expected()}
    evidence = Evidence(facts.scenario, facts.run.trace, explain.CARRIERS, explain.HARMLESS)
    evidence.follow(readings.keys())
    clear, shared = 0, 0
    for (publisher, number), reading in readings.items():
        detail = reading.published.detail
        rows = evidence.trail(publisher, number).rows
        copies = CopyRows(
            evidence, rows, lambda row, detail=detail: sorted(explain.matching_sinks(evidence, row, detail))
        )
        for hop in Life(facts, reading).hops:
            if hop.copy.name == "notification":
                for row in (hop.sent, *hop.received, *hop.lost):
                    assert hop.copy.key in copies.copies_by_row[row.index]
                    clear += len(copies.copies_by_row[row.index]) == 1
                    shared += len(copies.copies_by_row[row.index]) > 1
    assert clear > shared


@pytest.mark.parametrize(("protocol", "seed"), NETWORKS)
def test_the_oracle_refutes_accounts_with_wrong_nodes_times_and_rows(protocol, seed):
    facts = facts_of(protocol, seed)
    readings = {(r.publisher, r.number, r.sink, r.subscription): r for r in facts.find_expected()}
    nodes = sorted(facts.scenario.topology)
    undelivered = [account for account in accounts(facts.run) if account.delivered_us is None]
    for account in undelivered[::5]:
        reading = readings[*account.reading, account.subscriber, account.subscription]
        wrong_accounts = [
            account._replace(rows=()),
            account._replace(time_us=reading.published.time_us - 1),
            account._replace(cause="no_base" if facts.name != "DPS" else "chance"),
        ]
        if account.cause in ("lost", "down", "dropped", "chance", "ttl", "filtered"):
            wrong_accounts.append(account._replace(node=nodes[nodes.index(account.node) - 1]))
            wrong_accounts.append(account._replace(time_us=account.time_us + 1))
        for wrong_account in wrong_accounts:
            assert Check(facts, reading, wrong_account)(), wrong_account


def test_the_oracle_refutes_wrong_deliveries_and_readings():
    facts = facts_of("Flooding", 19)
    right = accounts(facts.run)
    assert not judge(facts, right)[0]
    delivered = next(account for account in right if account.delivered_us is not None)
    lost_account = next(account for account in right if account.cause == "lost")
    for wrong in (
        [account for account in right if account != lost_account],
        [*right, lost_account._replace(reading=lost_account.reading._replace(number=999))],
        [*right, lost_account._replace(cause="delivered", delivered_us=lost_account.time_us)],
        [*right, delivered._replace(delivered_us=delivered.delivered_us + 1)],
    ):
        assert judge(facts, wrong)[0]
