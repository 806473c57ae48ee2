"""The radio: the duration and energy of transmissions, which nodes receive a frame, and why others do not."""

import dataclasses
import math
import pydoc
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.families import examples
from tests.talker import Talker, TalkerNode, both_directions, describe, fates, network, play, rows, say, starts_us
from workbench.errors import ParameterError, ScenarioError
from workbench.protocols.contract import Held

AIRTIME_50_US = (50 + 6) * 8 * 4  # 250 kb/s: 4 µs a bit

LINE = both_directions((0, 1), (1, 2))
TRIANGLE = both_directions((0, 1), (1, 2), (0, 2))


# --- airtime and energy ---


@pytest.mark.parametrize(
    ("radio", "frame_B", "airtime_us"),
    [
        (wb.Radio(), 16, 704),
        (wb.Radio(), 127, 4256),  # 802.15.4's longest frame
        (wb.Radio(overhead_B=0, bit_rate_bps=1_000_000), 1, 8),
        (wb.Radio(overhead_B=0, bit_rate_bps=3_000_000), 1, 3),  # 2.67 takes three
    ],
)
def test_airtime_is_frame_and_overhead_over_the_bit_rate(radio, frame_B, airtime_us):
    assert radio.airtime_us(frame_B) == airtime_us
    run = wb.Scenario(LINE, wb.Flooding(), [wb.publish(0, "TEMP IS 26")], radio, 5).run()
    assert rows(run, "sent")[0]["value"] == radio.airtime_us(16)


@pytest.mark.parametrize(
    ("preset", "tx_uJ_per_B", "rx_uJ_per_B"),
    [
        # 32 µs a byte; the currents of `radios.py` in mA, times the supply in V.
        (wb.radios.cc2420, 17.4 * 3 * 0.032, 18.8 * 3 * 0.032),
        (wb.radios.at86rf231, 14 * 3 * 0.032, 12.3 * 3 * 0.032),
        (wb.radios.cc2340r5, 5.1 * 3 * 0.032, 5.3 * 3 * 0.032),
        (wb.radios.nrf52840, 6.4 * 3 * 0.032, 6.53 * 3 * 0.032),
        (wb.radios.stm32wb55, 5.2 * 3.3 * 0.032, 4.5 * 3.3 * 0.032),
    ],
)
def test_preset_is_an_802_15_4_radio_with_the_energy_of_its_currents(preset, tx_uJ_per_B, rx_uJ_per_B):
    radio = preset()
    assert radio.collisions and radio.csma and radio.retries == 3
    assert radio.max_frame_B == 125 and radio.airtime_us(125) == 4192
    assert radio.tx_uJ_per_B == pytest.approx(tx_uJ_per_B, abs=5e-5)
    assert radio.rx_uJ_per_B == pytest.approx(rx_uJ_per_B, abs=5e-5)


def test_fields_of_a_call_replace_those_of_the_preset():
    assert wb.radios.cc2420(retries=0, loss=0.1) == dataclasses.replace(wb.radios.cc2420(), retries=0, loss=0.1)
    with pytest.raises(ParameterError, match=r"Radio has no parameter 'retry' \(did you mean retries\?\)"):
        wb.radios.nrf52840(retry=1)
    with pytest.raises(AttributeError, match=r"did you mean cc2420\?"):
        wb.radios.cc2520()


@pytest.mark.parametrize(
    ("frame_B", "airtime_us"),
    [
        (125, (125 + 6) * 32),
        (126, (126 + 2 * (5 + 6)) * 32 + 640),  # two fragments of at most 120 bytes, and a pause
        (1000, (1000 + 9 * (5 + 6)) * 32 + 8 * 640),
    ],
)
def test_frame_beyond_the_limit_takes_the_airtime_of_its_fragments_and_pauses(frame_B, airtime_us):
    assert wb.radios.cc2420().airtime_us(frame_B) == airtime_us


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_frame_beyond_the_limit_is_refused_with_a_remedy_if_its_protocol_cannot_fragment(engine):
    items = [wb.subscribe(4, "TEMP GE 20"), wb.publish(0, "TEMP IS 26", payload=b"x" * 130, start_s=5)]
    scenario = wb.Scenario(wb.topology.line(5), wb.TinyMQ(), items, wb.radios.cc2420(), 20)
    with pytest.raises(
        ScenarioError, match=r"node 0 cannot send a frame of 156 bytes \(event\): .*, TinyMQ can send at most 125"
    ):
        scenario.run(engine=engine)
    assert scenario.replace(radio=wb.radios.cc2420(max_frame_B=0)).run(engine=engine).metrics["delivered"] == 1


@pytest.mark.parametrize("name", ["CodedDiffusion", "DPS", "Flooding"])
def test_fragments_are_lost_one_by_one_in_both_engines(name):
    items = [wb.subscribe(4, "TEMP GE 20"), wb.publish(0, "TEMP IS 26", payload=b"x" * 300, start_s=5, every_s=1)]
    radio = wb.radios.cc2420(loss=0.05, retries=0)
    scenario = wb.Scenario(wb.topology.line(5), getattr(wb, name)(), items, radio, 30)
    runs = [scenario.run(engine=engine) for engine in ("reference", "fast")]
    assert runs[0].trace_hash == runs[1].trace_hash
    assert rows(runs[0], "lost", detail="link")


class Fragmenting(Talker):
    max_fragments = 3


def test_frame_of_n_fragments_arrives_with_the_nth_power_of_the_delivery_ratio():
    items = [say(0, size=300, every_s=0.05)]
    run = play(both_directions((0, 1, 0.9)), items, duration_s=100, protocol=Fragmenting(), max_frame_B=125)
    assert len(rows(run, "received")) / len(rows(run, "sent")) == pytest.approx(0.9**3, abs=0.04)


def test_stronger_frame_survives_a_collision_by_the_threshold():
    # Node 1 is 10 m from node 0 and 30 m from node 4: 10 * 3 * log10(3) = 14.3 dB.
    arcs = both_directions((0, 1), (1, 4))
    for capture_dB, expected in ((0, "collision"), (14.3, "received"), (14.4, "collision")):
        run = play(arcs, [say(0), say(4)], collisions=True, capture_dB=capture_dB)
        assert fates(run, 1) == {(0, 0): expected, (4, 0): "collision"}


def test_engines_agree_about_capture():
    topology = wb.topology.random_geometric(40, width_m=100, height_m=100, seed=3)
    items = [wb.publish([0, 5, 9], "TEMP IS 26", every_s=0.5, stagger=True)]
    hashes = set()
    for capture_dB in (0, 3, 10):
        radio = wb.Radio(collisions=True, capture_dB=capture_dB)
        scenario = wb.Scenario(topology, wb.Flooding(), items, radio, 10)
        runs = [scenario.run(engine=engine) for engine in ("reference", "fast")]
        assert runs[0].trace_hash == runs[1].trace_hash
        hashes.add(runs[0].trace_hash)
    assert len(hashes) == 3


def test_ideal_preset_is_the_default_radio():
    assert wb.radios.ideal() == wb.Radio()


def test_energy_is_per_byte_sent_and_per_byte_heard():
    # 0 --- 1 --- 2: three broadcasts of 16 + 6 bytes, heard by 1, 2 and 1 nodes
    radio = wb.Radio(tx_uJ_per_B=1.67, rx_uJ_per_B=1.80)
    run = wb.Scenario(LINE, wb.Flooding(), [wb.publish(0, "TEMP IS 26")], radio, 5).run()
    assert run.metrics["transmissions"] == 3 and run.metrics["receptions"] == 4
    assert run.metrics["bytes_sent"] == 48
    assert run.metrics["energy_mJ"] == pytest.approx((3 * 22 * 1.67 + 4 * 22 * 1.80) / 1000)


def test_lost_frame_costs_its_receiver_nothing():
    run = play(LINE, [say(0, to=1)], loss=1)
    assert run.metrics["lost_link"] == 1
    assert run.metrics["energy_mJ"] == pytest.approx(56 * 1.67 / 1000)


def test_broadcast_waits_for_a_delay_within_the_jitter_and_unicast_does_not():
    everybody = [say("all", count=1, every_s=1, start_s=1), say(0, to=1, start_s=0.5)]
    run = play(wb.topology.line(20), everybody, jitter_ms=(1, 5), duration_s=20)
    published = {(row["node"], row["sequence"]): row["time_us"] for row in rows(run, "published")}
    delays = {True: [], False: []}
    for row in rows(run, "sent"):
        start = row["time_us"] - row["value"]
        delays[row["peer"] == -1].append(start - published[row["origin"], row["sequence"]])
    assert delays[False] == [0]
    assert 1000 <= min(delays[True]) < 1100 and 4900 < max(delays[True]) <= 5000
    assert sum(delays[True]) / len(delays[True]) == pytest.approx(3000, abs=200)


def test_radio_sends_one_frame_at_a_time_in_the_order_given():
    run = play(LINE, [say(0, count=4), say(0, to=1, count=3)], jitter_ms=(0, 3))
    sent_rows = rows(run, "sent", node=0)
    assert [row["sequence"] for row in sent_rows] == list(range(7))
    assert all(start >= row["time_us"] for row, start in zip(sent_rows, starts_us(run)[1:], strict=False))


# --- links ---


def test_link_delivers_the_share_of_frames_given_by_its_pdr():
    arcs = network((0, 1, 1.0), (0, 2, 0.9), (0, 3, 0.2))
    run = play(arcs, [say(0, every_s=0.01)])
    received = [len(rows(run, "received", node=node)) for node in (1, 2, 3)]
    assert received[0] == 1000
    assert received[1] == pytest.approx(900, abs=40) and received[2] == pytest.approx(200, abs=50)


def test_asymmetric_link_stays_asymmetric():
    run = play(network((0, 1, 0.9), (1, 0, 0.2)), [say("all", every_s=0.01, stagger=True)])
    assert len(rows(run, "received", node=1)) == pytest.approx(900, abs=40)
    assert len(rows(run, "received", node=0)) == pytest.approx(200, abs=50)
    deaf = play(network((0, 1)), [say("all")])
    assert [row["node"] for row in rows(deaf, "received")] == [1]


@pytest.mark.parametrize(("loss", "share"), [("links", 0.5), ("none", 1.0), (0.25, 0.75), (1, 0.0)])
def test_loss_is_taken_from_the_links_or_zero_or_the_same_on_all_links(loss, share):
    run = play(network((0, 1, 0.5)), [say(0, every_s=0.01)], loss=loss)
    assert len(rows(run, "received")) == pytest.approx(1000 * share, abs=50 * math.ceil(share % 1))


def test_links_lose_independently_of_each_other_and_of_the_network_around_them():
    two = play(network((0, 1, 0.5), (0, 2, 0.5)), [say(0, every_s=0.01)])
    alone = play(network((0, 1, 0.5)), [say(0, every_s=0.01)])
    received, also_received = ([row["sequence"] for row in rows(two, "received", node=node)] for node in (1, 2))
    assert received == [row["sequence"] for row in rows(alone, "received", node=1)]
    assert len(set(received) & set(also_received)) == pytest.approx(250, abs=50)


def test_unicast_is_received_by_its_destination_only():
    run = play(TRIANGLE, [say(0, to=2)])
    assert [(row["node"], row["peer"]) for row in rows(run, "received")] == [(2, 0)]
    assert [row["peer"] for row in rows(run, "sent")] == [2]


def test_unicast_over_no_link_is_lost():
    # 0 --> 1: node 1 receives, but cannot answer
    run = play(network((0, 1)), [say(1, to=0)], retries=1)
    assert [row["peer"] for row in rows(run, "sent")] == [0, 0]
    assert [(row["node"], row["peer"], row["detail"]) for row in rows(run, "lost")] == [(0, 1, "link")] * 2


# --- collisions ---


def test_two_hidden_nodes_collide_at_the_node_between_them():
    # 0 --- 1 --- 2
    both = [say([0, 2])]
    run = play(LINE, both, collisions=True)
    assert fates(run, 1) == {(0, 0): "collision", (2, 0): "collision"}
    assert fates(play(LINE, both), 1) == {(0, 0): "received", (2, 0): "received"}


@pytest.mark.parametrize(
    ("offset_us", "fate"),
    [(0, "collision"), (1, "collision"), (AIRTIME_50_US - 1, "collision"), (AIRTIME_50_US, "received")],
)
def test_overlapping_frames_collide_and_adjacent_frames_do_not(offset_us, fate):
    run = play(LINE, [say(0), say(2, start_s=offset_us / 1e6)], collisions=True)
    assert set(fates(run, 1).values()) == {fate}


def test_short_frame_within_a_long_one_collides_with_it():
    run = play(LINE, [say(0, size=120), say(2, size=6, start_s=0.001)], collisions=True)
    assert set(fates(run, 1).values()) == {"collision"}


def test_node_that_transmits_receives_nothing():
    run = play(LINE, [say(0), say(1, start_s=0.001)], collisions=True)
    assert fates(run, 0) == {(1, 0): "half_duplex"} and fates(run, 1) == {(0, 0): "half_duplex"}
    assert fates(run, 2) == {(1, 0): "received"}


def test_transmission_out_of_range_disturbs_no_frame():
    # 0 --- 1    2 --- 3
    apart = both_directions((0, 1), (2, 3))
    assert set(fates(play(apart, [say("all", size=20)], collisions=True), 1).values()) == {"half_duplex"}
    run = play(apart, [say([0, 2])], collisions=True)
    assert fates(run, 1) == {(0, 0): "received"} and fates(run, 3) == {(2, 0): "received"}


def test_frame_too_weak_to_be_received_still_disturbs():
    run = play(network((0, 1), (2, 1, 0.000001)), [say([0, 2])], collisions=True)
    assert fates(run, 1) == {(0, 0): "collision", (2, 0): "link"}


def test_queued_frames_collide_when_they_are_sent():
    # Node 0 gets 40 frames at once; node 2 sends during the first of them.
    run = play(LINE, [say(0, to=1, count=40), say(2, start_s=0.001)], collisions=True)
    fate = fates(run, 1)
    assert fate[2, 0] == "collision"
    assert [fate[0, sequence] for sequence in range(40)] == ["collision"] * 2 + ["received"] * 38


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4000), st.integers(6, 120)), min_size=1, max_size=40))
def test_node_receives_exactly_the_frames_without_overlap(frames):
    # Node 4 hears 0, 1, 2 and 3, which do not hear it or each other.
    star = network(*((node, 4) for node in range(4)))
    workload = [say(node, size=size, start_s=start / 1e5) for node, start, size in frames]
    run = play(star, workload, collisions=True)
    spans = {
        (row["origin"], row["sequence"]): (row["time_us"] - row["value"], row["time_us"]) for row in rows(run, "sent")
    }
    assert len(spans) == len(frames)
    for frame, fate in fates(run, 4).items():
        start, end = spans[frame]
        overlapping = [span for frame_, span in spans.items() if frame_ != frame and span[0] < end and start < span[1]]
        assert fate == ("collision" if overlapping else "received")


# --- csma ---


def test_csma_waits_until_the_channel_is_free():
    run = play(TRIANGLE, [say(0, size=120), say(2, start_s=0.003)], collisions=True, csma=True)
    first, second = rows(run, "sent")
    assert (first["node"], second["node"]) == (0, 2)
    assert second["time_us"] - second["value"] >= first["time_us"]
    assert fates(run, 1) == {(0, 0): "received", (2, 0): "received"}


def test_csma_sends_a_queue_in_order_and_delivers_most_frames_on_a_busy_channel():
    talk = [say(node, count=3) for node in (0, 1, 2)]
    alone = play(TRIANGLE, talk, collisions=True)
    careful = play(TRIANGLE, talk, collisions=True, csma=True)
    assert alone.metrics["receptions"] == 0
    assert careful.metrics["receptions"] > 12
    for node in (0, 1, 2):
        assert [row["sequence"] for row in rows(careful, "sent", node=node)] == [0, 1, 2]


def test_csma_does_not_help_against_a_hidden_node():
    hidden = play(LINE, [say([0, 2], size=120)], collisions=True, csma=True)
    assert fates(hidden, 1) == {(0, 0): "collision", (2, 0): "collision"}


def test_frame_is_given_up_on_a_busy_channel_and_the_next_one_follows():
    # 3000 bytes take 96 ms; the back-offs end after 37 ms at most.
    run = play(TRIANGLE, [say(0, size=3000), say(2, start_s=0.01), say(2, start_s=0.2)], collisions=True, csma=True)
    assert [(row["node"], row["sequence"], row["detail"]) for row in rows(run, "given_up")] == [(2, 0, "channel_busy")]
    assert fates(run, 1) == {(0, 0): "received", (2, 1): "received"}
    assert run.metrics["given_up_channel_busy"] == 1


# --- retries ---


def test_retries_compensate_loss_and_are_counted_as_transmissions():
    lossy = both_directions((0, 1, 0.7))
    talk = [say(0, to=1, every_s=0.1)]
    plain, stubborn = play(lossy, talk), play(lossy, talk, retries=20)
    assert len(fates(plain, 1)) == 100 and plain.metrics["receptions"] == pytest.approx(70, abs=14)
    assert {row["sequence"] for row in rows(stubborn, "received")} == set(range(100))
    # The probability that a frame and its acknowledgement both get through is 0.49.
    assert stubborn.metrics["transmissions"] == pytest.approx(100 / 0.49, abs=40)


def test_frame_without_acknowledgement_is_repeated_up_to_the_limit():
    run = play(network((0, 1)), [say(0, to=1)], retries=3)
    assert len(rows(run, "sent")) == len(rows(run, "received")) == 4
    acknowledgement_us = (5 + 6) * 8 * 4
    ends, starts = [row["time_us"] for row in rows(run, "sent")], starts_us(run)
    assert all(start == end + 192 + acknowledgement_us for end, start in zip(ends, starts[1:], strict=False))


def test_broadcast_is_never_sent_again():
    assert play(both_directions((0, 1, 0.3)), [say(0, every_s=0.1)], retries=9).metrics["transmissions"] == 100


@pytest.mark.parametrize("csma", [False, True])
def test_repeated_frame_is_not_overtaken_for_ever(csma):
    run = play(network((0, 1, 0.5), (1, 0)), [say(0, to=1, count=30)], retries=50, collisions=csma, csma=csma)
    assert {row["sequence"] for row in rows(run, "received")} == set(range(30))
    spans = sorted((row["time_us"] - row["value"], row["time_us"]) for row in rows(run, "sent"))
    assert all(earlier[1] <= later[0] for earlier, later in pairwise(spans))


# --- outcomes of unicasts ---


class ReportingNode(TalkerNode):
    """A talker that logs the outcome of each of its unicasts: value 1 for an acknowledgement, 0 without one."""

    def sent(self, destination, frame, ok, now):
        origin, sequence = describe(frame)[1:]
        self.events.append(Held(destination, "outcome", origin, sequence, int(ok), ""))


class Reporting(Talker):
    node = ReportingNode


def outcomes(topology, workload, **radio):
    """Return [(destination, sequence, acknowledged)], in the order of reports to nodes, of a run with this radio."""
    run = play(topology, workload, protocol=Reporting(), **radio)
    return [(row["peer"], row["sequence"], row["value"]) for row in rows(run, "held", message="outcome")]


def test_radio_reports_each_unicast_once_regardless_of_retries():
    lossy = both_directions((0, 1, 0.7))
    reports = outcomes(lossy, [say(0, to=1, every_s=0.1)], retries=2)
    assert [(peer, sequence) for peer, sequence, _ in reports] == [(1, sequence) for sequence in range(100)]
    # A try succeeds with probability 0.49, one of three tries with 0.87.
    assert sum(ok for *_, ok in reports) == pytest.approx(87, abs=10)


def test_frame_that_arrives_without_an_acknowledgement_is_reported_as_failed():
    assert outcomes(network((0, 1)), [say(0, to=1)], retries=3) == [(1, 0, 0)]


def test_unicast_over_no_link_is_reported_as_failed():
    assert outcomes(network((0, 1), (1, 2)), [say(0, to=2)], retries=1) == [(2, 0, 0)]


def test_broadcast_has_no_outcome():
    assert outcomes(both_directions((0, 1)), [say(0)], retries=3) == []


def test_radio_without_acknowledgements_reports_only_frames_given_up_by_carrier_sense():
    talk = [say(0, size=3000), say(2, to=1, start_s=0.01), say(2, to=1, start_s=0.2)]
    assert outcomes(TRIANGLE, talk, collisions=True, csma=True) == [(1, 0, 0)]


def test_node_that_fails_gets_no_report():
    talk = [say(0, to=1, size=3000), wb.outage(0, 0.01, 0.5)]
    assert outcomes(both_directions((0, 1)), talk, retries=3) == []


# --- outages ---


def test_node_that_is_off_neither_sends_nor_receives_and_resumes_afterwards():
    # 0 --- 1 --- 2, node 1 is off from second 2 to second 4
    run = play(LINE, [say("all", every_s=1, start_s=0.5, stagger=False), wb.outage(1, 2, 4)], duration_s=6)
    assert [row["time_us"] // 10**6 for row in rows(run, "sent", node=1)] == [0, 1, 4, 5]
    assert [row["time_us"] // 10**6 for row in rows(run, "received", node=1, peer=0)] == [0, 1, 4, 5]
    assert [row["time_us"] // 10**6 for row in rows(run, "lost", node=1, peer=0, detail="down")] == [2, 3]
    assert [(row["time_us"], row["event"]) for row in rows(run, "failed", "recovered")] == [
        (2 * 10**6, "failed"),
        (4 * 10**6, "recovered"),
    ]


@pytest.mark.parametrize("csma", [False, True])
def test_all_queued_frames_of_a_failing_node_are_given_up(csma):
    run = play(LINE, [say(0, count=5), wb.outage(0, 0.004, 1), say(0, start_s=2)], collisions=True, csma=csma)
    outcome = [row["sequence"] for row in rows(run, "sent", "given_up")]
    assert sorted(outcome) == [0, 1, 2, 3, 4, 5]
    assert {row["detail"] for row in rows(run, "given_up")} == {"down"}
    assert 3 <= len(rows(run, "given_up")) <= 5 and rows(run, "sent")[-1]["sequence"] == 5


def test_frame_disturbs_others_until_its_sender_fails():
    # Node 0's first frame takes 1792 µs. It fails at 1000 µs, while its other frames still wait in the radio.
    def fate(start_us):
        talk = [say(0, count=20), wb.outage(0, 0.001), say(2, start_s=start_us / 1e6)]
        return fates(play(LINE, talk, collisions=True), 1)

    assert fate(900) == {(2, 0): "collision"}
    assert fate(1000) == fate(4000) == {(2, 0): "received"}


def test_overlapping_outages_last_until_the_last_of_them_ends():
    run = play(LINE, [say(1, every_s=1, start_s=0.5), wb.outage(1, 1, 4), wb.outage([0, 1], 3, 6)], duration_s=8)
    assert [row["time_us"] // 10**6 for row in rows(run, "sent")] == [0, 6, 7]
    assert [(row["time_us"] // 10**6, row["event"]) for row in rows(run, "failed", "recovered", node=1)] == [
        (1, "failed"),
        (6, "recovered"),
    ]


# --- the radio's settings ---


def test_radio_is_an_immutable_value_with_a_plain_form():
    radio = wb.Radio(loss=0.1, jitter_ms=5, retries=3)
    assert radio == wb.Radio(loss=0.1, jitter_ms=(0, 5.0), retries=3)
    assert wb.Radio.from_dict(radio.to_dict()) == radio and wb.Radio.from_dict({}) == wb.Radio()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("loss", "some"),
        ("loss", 1.1),
        ("loss", True),
        ("jitter_ms", (5, 1)),
        ("jitter_ms", -1),
        ("jitter_ms", (0, math.inf)),
        ("jitter_ms", (0, 1e7)),
        ("collisions", 1),
        ("csma", None),
        ("retries", 1.5),
        ("bit_rate_bps", 0),
        ("overhead_B", -1),
        ("tx_uJ_per_B", math.nan),
        ("rx_uJ_per_B", "1.8"),
    ],
)
def test_wrong_parameter_is_named_with_the_allowed_values(name, value):
    with pytest.raises(ParameterError, match=f"Radio: {name} is .*must be"):
        wb.Radio(**{name: value})


def test_unknown_field_of_a_plain_form_is_named():
    with pytest.raises(ScenarioError, match="'power'.*loss"):
        wb.Radio.from_dict({"power": 3})
    with pytest.raises(ScenarioError, match="must be an object"):
        wb.Radio.from_dict(5)


def test_help_lists_the_allowed_values_of_loss():
    shown = pydoc.render_doc(wb.Radio, renderer=pydoc.plaintext)
    assert "Literal['links', 'none'] | float" in shown
    assert "loss : 'links', 'none', or a share from 0 to 1, default 'links'" in shown
    assert "wb.radios.cc2420()" in shown and "loss : str" not in shown
