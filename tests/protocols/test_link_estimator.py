"""The estimation of link qualities from beacons, alone and in a network."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.both_engines import assert_same_numbers, assert_same_trace
from tests.talker import both_directions, network, play, rows, say
from workbench import fuzzing
from workbench.errors import ParameterError, ScenarioError
from workbench.protocols.link_estimator import MARK, MAX_LISTED, NUMBERS, UNKNOWN, WEIGHT, WINDOW, LinkEstimator


def beacon(number, *ratios):
    """Return the bytes of a beacon that lists (address, ratio in 1/255)."""
    listed = b"".join(address.to_bytes(4, "little") + bytes([ratio]) for address, ratio in ratios)
    return bytes([MARK, number % 256, number // 256]) + listed


def hear(estimator, *numbers):
    """Return the ratios of the link from neighbor 7 after beacons with these numbers."""
    for number in numbers:
        estimator.receive(7, beacon(number))
    return estimator.ratios(7)


def test_new_neighbor_is_reported_as_good_and_then_by_its_first_window():
    estimator = LinkEstimator(1)
    assert estimator.receive(7, beacon(100)) == (UNKNOWN, UNKNOWN)
    assert hear(estimator, *range(102, 102 + 2 * WINDOW, 2)) == (0.5, 0.5)


def test_only_changed_ratios_are_reported():
    estimator = LinkEstimator(1)
    news = [estimator.receive(7, beacon(2 * number)) for number in range(2 * WINDOW)]
    assert [ratios for ratios in news if ratios] == [(1.0, 1.0), (0.5, 0.5)]


def test_later_windows_are_weighted():
    estimator = LinkEstimator(1)
    hear(estimator, *range(WINDOW + 1))
    assert hear(estimator, 2 * WINDOW)[0] == pytest.approx(1 - WEIGHT * (1 - 1 / WINDOW))


def test_numbers_wrap_around_after_the_largest():
    first = NUMBERS - WINDOW // 2
    numbers = (number % NUMBERS for number in range(first, first + 2 * WINDOW + 2, 2))
    assert hear(LinkEstimator(1), *numbers) == (0.5, 0.5)


def test_restart_of_a_neighbor_does_not_count_as_loss():
    assert hear(LinkEstimator(1), 5000, *range(1, WINDOW + 2)) == (1.0, 1.0)


def test_outbound_ratio_is_the_one_listed_by_the_neighbor():
    estimator = LinkEstimator(1)
    assert estimator.receive(7, beacon(1, (3, 10), (1, 51))) == (UNKNOWN, 0.2)


def test_neighbor_that_lists_only_others_does_not_hear_this_node():
    estimator = LinkEstimator(1)
    for number in range(2 * WINDOW + 2):
        estimator.make_beacon()
        estimator.receive(7, beacon(number, (3, 10)))
    assert estimator.ratios(7) == (1.0, 0.0)


def test_two_estimators_agree_about_their_link():
    first, second = LinkEstimator(1), LinkEstimator(2)
    for number in range(60):
        frame = first.make_beacon()
        if number % 4:
            second.receive(1, frame)
        first.receive(2, second.make_beacon())
    assert first.ratios(2) == (1.0, pytest.approx(0.75, abs=0.03))
    assert second.ratios(1) == (pytest.approx(0.75, abs=0.03), 1.0)


def test_beacon_that_was_not_sent_does_not_count_as_lost():
    sender, receiver = LinkEstimator(1), LinkEstimator(2)
    for number in range(4 * WINDOW):
        frame = sender.make_beacon()
        if number % 2:
            sender.cancel_beacon()
        else:
            receiver.receive(1, frame)
    assert receiver.ratios(1)[0] == 1.0


def test_many_neighbors_are_listed_in_turn():
    estimator = LinkEstimator(1)
    for neighbor in range(2, 2 + 50):
        for number in range(WINDOW + 1):
            estimator.receive(neighbor, beacon(number))
    frames = [estimator.make_beacon() for _ in range(3)]
    assert {len(frame) for frame in frames} == {3 + 5 * MAX_LISTED}
    listed = {int.from_bytes(frame[at : at + 4], "little") for frame in frames for at in range(3, len(frame), 5)}
    assert listed == set(range(2, 52))


def test_neighbors_beyond_the_limit_are_ignored():
    estimator = LinkEstimator(1, max_neighbors=2)
    assert [estimator.receive(neighbor, beacon(0)) is None for neighbor in (2, 3, 4)] == [False, False, True]
    assert estimator.ratios(4) is None


@given(
    st.lists(st.tuples(st.integers(0, 3), st.binary(max_size=40) | st.binary(max_size=40).map(bytes([MARK]).__add__)))
)
def test_ratios_are_shares_whatever_is_received(frames):
    estimator = LinkEstimator(1, max_neighbors=3)
    for neighbor, frame in frames:
        ratios = estimator.receive(neighbor, frame)
        assert ratios is None or all(0 <= ratio <= 1 for ratio in ratios)
    estimator.make_beacon()


@pytest.mark.parametrize("protocol", [wb.Diffusion(), wb.Flooding(), wb.Gossip(), wb.CodedDiffusion(), wb.TinyMQ()])
def test_frames_of_protocols_are_not_beacons(protocol):
    frames = fuzzing.harvest(protocol, 1)
    assert frames and not any(frame.data[0] == MARK for frame in frames)


# In a network


def test_nodes_learn_the_ratios_of_their_links_in_both_directions():
    arcs = network((0, 1, 0.9), (1, 0, 0.5), (1, 2, 0.6), (2, 1), (0, 2, 0.3))
    run = play(arcs, [say(1, to=0, every_s=2, start_s=1.7)], duration_s=3000, link_quality="learned")
    latest = {(row["node"], row["peer"]): row for row in rows(run, message="quality")}
    assert set(latest) == {(receiver, sender) for sender, receiver in arcs.edges}
    for (node, peer), row in latest.items():
        inbound, outbound = row["value"] / 1000, float(row["detail"])
        assert inbound == pytest.approx(arcs.edges[peer, node]["pdr"], abs=0.2), (node, peer)
        true_outbound = arcs.edges[node, peer]["pdr"] if arcs.has_edge(node, peer) else 0
        assert outbound == pytest.approx(true_outbound, abs=0.2), (node, peer)


def test_beacons_are_frames_whose_intervals_double():
    run = play(both_directions((0, 1)), [], duration_s=300, link_quality="learned")
    times_s = [row["time_us"] / 1e6 for row in rows(run, "sent", node=0)]
    assert {row["message"] for row in rows(run, "sent")} == {"beacon"}
    assert [row["event"] for row in rows(run, node=1, peer=0) if row["message"] == "beacon"] == ["received"] * len(
        times_s
    )
    gaps_s = [later - earlier for earlier, later in zip([0, *times_s], times_s, strict=False)]
    for number, gap_s in enumerate(gaps_s):
        interval_s = min(2**number, 16)
        assert interval_s / 2 <= gap_s <= interval_s + 0.1


def test_failed_node_sends_no_beacon():
    run = play(both_directions((0, 1)), [wb.outage(0, 0, 100)], duration_s=90, link_quality="learned")
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


NETWORKS = {
    "grid": wb.topology.grid(4, 4),
    "sparse": wb.topology.random_geometric(20, 80, 80, seed=7),
    "more neighbors than a beacon lists": wb.topology.random_geometric(45, 25, 25, seed=6),
}


@settings(max_examples=10)
@given(
    st.integers(1, 10**6),
    st.sampled_from(sorted(NETWORKS)),
    st.sampled_from(
        [
            wb.Diffusion(blacklist_loss=0.3),
            wb.Diffusion(blacklist_loss=0.5, max_black=2),
            wb.DPS(crowd=3, best_links=2, worst_link=0.5),
            wb.DPS(worst_link=0.8),
        ]
    ),
    st.sampled_from(["links", 0.2, 0.4]),
    st.booleans(),
)
def test_engines_agree_about_learned_link_qualities(seed, name, protocol, loss, is_ideal):
    topology = NETWORKS[name]
    last = len(topology) - 1
    items = [
        wb.subscribe(0, "TEMP GE 20", start_s=2),
        wb.subscribe(last, "TEMP GE 25", start_s=3),
        wb.publish([last, 3, 1], "TEMP IS 26", every_s=5, stagger=True),
        wb.outage(last // 2, 30, 45),
        wb.outage(1, 50, 60),
    ]
    radio = (wb.Radio if is_ideal else wb.radios.cc2420)(link_quality="learned", loss=loss)
    scenario = wb.Scenario(topology, protocol, items, radio, 100, seed)
    assert_same_trace(scenario)
    assert_same_numbers(scenario)


def test_engines_agree_about_beacons_of_sleeping_radios():
    items = [wb.subscribe(0, "TEMP GE 20"), wb.publish(15, "TEMP IS 26", every_s=5)]
    radio = wb.radios.cc2420(link_quality="learned", loss=0.3, wake_interval_ms=125)
    assert_same_trace(wb.Scenario(NETWORKS["grid"], wb.Diffusion(blacklist_loss=0.3), items, radio, 120))


def test_twin_without_link_qualities_is_refused_if_they_are_learned(monkeypatch):
    from workbench.protocols.diffusion import fast

    monkeypatch.setattr(fast, "link_quality", None)
    scenario = wb.Scenario(NETWORKS["grid"], wb.Diffusion(), [], wb.Radio(link_quality="learned"), 1)
    with pytest.raises(ScenarioError, match="diffusion.fast, has no function link_quality"):
        scenario.run(engine="fast")


def test_source_of_link_qualities_must_be_one_of_two():
    with pytest.raises(ParameterError, match='link_quality is .lerned.; it must be "true" or "learned"'):
        wb.Radio(link_quality="lerned")
