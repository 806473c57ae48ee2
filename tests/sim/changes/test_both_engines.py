"""Both engines in random networks that change: equal traces, equal numbers without a trace, equal radio states."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import workbench as wb
from tests import network_items
from tests.both_engines import assert_same_numbers, assert_same_trace
from tests.families import examples


def floods(nodes):
    # With a memory of so few events, floods circulate until their ttl runs out.
    return st.sampled_from([wb.Flooding(), wb.Flooding(ttl=2), wb.Flooding(ttl=4, max_events=3)])


def gossip(nodes):
    return st.builds(wb.Gossip, forwarding_probability=st.just(0.7), pieces=st.sampled_from([1, 3]))


def coded_diffusion(nodes):
    return st.builds(wb.CodedDiffusion, generation_size=st.sampled_from([2, 4]), max_requests=st.sampled_from([0, 3]))


def diffusion(nodes):
    return st.builds(
        wb.Diffusion,
        refresh_s=st.sampled_from([2, 30]),
        max_data=st.sampled_from([5, 100]),
        max_gradients=st.sampled_from([2, 10]),
    )


def tinymq(nodes):
    roots = st.sampled_from([[nodes[0]], [nodes[0], nodes[-1]]])
    return st.builds(wb.TinyMQ, roots=roots, info_s=st.sampled_from([1, 5]), publish=st.sampled_from(["all", "own"]))


def pub2sub(nodes):
    return st.builds(wb.Pub2Sub, roots=st.just([nodes[0]]), info_s=st.sampled_from([1, 5]))


def dps(nodes):
    return st.builds(
        wb.DPS,
        update_s=st.sampled_from([0.5, 2.0]),
        ttl_s=st.sampled_from([0, 10]),
        acknowledge=st.booleans(),
        crowd=st.sampled_from([2, 64]),
    )


def check(scenario):
    """Assert that both engines play a scenario alike, and that radio states add up to its duration."""
    assert_same_trace(scenario)
    assert_same_numbers(scenario)
    if scenario.radio.tx_mA:
        runs = [scenario.run(engine, record) for engine in ("reference", "fast") for record in ("trace", "metrics")]
        states_us = runs[0].radio_states_us
        assert all(run.radio_states_us.tolist() == states_us.tolist() for run in runs)
        assert (states_us >= 0).all()
        assert set(states_us.sum(axis=1).tolist()) == {round(scenario.duration_s * 1e6)}


@pytest.mark.parametrize(
    "protocols", [floods, gossip, coded_diffusion, diffusion, tinymq, pub2sub, dps], ids=lambda make: make.__name__
)
@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_both_engines_play_a_changing_network_alike(protocols, data):
    check(data.draw(network_items.scenarios(protocols)))
