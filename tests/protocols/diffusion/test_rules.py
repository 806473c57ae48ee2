"""The rules of diffusion: rounds, expirations, which gradient is replaced, when to reinforce, who is blacklisted."""

from hypothesis import given
from hypothesis import strategies as st

from workbench.protocols.contract import NOBODY
from workbench.protocols.diffusion import rules
from workbench.protocols.diffusion.interest_cache import Gradient

SECOND_US = 1000000


def test_round_after_the_last_is_the_first():
    assert [rules.next_round(round_) for round_ in (0, 1, 254, 255)] == [1, 2, 255, 0]


def test_round_is_stale_if_it_is_older_by_the_shorter_way_around():
    table = [
        (5, 5, False),
        (6, 5, False),
        (5, 6, True),
        (0, 255, False),
        (255, 0, True),
        (127, 0, False),
        (128, 0, True),
    ]
    for round_, known, is_stale in table:
        assert rules.is_stale(round_, known) is is_stale


@given(st.integers(0, 255))
def test_next_round_is_not_stale_and_the_one_before_it_is(round_):
    assert not rules.is_stale(rules.next_round(round_), round_)
    assert rules.is_stale(round_, rules.next_round(round_))


def test_round_is_known_for_two_refreshes_or_where_there_are_none_for_a_gradients_life():
    table = [(30.0, 150.0, 60), (1.0, 150.0, 2), (0, 150.0, 150), (0.0, 1.5, 1.5)]
    for refresh_s, gradient_lifetime_s, known_for_s in table:
        assert rules.known_for_us(refresh_s, gradient_lifetime_s) == known_for_s * SECOND_US


@given(st.floats(0.01, 65535))
def test_no_round_is_known_for_so_long_that_new_ones_look_old(refresh_s):
    assert rules.known_for_us(refresh_s, 150.0) < 127 * refresh_s * SECOND_US


def test_path_of_a_round_is_what_a_later_message_of_its_sink_with_its_round_has_set():
    # number and round of the reinforcement, number and round of the interest
    table = [(7, 3, 5, 3, True), (7, 2, 5, 3, False), (7, 3, 9, 3, False), (NOBODY, 3, 5, 3, False)]
    for wave, wave_round, sequence, round_, is_so in table:
        assert rules.is_path_of_round(wave, wave_round, sequence, round_) is is_so


def test_exploration_takes_a_memory_that_lasts_longer_than_copies_take_to_meet():
    meet_us = rules.COPIES_MEET_US
    table = [(False, 0, 0, True), (True, 0, meet_us - 1, False), (True, 0, meet_us, True), (True, 50, meet_us, False)]
    for is_full, oldest_us, now, may_explore in table:
        assert rules.may_explore(is_full, oldest_us, now) is may_explore


def test_gradient_that_is_never_refreshed_lives_as_long_as_its_field_can_say():
    table = [(30.0, 150.0, 150), (30.0, 1.9, 1), (0, 150.0, 65535), (0.0, 1, 65535)]
    for refresh_s, gradient_lifetime_s, lifetime_s in table:
        assert rules.lifetime_s(refresh_s, gradient_lifetime_s) == lifetime_s


def test_expiration_is_to_the_end_of_the_subscription_in_whole_seconds_rounded_up():
    table = [(0, 1), (-5, 1), (1, 1), (SECOND_US, 1), (SECOND_US + 1, 2), (150 * SECOND_US, 150), (1 << 50, 150)]
    for left_us, expiration_s in table:
        assert rules.expiration_s(7, 7 + left_us, 150) == expiration_s


def test_message_with_the_first_ttl_has_come_one_hop():
    assert [rules.hops_taken(50, ttl) for ttl in (50, 49, 1)] == [1, 2, 50]


def replaced(sinks, sink, is_reinforced=False):
    gradients = [Gradient(one, 4, 0) for one in sinks]
    return rules.gradient_to_replace(gradients, len(sinks), sink, is_reinforced)


def test_newcomer_goes_if_its_sink_has_a_gradient():
    assert replaced([7], 7) == NOBODY
    assert replaced([8, 8, 7], 7) == NOBODY


def test_newcomer_of_another_sink_takes_the_last_spare_gradient():
    assert replaced([8, 8, 9], 7) == 1
    assert replaced([8, 9, 8, 9], 7) == 3


def test_newcomer_goes_if_every_gradient_is_its_sinks_only_one():
    assert replaced([8, 9, 10], 7) == NOBODY


def test_reinforced_newcomer_takes_its_sinks_last_gradient_or_a_spare_one_or_the_last():
    assert replaced([7, 8, 9], 7, is_reinforced=True) == 0
    assert replaced([7, 8, 8], 7, is_reinforced=True) == 2
    assert replaced([8, 9], 7, is_reinforced=True) == 1


@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.integers(0, 3), st.booleans())
def test_no_sink_loses_its_only_gradient_to_one_that_is_not_reinforced(sinks, sink, is_reinforced):
    place = replaced(sinks, sink, is_reinforced)
    assert NOBODY <= place < len(sinks)
    if is_reinforced:
        assert place != NOBODY
    elif place != NOBODY:
        assert sinks.count(sinks[place]) > 1 and sink not in sinks


def test_path_is_reinforced_after_so_many_messages_and_so_often_in_a_round():
    table = [(1, 1, 0, True), (1, 2, 0, False), (2, 2, 9, True), (5, 2, 10, False), (5, 0, 0, False)]
    for messages, reinforce_after, started, may_reinforce in table:
        assert rules.may_reinforce(messages, reinforce_after, started, 10) is may_reinforce


def test_neighbor_is_blacklisted_above_the_loss_and_taken_off_below_it_less_the_hysteresis():
    table = [
        (False, 1.0, 1.0, False),
        (False, 0.5, 0.5, False),  # a loss of .75, which is the limit
        (False, 0.5, 0.4, True),
        (True, 0.5, 0.5, True),
        (True, 1.0, 0.5, True),  # a loss of .5, which is the limit less the hysteresis
        (True, 1.0, 0.6, False),
        (False, 0.0, 1.0, True),
    ]
    for was_black, inbound, outbound, is_black in table:
        assert rules.is_black(was_black, inbound, outbound, 0.75, 0.25) is is_black
        assert rules.is_black(was_black, outbound, inbound, 0.75, 0.25) is is_black


def test_no_neighbor_is_blacklisted_where_the_loss_may_be_all():
    assert not rules.is_black(False, 0.0, 0.0, 1, 0.1)
