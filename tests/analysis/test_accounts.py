"""Accounts of expected readings: the cause, the node, and the rows that prove it."""

import networkx as nx
import pytest

import workbench as wb
from workbench.analysis.accounts import CAUSES, accounts, missing
from workbench.analysis.explain import sentence

IDEAL = wb.Radio(loss="none")
LINE = wb.topology.line(5)
SUBSCRIPTION, PUBLICATION = wb.subscribe(0, "TEMP GE 1"), wb.publish(4, "TEMP IS 5", start_s=15)


def played(protocol, *workload, graph=LINE, radio=IDEAL, duration_s=30, seed=1):
    scenario = wb.Scenario(
        graph, protocol, workload or (SUBSCRIPTION, PUBLICATION), radio, duration_s=duration_s, seed=seed
    )
    return scenario.run(engine="reference")


def only(run):
    (account,) = accounts(run)
    return account


def proof(run, account):
    return [run.trace.slice(row, 1).to_pylist()[0] for row in account.rows]


def weak(*arcs, graph=LINE):
    """Return a network in which these arcs lose every frame."""
    graph = graph.copy()
    for arc in arcs:
        graph.edges[arc]["pdr"] = 0.000001
    return graph


def link(node, neighbor):
    return (node, neighbor), (neighbor, node)


PROTOCOLS = ("Flooding", "Gossip", "CodedDiffusion", "Diffusion", "TinyMQ", "Pub2Sub", "DPS")


@pytest.mark.parametrize("name", PROTOCOLS)
def test_accounts_agree_with_the_metrics(name):
    workload = (
        wb.subscribe([0, 2], "TEMP GE 3"),
        wb.publish([3, 4], "TEMP IS 5", start_s=3, every_s=3),
        wb.outage(1, 12, 20),
    )
    run = played(getattr(wb, name)(), *workload, radio=wb.Radio(loss=0.2))
    all_accounts = accounts(run)
    assert len(all_accounts) == run.metrics["expected"] > sum(account.cause == "delivered" for account in all_accounts)
    assert sum(account.delivered_us is not None for account in all_accounts) == run.metrics["delivered"]
    events = run.trace["event"].to_pylist()
    for account in all_accounts:
        assert account.cause in CAUSES and account.cause != "not_proven"
        assert list(account.rows) == sorted(set(account.rows)) != []
        assert (account.cause == "delivered") == (account.delivered_us is not None)
        if account.cause == "delivered":
            assert [events[row] for row in account.rows] == ["delivered"]
    assert missing(run, most=2) == sorted(missing(run), key=lambda account: account.published_us)[-2:]


@pytest.mark.parametrize("name", ["Flooding", "Diffusion", "TinyMQ", "Pub2Sub", "DPS", "CodedDiffusion"])
def test_the_last_holder_and_the_neighbor_that_was_down_are_named(name):
    run = played(getattr(wb, name)(), SUBSCRIPTION, PUBLICATION, wb.outage(2, 14.99))
    account = only(run)
    assert (account.cause, account.node, account.neighbor) == ("down", 3, 2)
    (row,) = proof(run, account)
    assert (row["event"], row["node"], row["peer"], row["detail"]) == ("lost", 2, 3, "down")
    assert "node 3 had it last; it was sent to node 2 at " in sentence(run.scenario, account)


@pytest.mark.parametrize("name", ["Flooding", "CodedDiffusion"])
def test_a_frame_that_a_link_lost_is_named(name):
    run = played(getattr(wb, name)(), graph=weak((2, 1)), radio=wb.Radio(loss="links"))
    account = only(run)
    assert (account.cause, account.node, account.neighbor, account.detail) == ("lost", 2, 1, "link")
    assert sentence(run.scenario, account).endswith(" s, and the link lost it.")


def test_a_reading_is_explained_at_the_node_where_it_came_nearest():
    graph = weak((1, 0), (3, 0), (4, 3), graph=wb.topology.grid(3, 3))
    workload = wb.subscribe(0, "TEMP GE 1"), wb.publish(8, "TEMP IS 5", start_s=15)
    account = only(played(wb.Flooding(), *workload, graph=graph, radio=wb.Radio(loss="links")))
    assert account.cause == "lost" and account.node in (1, 3) and account.neighbor == 0


def test_gossip_that_ends_by_chance_is_explained_by_its_probability():
    workload = wb.subscribe("all", "TEMP GE 1"), wb.publish(0, "TEMP IS 5", start_s=5)
    run = played(wb.Gossip(forwarding_probability=0.3), *workload, graph=wb.topology.grid(3, 4), seed=2)
    undelivered = missing(run)
    assert undelivered and {account.cause for account in undelivered} == {"chance"}
    (line,) = run.explain().sentences
    assert "probability of 0.3 (forwarding_probability)" in line


def test_a_reading_of_which_only_some_pieces_arrived_is_incomplete():
    workload = wb.subscribe(0, "TEMP GE 1"), wb.publish(2, "TEMP IS 5", start_s=5, every_s=1)
    run = played(wb.Gossip(pieces=3, forwarding_probability=0.6), *workload, graph=wb.topology.line(3))
    incomplete = [account for account in missing(run) if account.cause == "incomplete"]
    assert incomplete and {account.node for account in incomplete} == {0}
    assert {proof(run, account)[0]["event"] for account in incomplete} == {"received"}


def test_a_flood_that_ends_at_its_ttl_is_named():
    account = only(played(wb.Flooding(ttl=3)))
    assert (account.cause, account.node) == ("ttl", 1)


def test_outages_that_separate_the_network_in_time_are_named():
    workload = SUBSCRIPTION, wb.publish(4, "TEMP IS 5", start_s=15), wb.outage(2, 0, 10), wb.outage(2, 14)
    run = played(wb.Diffusion(refresh_s=0), *workload)
    account = only(run)
    assert (account.cause, account.node, account.neighbor) == ("disconnected", 3, 2)
    assert "failed" in {row["event"] for row in proof(run, account)}


def test_a_subscriber_that_joins_behind_a_cut_is_unknown_to_the_source():
    run = played(wb.Diffusion(sample_lifetime_s=5.0), SUBSCRIPTION, PUBLICATION, wb.outage(2, 0, 25))
    account = only(run)
    assert account.cause == "disconnected"


def test_an_evicted_interest_is_named_with_the_size_of_the_cache():
    workload = [wb.subscribe(at=0, what="TEMP GE 1", start_s=1)]
    workload += [wb.subscribe(at=1, what=f"HUMIDITY GE {bound}", start_s=3 + bound) for bound in (1, 2)]
    run = played(wb.Diffusion(max_interests=2, refresh_s=0), *workload, wb.publish(4, "TEMP IS 5", start_s=15))
    account = only(run)
    assert account.cause == "evicted"
    assert {"evicted"} <= {row["detail"] for row in proof(run, account)}
    assert "has room for 2 interests (max_interests)" in sentence(run.scenario, account)


@pytest.mark.parametrize("code", ["suppress_unchanged"])
def test_a_filter_that_dropped_a_reading_is_named(code):
    filters = (wb.Filter(code, key=200, at=[3]),)
    run = played(wb.Diffusion(filters=filters), SUBSCRIPTION, wb.publish(4, "TEMP IS 5", start_s=15, every_s=5))
    undelivered = missing(run)
    assert undelivered and {(account.cause, account.node) for account in undelivered} == {("filtered", 3)}


def test_a_source_that_no_interest_has_reached_is_named():
    run = played(wb.Diffusion(ttl=3), radio=IDEAL)
    account = only(run)
    assert (account.cause, account.node) == ("not_asked", 4)
    assert "no interest of node 0 that matches it had reached node 4" in sentence(run.scenario, account)


def test_a_saturated_channel_is_named():
    workload = wb.subscribe(0, "TEMP GE 1"), wb.publish([1, 2, 3, 4], "TEMP IS 5", start_s=5, every_s=0.05)
    run = played(
        wb.Flooding(), *workload, radio=wb.Radio(loss="none", csma=True, collisions=True, bit_rate_bps=10_000),
        duration_s=8,
    )  # fmt: skip
    undelivered = missing(run)
    assert "saturated" in {account.cause for account in undelivered}
    assert {account.cause for account in undelivered} <= {"saturated", "run_ended", "lost"}


def test_nodes_below_a_deaf_root_have_no_position_in_the_overlay():
    graph = weak(*((node, 2) for node in (1, 3)), *((2, node) for node in (1, 3)))
    run = played(wb.TinyMQ(roots=(2,)), wb.subscribe(0, "TEMP GE 1"), wb.publish(1, "TEMP IS 5", start_s=15),
                 graph=graph, radio=wb.Radio(loss="links"))  # fmt: skip
    account = only(run)
    assert (account.cause, account.node) == ("no_place", 1)


def test_an_event_that_meets_no_query_is_not_matched():
    account = only(played(wb.TinyMQ(), wb.subscribe(4, "TEMP GE 1"), wb.publish(0, "TEMP IS 5")))
    assert (account.cause, account.node) == ("not_matched", 0)


def test_an_inactive_link_of_dps_is_named():
    account = only(played(wb.DPS(), SUBSCRIPTION, wb.publish(4, "TEMP IS 5")))
    assert (account.cause, account.node, account.neighbor, account.detail) == ("no_link", 4, 3, "never")


def test_a_protocol_without_an_account_module_has_accounts_too(monkeypatch):
    monkeypatch.setattr(wb.Diffusion, "explain", "")
    account = only(played(wb.Diffusion(), SUBSCRIPTION, PUBLICATION, wb.outage(2, 14.99)))
    assert (account.cause, account.node, account.neighbor) == ("down", 3, 2)


def test_a_run_without_a_trace_has_no_accounts():
    run = wb.Scenario(LINE, wb.Flooding(), (SUBSCRIPTION, PUBLICATION), IDEAL, duration_s=30).run(record="metrics")
    with pytest.raises(wb.ScenarioError, match="has no trace"):
        accounts(run)


def test_disconnected_nodes_expect_no_readings():
    graph = nx.DiGraph()
    graph.add_node(0, pos=(0.0, 0.0))
    graph.add_node(4, pos=(1.0, 0.0))
    assert accounts(played(wb.Flooding(), graph=graph)) == []
