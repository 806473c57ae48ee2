"""TinyMQ's rules on plain numbers, and that the fast twin uses the same rules."""

import inspect
import pathlib
import re
from collections import namedtuple

import pytest

from workbench.protocols.contract import NOBODY
from workbench.protocols.tinymq import TinyMQ, fast, rules
from workbench.protocols.tinymq.wire import LEASE_FOREVER_S, LONGEST_KEY

SECOND = 1_000_000
Path = namedtuple("Path", ("epoch", "hops", "next_hop", "risen_epoch"))
KNOWN = Path(5, 3, 20, 3)


def test_fast_twin_uses_all_rules_of_the_node():
    sources = "".join(path.read_text(encoding="utf-8") for path in pathlib.Path(fast.__file__).parent.glob("*.py"))
    names = {name for name, rule in inspect.getmembers(rules, inspect.isfunction) if rule.__module__ == rules.__name__}
    assert {name for name in names if not re.search(rf"\b{name}\(", sources)} == {
        "times"
    }  # called for the settings, before a run


@pytest.mark.parametrize(
    ("epoch", "is_child", "key_length", "may"),
    [
        (5, False, 3, True),
        (4, False, 3, False),
        (3, False, 3, False),
        (5, True, 3, False),
        (5, False, LONGEST_KEY, False),
    ],
)
def test_parent_needs_a_newer_epoch_than_this_node_ever_had(epoch, is_child, key_length, may):
    assert rules.may_be_parent(epoch, 4, is_child, key_length) is may


def test_first_heard_neighbor_becomes_the_parent_and_of_two_the_lower_address():
    assert rules.is_better_parent(since_us=10, address=9, best_since_us=11, best_address=1)
    assert not rules.is_better_parent(11, 1, 10, 9)
    assert rules.is_better_parent(10, 1, 10, 9)


@pytest.mark.parametrize(
    ("epoch", "hops", "neighbor", "is_awaited", "is_better"),
    [
        (4, 1, 7, False, False),  # an older epoch
        (5, 2, 30, True, True),  # the same epoch, nearer
        (5, 3, 10, True, True),  # as near, a lower number
        (5, 3, 30, False, False),
        (5, 4, 10, False, False),
        (6, 2, 30, True, True),  # a newer epoch, nearer
        (6, 3, 30, False, True),  # as near
        (6, 4, 20, False, True),  # farther, but from the next hop itself
        (6, 4, 30, False, False),  # farther, and the known path is still valid
        (6, 3, 30, True, False),  # not nearer, while a nearer path is late
        (6, 3, 20, True, False),
    ],
)
def test_path_to_a_root_is_replaced_as_in_dsdv(epoch, hops, neighbor, is_awaited, is_better):
    assert rules.is_better_path(KNOWN, False, epoch, hops, neighbor, is_awaited) is is_better


@pytest.mark.parametrize(
    ("epoch", "hops", "is_late"),
    [
        (4, 2, True),
        (3, 2, True),
        (2, 2, False),  # in that epoch the known path may have been as near
        (4, 3, False),
        (5, 2, False),  # its epoch is accepted
    ],
)
def test_path_with_an_old_epoch_is_late_if_it_is_shorter_than_all_since_its_epoch(epoch, hops, is_late):
    assert rules.is_late(KNOWN, epoch, hops) is is_late


def test_late_path_is_awaited_until_it_has_not_been_announced_for_long():
    assert not rules.is_awaited(-1, 10 * SECOND, 40 * SECOND)
    assert rules.is_awaited(0, 40 * SECOND, 40 * SECOND)
    assert not rules.is_awaited(0, 40 * SECOND + 1, 40 * SECOND)


def test_broken_path_is_repaired_only_by_a_newer_epoch():
    broken = KNOWN._replace(next_hop=None)
    assert not rules.is_better_path(broken, True, 5, 1, 1, False)
    assert rules.is_better_path(broken, True, 6, 9, 1, True)


def test_root_needs_no_path_to_its_own_tree():
    assert not rules.is_better_path(Path(5, 0, NOBODY, 1), False, 6, 1, 1, False)


def test_frame_waits_twice_as_long_each_time_up_to_eight_times():
    assert [rules.retry_wait_us(50, tries) for tries in range(6)] == [50, 100, 200, 400, 400, 400]


def test_frames_to_a_neighbor_that_is_heard_have_three_times_as_many_tries():
    assert [rules.is_given_up(tries, 10, False) for tries in (10, 11)] == [False, True]
    assert [rules.is_given_up(tries, 10, True) for tries in (30, 31)] == [False, True]


@pytest.mark.parametrize(("later", "earlier"), [(1, 0), (0, 255), (127, 0), (3, 250)])
def test_rounds_are_compared_modulo_256(later, earlier):
    assert rules.is_newer_round(later, earlier)
    assert not rules.is_newer_round(earlier, later) and not rules.is_newer_round(later, later)
    assert rules.next_round(255) == 0


def test_lease_lasts_to_the_end_of_the_subscription_and_never_ends_it_at_once():
    assert rules.asked_lease_s(150, 20 * SECOND + 1, 0) == 21
    assert rules.asked_lease_s(150, 1000 * SECOND, 0) == 150
    assert rules.asked_lease_s(LEASE_FOREVER_S, 10**6 * SECOND, 0) == LEASE_FOREVER_S - 1
    assert rules.lease_left_s(5, 5) == 1


def test_settings_are_computed_once_for_all_nodes():
    times = TinyMQ(info_s=2.5, lost_after=4.0, retry_ms=50.0, retries=10).times
    assert (times.info_us, times.lost_after_us, times.retry_us) == (2_500_000, 10_000_000, 50_000)
    assert times.grant_wait_us == 12 * 8 * 50_000
    assert TinyMQ(refresh_s=0.0).times.longest_lease_s == LEASE_FOREVER_S


def test_silent_neighbor_is_probed_after_half_the_time_until_it_is_lost():
    assert not rules.is_in_doubt(0, 20 * SECOND, 40 * SECOND)
    assert rules.is_in_doubt(0, 20 * SECOND + 1, 40 * SECOND)


def test_info_of_a_change_names_more_neighbors_and_none_without_repair():
    assert rules.most_named(250_000, 10 * SECOND) > rules.most_named(0, 10 * SECOND) > 0
    assert rules.most_named(250_000, 0) == rules.most_named(0, 0) == 0


def test_neighbor_that_names_this_node_is_named_unless_it_was_named_recently():
    assert rules.remaining_namings(0, -1, 5, 40 * SECOND) == rules.NAMED_AGAIN
    assert rules.remaining_namings(2, 0, 20 * SECOND, 40 * SECOND) == 2
    assert rules.remaining_namings(0, 0, 20 * SECOND + 1, 40 * SECOND) == rules.NAMED_AGAIN
