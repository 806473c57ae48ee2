"""The estimation of link qualities from numbers of broadcasts and from acknowledgements, alone and in a network."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from tests.talker import Talker, both_ways, play, rows, say
from workbench.errors import ParameterError, ScenarioError
from workbench.protocols.link_estimator import NUMBERS, WEIGHT, WINDOW, LinkEstimator


def hear(estimator, *numbers):
    """Return the last new ratios after broadcasts of neighbor 7 with these numbers, or None."""
    news = [estimator.heard(7, number) for number in numbers]
    return next((ratios for ratios in reversed(news) if ratios is not None), None)


def test_new_neighbor_is_reported_as_good_and_then_by_its_first_window():
    estimator = LinkEstimator()
    assert estimator.heard(7, 100) == (1.0, 1.0) and estimator.ratios(7) is None
    assert hear(estimator, *range(102, 102 + 2 * WINDOW, 2)) == (0.5, 0.5)


def test_later_windows_are_weighted():
    estimator = LinkEstimator()
    hear(estimator, *range(WINDOW + 1))
    assert hear(estimator, 2 * WINDOW)[0] == pytest.approx(1 - WEIGHT * (1 - 1 / WINDOW))


def test_numbers_begin_again_after_the_largest():
    estimator = LinkEstimator()
    first = NUMBERS - WINDOW // 2
    assert hear(estimator, *(number % NUMBERS for number in range(first, first + WINDOW + 1))) == (1.0, 1.0)


def test_restart_of_a_neighbor_does_not_count_as_loss():
    estimator = LinkEstimator()
    hear(estimator, 5000)
    assert hear(estimator, *range(1, WINDOW + 2)) == (1.0, 1.0)


def test_outbound_ratio_is_that_of_acknowledgements_without_their_own_losses():
    estimator = LinkEstimator()
    hear(estimator, 0, *range(2, 2 * WINDOW + 2, 2))
    outcomes = [estimator.sent(7, sent % 10 < 2) for sent in range(WINDOW)]
    assert outcomes[-1] == (0.5, pytest.approx(0.4)) and outcomes[:-1] == [None] * (WINDOW - 1)


def test_neighbors_beyond_the_limit_are_ignored():
    estimator = LinkEstimator(max_neighbors=2)
    assert [estimator.heard(neighbor, 0) is None for neighbor in (1, 2, 3)] == [False, False, True]
    assert estimator.sent(3, True) is None and estimator.ratios(3) is None


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, NUMBERS - 1) | st.booleans()), max_size=200), st.integers(0, 3)
)
def test_ratios_are_shares_whatever_is_heard(events, limit):
    estimator = LinkEstimator(limit)
    for neighbor, event in events:
        ratios = estimator.sent(neighbor, event) if isinstance(event, bool) else estimator.heard(neighbor, event)
        assert ratios is None or all(0 <= ratio <= 1 for ratio in ratios)


# In a network


def test_nodes_learn_the_ratios_of_their_links_in_both_directions():
    arcs = both_ways((0, 1, 0.9), (1, 2, 0.6))
    items = [say(node, every_s=2, start_s=1, stagger=True) for node in (0, 1, 2)]
    items += [say(1, to=0, every_s=2, start_s=1.7)]
    run = play(arcs, items, duration_s=1500, link_quality="learned")
    latest = {
        (row["node"], row["peer"]): (row["value"] / 1000, float(row["detail"])) for row in rows(run, message="quality")
    }
    for (node, peer), ratios in latest.items():
        assert ratios == pytest.approx((arcs.edges[node, peer]["pdr"],) * 2, abs=0.2), (node, peer)
    assert set(latest) == set(arcs.edges)


def test_beacons_are_frames_whose_intervals_double():
    run = play(both_ways((0, 1)), [], duration_s=300, link_quality="learned")
    times_s = [row["time_us"] / 1e6 for row in rows(run, "sent", node=0)]
    assert {row["message"] for row in rows(run, "sent")} == {"beacon"}
    assert [row["event"] for row in rows(run, node=1, peer=0) if row["message"] == "beacon"] == ["received"] * len(
        times_s
    )
    gaps_s = [later - earlier for earlier, later in zip([0, *times_s], times_s, strict=False)]
    for number, gap_s in enumerate(gaps_s):
        interval_s = min(2**number, 64)
        assert interval_s / 2 <= gap_s <= interval_s + 0.1


def test_failed_node_sends_no_beacon():
    run = play(both_ways((0, 1)), [wb.outage(0, 0, 100)], duration_s=90, link_quality="learned")
    assert not rows(run, "sent", node=0) and rows(run, "sent", node=1)


def test_protocol_that_ignores_link_qualities_sends_no_beacons():
    radio = wb.Radio(link_quality="learned")
    run = wb.Scenario(wb.topology.line(3), wb.Flooding(), [wb.publish(0, "TEMP IS 26")], radio, 30).run()
    assert {row["message"] for row in rows(run, "sent")} == {"flood"}


@pytest.mark.parametrize("protocol", [wb.Diffusion(), wb.DPS()])
def test_protocols_deliver_with_learned_link_qualities(protocol):
    items = [wb.subscribe(0, "TEMP GE 20", start_s=1), wb.publish(8, "TEMP IS 26", every_s=2, start_s=20)]
    radio = wb.radios.cc2420(link_quality="learned", loss=0.1)
    run = wb.Scenario(wb.topology.grid(3, 3), protocol, items, radio, 60).run()
    assert run.metrics["delivery_ratio"] > 0.9 and run.metrics["sent_beacon"] > 0
    assert run.metrics["delivered"] == run.scenario.run(record="metrics").metrics["delivered"]
    assert run.figure(time_s=30) and run.explain()


def test_fast_engine_names_the_reason_and_auto_takes_the_reference_engine():
    scenario = wb.Scenario(both_ways((0, 1)), Talker(), [], wb.Radio(link_quality="learned"), 1)
    with pytest.raises(ScenarioError, match='link_quality="learned" is simulated by the reference engine'):
        scenario.run(engine="fast")
    assert scenario.run().engine == "reference"
    with pytest.raises(ParameterError, match='link_quality is .lerned.; it must be "true" or "learned"'):
        wb.Radio(link_quality="lerned")
