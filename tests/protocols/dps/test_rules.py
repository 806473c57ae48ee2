"""DPS's rules on plain numbers, which nodes and fast twin share."""

from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    assert rules.times_of(settings, 0, True) == times._replace(forward_interests_us=25_001)
    assert rules.times_of(settings, 20, True) == rules.times_of(settings, 20)


@pytest.mark.parametrize("state", [LINKING, ACTIVE])
def test_an_active_link_reports_a_loop_by_a_newly_lowest_id_or_by_the_flag(state):
    for is_reply, is_lowest, is_news in product(BOOLEANS, repeat=3):
        expected = LOOP if is_lowest and is_news else NOTHING
        assert rules.classify_loop(SAK_REQUESTED, state, is_reply, is_lowest, is_news) == expected
        assert rules.classify_loop(MUTE, state, is_reply, is_lowest, is_news) == LOOP


def test_a_muted_link_changes_only_by_the_reply_to_its_request():
    for flags, is_lowest, is_news in product((0, MUTE), BOOLEANS, BOOLEANS):
        assert rules.classify_loop(flags, MUTED, False, is_lowest, is_news) == NOTHING
        expected = LOOP if flags or is_lowest else NO_LOOP
        assert rules.classify_loop(flags, MUTED, True, is_lowest, is_news) == expected


@pytest.mark.parametrize(
    ("flags", "revision", "newest", "is_acknowledging", "stays_muted", "expected"),
    [
        (SAK_REQUESTED, 1, 1, False, False, True),  # it restarted, and numbers from the first revision again
        (SAK_REQUESTED, 5, 3, True, False, True),  # it gave the link up
        (SAK_REQUESTED, 2, 3, False, False, False),  # an earlier message that arrives late
        (SAK_REQUESTED, 1, 1, True, False, False),  # a repetition: our answer was lost
        (SAK_REQUESTED, 1, 0, False, False, None),  # the first message, which can only show something on a settled link
        (SAK_REQUESTED, 1, 1, False, True, False),  # a request for a muted link whose loop still exists
        (SAK_REQUESTED | DELTA, 2, 1, False, False, False),
        (SAK_REQUESTED | UNMUTE, 2, 1, False, False, False),
    ],
)
def test_full_interests_show_that_a_neighbor_has_restarted(
    flags, revision, newest, is_acknowledging, stays_muted, expected
):
    for settled in BOOLEANS:
        begun = rules.has_begun_anew(flags, revision, newest, is_acknowledging, stays_muted, settled)
        assert begun is (settled if expected is None else expected)


def test_a_link_is_settled_if_it_is_active_and_nothing_crosses():
    assert rules.is_settled(ACTIVE, False)
    assert not rules.is_settled(ACTIVE, True)
    assert not rules.is_settled(LINKING, False)


def test_a_change_needs_the_interests_that_it_changes():
    assert not rules.lacks_base(DELTA, ACTIVE, 4, 3)
    assert rules.lacks_base(DELTA, ACTIVE, 5, 3)
    assert not rules.lacks_base(0, ACTIVE, 5, 3)
    assert not rules.lacks_base(DELTA | UNMUTE, ACTIVE, 5, 3)
    assert not rules.lacks_base(DELTA, UNMUTING, 5, 3)


def test_needs_without_interests_show_a_change_of_missing_interests():
    assert rules.has_lost_base(DELTA, ACTIVE, True)
    assert not rules.has_lost_base(DELTA, ACTIVE, False)
    assert not rules.has_lost_base(0, ACTIVE, True)
    assert not rules.has_lost_base(DELTA | UNMUTE, ACTIVE, True)
    assert not rules.has_lost_base(DELTA, MUTED, True)


def test_a_message_is_repeated_from_a_tick_on_and_given_up_after_some_repetitions():
    inputs = [rules.tick_input(ticks, 2, 3) for ticks in range(1, 6)]
    assert inputs == [NOTHING, OVERDUE, OVERDUE, OVERDUE, LOST]
    assert rules.tick_input(1, 1, 0) == LOST


def test_flags_show_the_state_of_the_link():
    assert rules.subscription_flags(False, LINKING, 0.0) == SAK_REQUESTED
    assert rules.subscription_flags(True, UNMUTING, 0.0) == SAK_REQUESTED | DELTA | UNMUTE
    assert [rules.subscription_flags(False, MUTED, recheck_s) for recheck_s in (0.0, 1.0)] == [
        SAK_REQUESTED | MUTE,
        SAK_REQUESTED,
    ]
    assert rules.acknowledgement_flags(True, MUTED, False) == DELTA | MUTE
    assert rules.acknowledgement_flags(False, ACTIVE, True) == SAK_REQUESTED


def test_remaining_seconds_are_rounded_up():
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
def test_the_requester_of_a_muted_link_rechecks_before_the_other_end(recheck_s, longest_s):
    silence_us = 32 * SECOND_US
    waits = [
        rules.recheck_after_us(is_requester, recheck_s, silence_us, drawn)
        for is_requester in (True, False)
        for drawn in (0.0, 1.0)
    ]
    assert waits == [share * longest_s * SECOND_US for share in (0.625, 0.875, 1.0, 1.25)]


def test_history_is_cleared_when_it_has_doubled_or_half_of_it_is_new():
    assert rules.next_clearing_size(0) == rules.FEWEST_TO_CLEAR
    assert rules.next_clearing_size(100) == 200
    assert rules.clears_history(200, 200, 1, 5000)
    assert not rules.clears_history(199, 200, 2500, 5000)
    assert rules.clears_history(199, 200, 2501, 5000)


marks = st.one_of(st.integers(0, rules.MARKED), st.integers(0, 255).map(lambda hops: rules.MARK | hops))


@given(marks)
def test_an_id_counts_its_hops_to_the_last_if_it_has_the_mark(mesh_id):
    is_marked = mesh_id >> 8 == rules.MARK >> 8
    assert rules.hops_of(mesh_id) == (mesh_id & 255 if is_marked else 0)
    assert rules.hop_to_add(mesh_id) == (0 if not is_marked else -1 if mesh_id & 255 == 255 else 1)


@given(st.lists(st.integers(0, 4), max_size=30))
def test_an_id_is_in_a_loop_if_its_hops_increase_often_enough_in_succession(hops):
    rises = 0
    for before, now in pairwise(hops):
        rises = rules.rises_after(rises, True, now, before)
    changes = [after - before for before, after in pairwise(hops)]
    last_fall = max((index for index, change in enumerate(changes) if change < 0), default=-1)
    farther = sum(change > 0 for change in changes[last_fall + 1 :])
    assert rules.is_circulating(rises) == (farther >= rules.MOST_RISES)


def test_the_count_restarts_with_the_id_of_another_owner():
    assert rules.rises_after(rules.MOST_RISES, False, 9, 3) == 0


def test_a_request_to_a_recently_heard_neighbor_is_repeated_at_the_next_tick():
    assert [rules.cap_ticks(ticks, 2) for ticks in range(6)] == [0, 1, 1, 1, 1, 1]
