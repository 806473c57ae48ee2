"""DPS's rules on plain numbers, which a node and its fast twin share."""

from itertools import product

import pytest

import workbench as wb
from workbench.protocols.dps import rules
from workbench.protocols.dps.automaton import ACTIVE, LINKING, LOOP, LOST, MUTED, NO_LOOP, NOTHING, OVERDUE, UNMUTING
from workbench.protocols.dps.wire import DELTA, MUTE, SAK_REQUESTED, UNMUTE

SECOND_US = rules.SECOND_US
BOOLEANS = (False, True)


def test_times_follow_from_the_settings():
    settings = wb.DPS(update_s=0.5, link_loss_s=3.0, recheck_s=60.0, history_s=7.0)
    times = rules.times_of(settings)
    assert times == (500_000, 500_000, 500_000, 3_500_000, 60.0, 25_001, 7_000_000)
    assert rules.times_of(settings, 0, True) == times._replace(learnt_us=25_001)
    assert rules.times_of(settings, 20, True) == rules.times_of(settings, 20)


@pytest.mark.parametrize("state", [LINKING, ACTIVE])
def test_a_link_in_use_shows_a_loop_by_the_lowest_id_if_that_is_news_or_by_the_flag(state):
    for is_reply, is_lowest, is_news in product(BOOLEANS, repeat=3):
        expected = LOOP if is_lowest and is_news else NOTHING
        assert rules.loop_shown(SAK_REQUESTED, state, is_reply, is_lowest, is_news) == expected
        assert rules.loop_shown(MUTE, state, is_reply, is_lowest, is_news) == LOOP


def test_a_muted_link_shows_something_by_the_reply_to_its_question_alone():
    for flags, is_lowest, is_news in product((0, MUTE), BOOLEANS, BOOLEANS):
        assert rules.loop_shown(flags, MUTED, False, is_lowest, is_news) == NOTHING
        expected = LOOP if flags or is_lowest else NO_LOOP
        assert rules.loop_shown(flags, MUTED, True, is_lowest, is_news) == expected


@pytest.mark.parametrize(
    ("flags", "revision", "newest", "is_acknowledging", "stays_muted", "expected"),
    [
        (SAK_REQUESTED, 1, 1, False, False, True),  # restarted, and numbers from the first again
        (SAK_REQUESTED, 5, 3, True, False, True),  # gave the link up
        (SAK_REQUESTED, 2, 3, False, False, False),  # what it told before it told more: that came first
        (SAK_REQUESTED, 1, 1, True, False, False),  # the same again: our answer was lost
        (SAK_REQUESTED, 1, 0, False, False, False),  # the first that comes
        (SAK_REQUESTED, 1, 1, False, True, False),  # asks for a muted link whose loop is still there
        (SAK_REQUESTED | DELTA, 2, 1, False, False, False),
        (SAK_REQUESTED | UNMUTE, 2, 1, False, False, False),
    ],
)
def test_interests_in_full_show_that_a_neighbor_has_begun_anew(
    flags, revision, newest, is_acknowledging, stays_muted, expected
):
    assert rules.has_begun_anew(flags, revision, newest, is_acknowledging, stays_muted) is expected


def test_a_change_needs_the_interests_that_it_changes():
    assert not rules.lacks_base(DELTA, ACTIVE, 4, 3)
    assert rules.lacks_base(DELTA, ACTIVE, 5, 3)
    assert not rules.lacks_base(0, ACTIVE, 5, 3)
    assert not rules.lacks_base(DELTA | UNMUTE, ACTIVE, 5, 3)
    assert not rules.lacks_base(DELTA, UNMUTING, 5, 3)


def test_who_asks_for_nothing_and_needs_something_changes_what_is_not_here_any_more():
    assert rules.has_lost_base(DELTA, ACTIVE, True)
    assert not rules.has_lost_base(DELTA, ACTIVE, False)
    assert not rules.has_lost_base(0, ACTIVE, True)
    assert not rules.has_lost_base(DELTA | UNMUTE, ACTIVE, True)
    assert not rules.has_lost_base(DELTA, MUTED, True)


def test_a_message_is_repeated_from_some_tick_on_and_given_up_after_some_repetitions():
    found = [rules.after_tick(ticks, 2, 3) for ticks in range(1, 6)]
    assert found == [NOTHING, OVERDUE, OVERDUE, OVERDUE, LOST]
    assert rules.after_tick(1, 1, 0) == LOST


def test_flags_say_in_which_state_the_link_is():
    assert rules.subscription_flags(False, LINKING, 0.0) == SAK_REQUESTED
    assert rules.subscription_flags(True, UNMUTING, 0.0) == SAK_REQUESTED | DELTA | UNMUTE
    assert [rules.subscription_flags(False, MUTED, recheck_s) for recheck_s in (0.0, 1.0)] == [
        SAK_REQUESTED | MUTE,
        SAK_REQUESTED,
    ]
    assert rules.acknowledgement_flags(True, MUTED, False) == DELTA | MUTE
    assert rules.acknowledgement_flags(False, ACTIVE, True) == SAK_REQUESTED


def test_seconds_that_are_left_are_rounded_up():
    end_us = rules.end_us(0, 5)
    assert [rules.left_s(end_us, now) for now in (0, 1, SECOND_US, end_us - 1, end_us, end_us + 1)] == [
        5,
        5,
        4,
        1,
        0,
        0,
    ]


def test_waits_are_spread_around_the_setting():
    assert [rules.relink_after_us(10.0, part) for part in (0.0, 0.5)] == [5 * SECOND_US, 10 * SECOND_US]


@pytest.mark.parametrize(("recheck_s", "longest_s"), [(0.0, 32), (60.0, 32), (8.0, 8)])
def test_who_asked_for_a_muted_link_asks_again_before_the_other_end_does(recheck_s, longest_s):
    sign_us = 32 * SECOND_US
    waits = [
        rules.ask_muted_after_us(asked, recheck_s, sign_us, drawn) for asked in (True, False) for drawn in (0.0, 1.0)
    ]
    assert waits == [share * longest_s * SECOND_US for share in (0.625, 0.875, 1.0, 1.25)]


def test_history_is_cleared_when_it_has_doubled_or_half_of_it_is_new():
    assert rules.clears_at(0) == rules.FEWEST_TO_CLEAR
    assert rules.clears_at(100) == 200
    assert rules.clears(200, 200, 1, 5000)
    assert not rules.clears(199, 200, 2500, 5000)
    assert rules.clears(199, 200, 2501, 5000)
