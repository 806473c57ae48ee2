"""The rules of diffusion: rounds, expirations, replacement of gradients, reinforcement and blacklisting."""

from hypothesis import given
from hypothesis import strategies as st

from workbench.protocols.contract import NOBODY
from workbench.protocols.diffusion import rules
from workbench.protocols.diffusion.interest_cache import Gradient

SECOND_US = 1000000


def test_round_after_the_last_is_the_first():
    assert [rules.next_round(round_) for round_ in (0, 1, 254, 255)] == [1, 2, 255, 0]


def test_round_is_stale_if_it_is_older_in_modular_order():
    table = [
        (5, 5, False),
        (6, 5, False),
        (5, 6, True),
        (0, 255, False),
        (255, 0, True),
        (127, 0, False),
        (128, 0, True),
    ]
    for round_, known, is_older in table:
        assert rules.is_older_round(round_, known) is is_older


@given(st.integers(0, 255))
def test_next_round_is_not_stale_and_the_previous_one_is(round_):
    assert not rules.is_older_round(rules.next_round(round_), round_)
    assert rules.is_older_round(round_, rules.next_round(round_))


def test_round_is_known_for_two_refreshes_or_without_refreshes_for_a_gradients_lifetime():
    table = [(30.0, 150.0, 60), (1.0, 150.0, 2), (0, 150.0, 150), (0.0, 1.5, 1.5)]
    for refresh_s, gradient_lifetime_s, known_for_s in table:
        assert rules.known_for_us(refresh_s, gradient_lifetime_s) == known_for_s * SECOND_US


@given(st.floats(0.01, 65535))
def test_a_round_is_forgotten_before_new_ones_look_old(refresh_s):
    assert rules.known_for_us(refresh_s, 150.0) < 127 * refresh_s * SECOND_US


def test_path_of_a_round_was_set_by_a_later_message_of_its_sink_and_round():
    # number and round of the reinforcement, number and round of the interest
    table = [(7, 3, 5, 3, True), (7, 2, 5, 3, False), (7, 3, 9, 3, False), (NOBODY, 3, 5, 3, False)]
    for reinforcement, reinforcement_round, sequence, round_, is_so in table:
        assert rules.is_path_of_round(reinforcement, reinforcement_round, sequence, round_) is is_so


def test_exploration_requires_a_memory_longer_than_the_time_in_which_copies_meet():
    meet_us = rules.COPIES_MEET_US
    table = [(False, 0, 0, True), (True, 0, meet_us - 1, False), (True, 0, meet_us, True), (True, 50, meet_us, False)]
    for is_full, oldest_us, now, may_explore in table:
        assert rules.may_explore(is_full, oldest_us, now) is may_explore


def test_gradient_that_is_never_refreshed_has_the_maximum_lifetime_of_its_field():
    table = [(30.0, 150.0, 150), (30.0, 1.9, 1), (0, 150.0, 65535), (0.0, 1, 65535)]
    for refresh_s, gradient_lifetime_s, lifetime_s in table:
        assert rules.lifetime_s(refresh_s, gradient_lifetime_s) == lifetime_s


def test_expiration_is_to_the_end_of_the_subscription_in_whole_seconds_rounded_up():
    table = [(0, 1), (-5, 1), (1, 1), (SECOND_US, 1), (SECOND_US + 1, 2), (150 * SECOND_US, 150), (1 << 50, 150)]
    for left_us, expiration_s in table:
        assert rules.expiration_s(7, 7 + left_us, 150) == expiration_s


def test_message_with_the_initial_ttl_has_travelled_one_hop():
    assert [rules.hops_taken(50, ttl) for ttl in (50, 49, 1)] == [1, 2, 50]


def replaced(sinks, sink, is_reinforced=False):
    gradients = [Gradient(owner, 4, 0) for owner in sinks]
    return rules.gradient_to_replace(gradients, len(sinks), sink, is_reinforced)


def test_new_gradient_is_dropped_if_its_sink_has_one():
    assert replaced([7], 7) == NOBODY
    assert replaced([8, 8, 7], 7) == NOBODY


def test_new_gradient_of_another_sink_replaces_the_last_spare_one():
    assert replaced([8, 8, 9], 7) == 1
    assert replaced([8, 9, 8, 9], 7) == 3


def test_new_gradient_is_dropped_if_every_sink_has_only_one():
    assert replaced([8, 9, 10], 7) == NOBODY


def test_reinforced_gradient_replaces_its_sinks_last_or_a_spare_or_the_last_one():
    assert replaced([7, 8, 9], 7, is_reinforced=True) == 0
    assert replaced([7, 8, 8], 7, is_reinforced=True) == 2
    assert replaced([8, 9], 7, is_reinforced=True) == 1


@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.integers(0, 3), st.booleans())
def test_no_sink_loses_its_only_gradient_to_an_unreinforced_one(sinks, sink, is_reinforced):
    index = replaced(sinks, sink, is_reinforced)
    assert NOBODY <= index < len(sinks)
    if is_reinforced:
        assert index != NOBODY
    elif index != NOBODY:
        assert sinks.count(sinks[index]) > 1 and sink not in sinks


def test_path_is_reinforced_after_a_number_of_messages_up_to_a_limit_per_round():
    table = [(1, 1, 0, True), (1, 2, 0, False), (2, 2, 9, True), (5, 2, 10, False), (5, 0, 0, False)]
    for messages, reinforce_after, started, may_reinforce in table:
        assert rules.may_reinforce(messages, reinforce_after, started, 10) is may_reinforce


def test_neighbor_is_blacklisted_above_the_limit_and_released_below_it_minus_the_hysteresis():
    table = [
        (False, 1.0, 1.0, False),
        (False, 0.5, 0.5, False),  # a loss of 0.75, which is the limit
        (False, 0.5, 0.4, True),
        (True, 0.5, 0.5, True),
        (True, 1.0, 0.5, True),  # a loss of 0.5, which is the limit minus the hysteresis
        (True, 1.0, 0.6, False),
        (False, 0.0, 1.0, True),
    ]
    for was_black, inbound, outbound, is_black in table:
        assert rules.is_black(was_black, inbound, outbound, 0.75, 0.25) is is_black
        assert rules.is_black(was_black, outbound, inbound, 0.75, 0.25) is is_black


def test_no_neighbor_is_blacklisted_at_a_limit_of_one():
    assert not rules.is_black(False, 0.0, 0.0, 1, 0.1)
