"""A node's subscriptions: valid ones, delivery of samples, and the end of subscriptions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench import draws
from workbench.attributes.text import parse, to_text
from workbench.errors import AttributeFormatError
from workbench.protocols.contract import NUMBERS_PER_BOOT, Delivered, Node
from workbench.protocols.subscriptions import SECOND_US, Subscription

HOT = parse("TEMP GE 25")


def make_node(boot=0):
    node = Node(1, None, draws.Stream(1))
    node.start(0, boot)
    return node


def publish(node, text, now):
    node.deliver_to(node.subscriptions.open, parse(text), 4, "data", 9, 3, now)


def taken(subscription):
    return [to_text(sample) for sample in subscription]


def test_subscriptions_are_numbered_from_the_first_number_of_this_boot():
    for boot, first in ((0, 0), (1, NUMBERS_PER_BOOT), (256, 0)):
        node = make_node(boot)
        assert [node.subscribe(HOT, 0).number for _ in range(3)] == [first, first + 1, first + 2]


def test_number_of_an_ended_subscription_is_not_reused():
    node = make_node()
    node.subscribe(HOT, 0).unsubscribe(0)
    assert node.subscribe(HOT, 0).number == 1


def test_subscription_without_constraints_is_refused_unless_it_is_explicit():
    node = make_node()
    for nothing in ((), parse("TEMP IS 25")):
        with pytest.raises(AttributeFormatError):
            node.subscribe(nothing, 0)
        assert node.subscriptions.open == []
    assert node.subscribe((), 0, match_all=True).number == 0


def test_number_of_a_refused_subscription_is_given_to_the_next():
    node = make_node()
    refused, second = Subscription(node, HOT, 0), Subscription(node, HOT, 0)
    assert node.subscriptions.add(second) is second
    assert (refused.number, second.number, node.subscribe(HOT, 0).number) == (0, 0, 1)
    assert not node.subscriptions.end(refused)


def test_seconds_become_whole_microseconds_and_none_means_for_ever():
    node = make_node()
    times = [(None, None), (0, 7), (1, 7 + SECOND_US), (0.0000015, 8), (2.5, 7 + 2500000)]
    assert [node.subscribe(HOT, 7, expires_s).expires_us for expires_s, _ in times] == [end for _, end in times]


def test_attributes_of_any_iterable_are_stored_as_a_tuple():
    node = make_node()
    assert node.subscribe(list(HOT), 0).attributes == HOT
    assert node.subscribe((attribute for attribute in HOT), 0).attributes == HOT


def test_each_matching_sample_is_delivered_with_an_event_in_the_order_of_subscriptions():
    node = make_node()
    warm, hot, all_ = [node.subscribe(parse(text), 0) for text in ("TEMP GE 20", "TEMP GE 25", "TEMP EQ_ANY")]
    publish(node, "TEMP IS 21", 5)
    publish(node, "TEMP IS 30", 5)
    assert [taken(subscription) for subscription in (warm, hot, all_)] == [
        ["TEMP IS 21", "TEMP IS 30"],
        ["TEMP IS 30"],
        ["TEMP IS 21", "TEMP IS 30"],
    ]
    assert node.take_events() == [
        Delivered(4, "data", 9, 3, number, parse(text))
        for number, text in (
            (0, "TEMP IS 21"),
            (2, "TEMP IS 21"),
            (0, "TEMP IS 30"),
            (1, "TEMP IS 30"),
            (2, "TEMP IS 30"),
        )
    ]


def test_samples_are_read_once_and_in_order_of_age():
    node = make_node()
    hot = node.subscribe(HOT, 0)
    publish(node, "TEMP IS 26", 0)
    publish(node, "TEMP IS 27", 0)
    assert taken(hot) == ["TEMP IS 26", "TEMP IS 27"]
    assert taken(hot) == hot.take() == []


def test_subscription_gets_nothing_after_its_end_even_before_its_expiry_is_noticed():
    node = make_node()
    short = node.subscribe(HOT, 10, expires_s=1)
    for now in (SECOND_US + 9, SECOND_US + 10, SECOND_US + 11):
        publish(node, "TEMP IS 26", now)
    assert len(short.take()) == 1
    assert [short.is_over(now) for now in (SECOND_US + 9, SECOND_US + 10)] == [False, True]
    assert node.subscriptions.open == [short]


def test_expire_closes_and_returns_expired_subscriptions():
    node = make_node()
    first, for_ever, second = [node.subscribe(HOT, 0, expires_s) for expires_s in (1, None, 2)]
    assert node.subscriptions.expire(SECOND_US - 1) == []
    assert node.subscriptions.expire(SECOND_US) == [first]
    assert node.subscriptions.expire(5 * SECOND_US) == [second]
    assert node.subscriptions.open == [for_ever]


def test_ending_a_subscription_twice_or_at_another_node_does_nothing():
    node, other_node = make_node(), make_node()
    first, second, foreign = node.subscribe(HOT, 0), node.subscribe(HOT, 0), other_node.subscribe(HOT, 0)
    assert node.subscriptions.end(first)
    first.unsubscribe(0)
    node.unsubscribe(foreign, 0)
    assert not node.subscriptions.end(first) and not node.subscriptions.end(foreign)
    assert node.subscriptions.open == [second] and other_node.subscriptions.open == [foreign]


def test_subscriptions_are_found_by_identity_of_their_request():
    node = make_node()
    subscriptions = [node.subscribe(HOT, 0) for _ in range(3)]
    request, same = [1], [1]
    subscriptions[0].request = subscriptions[2].request = request
    subscriptions[1].request = same
    assert node.subscriptions.of(request) == [subscriptions[0], subscriptions[2]]
    node.subscriptions.end(subscriptions[0])
    assert node.subscriptions.of(request) == [subscriptions[2]]


@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "end", "expire", "publish"]), st.integers(0, 9), st.integers(0, 3)),
        max_size=30,
    )
)
def test_samples_are_delivered_to_exactly_the_open_matching_subscriptions(steps):
    node, now, subscriptions, ended, expected = make_node(), 0, [], [], []
    for action, number, seconds in steps:
        now += seconds * SECOND_US
        if action == "add":
            subscriptions.append(node.subscribe(parse(f"TEMP GE {number}"), now, seconds or None))
            ended.append(None if seconds == 0 else now + seconds * SECOND_US)
            expected.append(0)
        elif action == "end" and number < len(subscriptions):
            subscriptions[number].unsubscribe(now)
            ended[number] = min(now, now if ended[number] is None else ended[number])
        elif action == "expire":
            assert all(subscription.is_over(now) for subscription in node.subscriptions.expire(now))
        elif action == "publish":
            publish(node, f"TEMP IS {number}", now)
            for i in range(len(subscriptions)):
                is_open = ended[i] is None or now < ended[i]
                expected[i] += is_open and subscriptions[i].attributes[0].value <= 100 * number
    assert [len(subscription.take()) for subscription in subscriptions] == expected
    assert len(node.take_events()) == sum(expected)
    assert [subscription.number for subscription in subscriptions] == list(range(len(subscriptions)))


@given(st.integers(0, 1 << 40), st.floats(0, 1e6), st.integers(-2, 2))
def test_subscription_is_over_exactly_from_its_end_on(now, expires_s, around):
    subscription = Subscription(make_node(), HOT, now, expires_s)
    assert now <= subscription.expires_us <= now + expires_s * SECOND_US
    assert subscription.is_over(subscription.expires_us + around) == (around >= 0)
