"""Topic strings: valid ones, their items, matching, and that a filter never excludes a match."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import AttributeFormatError, ParameterError
from workbench.protocols.dps.bloom import BitVector, CountingVector, routes
from workbench.protocols.dps.topics import (
    check_publication_topic,
    check_subscription_topic,
    matches,
    publication_items,
    separator_bytes,
    subscription_items,
)

SEPARATORS = "/."


def joined(segments, between):
    return "".join(a + b for a, b in zip(segments, [*between, ""], strict=True))


@st.composite
def topics(draw, segments, last):
    """Draw topics whose ends are not empty, with separators of both kinds."""
    inner = draw(st.lists(segments, max_size=4))
    ends = [draw(segments.filter(bool)) for _ in range(draw(st.integers(0, 1)))] + [draw(last.filter(bool))]
    parts = [ends[0], *inner, *ends[1:]] if len(ends) > 1 else ends
    return joined(parts, [draw(st.sampled_from(SEPARATORS)) for _ in parts[1:]])


WORDS = st.sampled_from(("", "a", "b", "ab", "é"))
PUBLICATIONS = topics(WORDS, WORDS)
SUBSCRIPTIONS = topics(st.sampled_from(("", "a", "b", "é", "+", "+")), st.sampled_from(("a", "b", "+", "#")))


def filter_of(items, length=8192):
    return BitVector.of(items, length)


# Facts of the C implementation


@pytest.mark.parametrize(
    ("topic", "items"),
    [
        ("a/b/c", ["a/b/c", "a/", "a/b/", "/b/", "//c", "//+", "//#", "/#", "#"]),
        ("foo/bar", ["foo/bar", "foo/", "/bar", "/+", "/#", "#"]),
        ("a", ["a", "+", "#"]),
        ("a//b", ["a//b", "a/", "a//", "//", "//b", "//+", "//#", "/#", "#"]),
        ("a.b/c", ["a.b/c", "a.", "a.b/", ".b/", "./c", "./+", "./#", ".#", "#"]),
    ],
)
def test_publication_has_its_items_in_order(topic, items):
    assert publication_items(topic, SEPARATORS) == items
    assert publication_items(topic.encode(), SEPARATORS) == [item.encode() for item in items]


def test_publication_without_wildcards_is_one_item():
    assert publication_items("a/b/c", wildcards=False) == ["a/b/c"]


@pytest.mark.parametrize(
    ("topic", "items"),
    [
        ("a/b/c", ["a/b/c"]),
        ("a/+/c", ["a/", "//c"]),
        ("+/b/#", ["/b/", "//#"]),
        ("+/+", ["/+"]),
        ("+/#", ["/#"]),
        ("+/+/+", ["//+"]),
        ("a/+", ["a/"]),
        ("a/#", ["a/"]),
        ("+", []),
        ("#", []),
    ],
)
def test_subscription_has_its_items_in_order(topic, items):
    assert subscription_items(topic) == items
    assert subscription_items(topic.encode()) == [item.encode() for item in items]


@pytest.mark.parametrize(
    ("publication", "subscription", "matched"),
    [
        ("a/b/c", "a/b/c", True),
        ("a/b/c", "a/+/c", True),
        ("a/b/c", "a/#", True),
        ("a/b/c", "#", True),
        ("a/b/c", "+/+/+", True),
        ("a/b/c", "+/+", False),
        ("a/b/c", "+", False),
        ("a/b/c", "a/b", False),
        ("a", "a/#", False),
        ("a/b", "a/+/#", False),
        ("a//c", "a/+/c", True),
        ("a//c", "a/#", False),
        ("a//c", "a/+/#", True),
        ("A", "a", False),
        ("a.b", "a/b", False),
        ("a.b/c", "a.+/c", True),
    ],
)
def test_topics_match_segment_by_segment(publication, subscription, matched):
    assert matches([publication], [subscription], SEPARATORS) is matched
    assert matches(publication.encode(), subscription.encode(), SEPARATORS) is matched


def test_each_subscribed_topic_needs_a_matching_published_topic():
    assert matches(["1/1", "1/2", "2/1"], ["1/#", "2/+"])
    assert not matches(["1/1", "1/2"], ["1/#", "2/+"])
    assert not matches([], ["a"])


def test_all_vectors_of_items(dps_reference):
    kinds = {
        "publication_topics": publication_items,
        "publication_topics_nowild": lambda topic, separators: publication_items(topic, separators, wildcards=False),
        "subscription_topics": subscription_items,
    }
    for kind, items_of in kinds.items():
        for case in dps_reference[kind]:
            if case["status"]:
                with pytest.raises(AttributeFormatError):
                    items_of(case["topic"], case["separators"])
                continue
            items = items_of(case["topic"], case["separators"])
            for length in (64, 128, 256, 8192):
                assert filter_of(items, length).positions() == case[f"bits_{length}"], case


def test_all_vectors_of_matches_and_routes(dps_reference):
    for case in dps_reference["match"]:
        separators, wild = case["separators"], not case["no_wild"]
        assert matches(case["pub"], case["sub"], separators, wildcards=wild) is case["string_match"], case
        for length in (64, 128, 256, 8192):
            published = [item for topic in case["pub"] for item in publication_items(topic, separators, wild)]
            subscribed = [item for topic in case["sub"] for item in subscription_items(topic, separators)]
            publication, subscription = filter_of(published, length), filter_of(subscribed, length)
            assert publication.includes(subscription) is case[f"bloom_{length}"], (case, length)
            routed = routes(publication, subscription, subscription.fuzzy_hash())
            assert routed is case[f"routed_{length}"], (case, length)


# Properties


def naive_match(publication, subscription):
    """Return whether topics match by the stated rule, without a regular expression."""
    if subscription == "#":
        return bool(publication) and publication[0] not in SEPARATORS
    ends = [at for at, character in enumerate(subscription) if character in SEPARATORS]
    ours = [at for at, character in enumerate(publication) if character in SEPARATORS]
    end = ends[0] if ends else len(subscription)
    at = ours[0] if ours else len(publication)
    if subscription[:end] not in ("+", publication[:at]) or publication[at : at + 1] != subscription[end : end + 1]:
        return False
    return not ends or naive_match(publication[at + 1 :], subscription[end + 1 :])


@given(PUBLICATIONS, SUBSCRIPTIONS)
def test_match_follows_the_stated_rule(publication, subscription):
    assert matches(publication, subscription, SEPARATORS) == naive_match(publication, subscription)


@given(st.lists(PUBLICATIONS, min_size=1, max_size=3), st.lists(SUBSCRIPTIONS, min_size=1, max_size=3))
def test_filter_never_excludes_a_match(publications, subscriptions):
    if not matches(publications, subscriptions, SEPARATORS):
        return
    published = {item for topic in publications for item in publication_items(topic, SEPARATORS)}
    subscribed = {item for topic in subscriptions for item in subscription_items(topic, SEPARATORS)}
    assert subscribed <= published
    for length in (64, 8192):
        assert filter_of(published, length).includes(filter_of(subscribed, length))


@given(PUBLICATIONS, st.lists(SUBSCRIPTIONS, min_size=1, max_size=5))
def test_link_forwards_publications_that_match_any_subscription_behind_it(publication, subscriptions):
    filters = [filter_of(subscription_items(topic, SEPARATORS), 256) for topic in subscriptions]
    interests, needs = CountingVector(256), CountingVector(256)
    for vector in filters:
        interests.add(vector)
        needs.add(BitVector.from_bytes(vector.fuzzy_hash()))
    matched = [
        not vector.is_empty
        for topic, vector in zip(subscriptions, filters, strict=True)
        if matches(publication, topic, SEPARATORS)
    ]
    if any(matched):
        published = filter_of(publication_items(publication, SEPARATORS), 256)
        assert routes(published, interests.union(), needs.intersection().to_bytes())


@given(PUBLICATIONS)
def test_topic_matches_itself_and_is_its_first_item(topic):
    assert matches(topic, topic, SEPARATORS)
    assert publication_items(topic, SEPARATORS)[0] == topic
    assert subscription_items(topic, SEPARATORS) == [topic]
    assert matches(topic, topic, SEPARATORS, wildcards=False)


@given(SUBSCRIPTIONS)
def test_text_and_bytes_have_the_same_items(topic):
    assert [item.encode() for item in subscription_items(topic, SEPARATORS)] == subscription_items(
        topic.encode(), SEPARATORS
    )


@given(st.text(alphabet="a/.+#", max_size=8))
def test_any_text_is_valid_or_refused(topic):
    try:
        subscription_items(topic, SEPARATORS)
    except AttributeFormatError:
        with pytest.raises(AttributeFormatError):
            publication_items(topic, SEPARATORS)


@given(st.binary(max_size=12), SUBSCRIPTIONS)
def test_any_published_bytes_can_be_compared(publication, subscription):
    assert matches([publication], [subscription], SEPARATORS) in (True, False)


def test_topic_that_is_not_utf8_keeps_its_bytes():
    topic = b"\xff/b".decode("utf-8", "surrogateescape")
    assert [item.encode("utf-8", "surrogateescape") for item in publication_items(topic)] == publication_items(
        b"\xff/b"
    )
    assert matches(b"\xff/b", topic)


# Bad input


@pytest.mark.parametrize(
    ("topic", "reason"),
    [
        ("", "empty"),
        ("/a", "position 0 is a separator"),
        ("a/", "position 1 is a separator"),
        ("a/#/b", "position 2 is a #"),
        ("a/+b", "the wildcard at position 2 must be a whole segment"),
        ("a#", "the wildcard at position 1 must be a whole segment"),
        ("+/", "position 1 is a separator"),
        ("a/b/++", "the wildcard at position 4 must be a whole segment"),
        ("é+", "the wildcard at position 2 must be a whole segment"),
        ("x" * 2049, "position 2048"),
        ("\ud800", "lone surrogate"),
    ],
)
def test_bad_topic_is_an_error_that_names_the_position(topic, reason):
    for check in (check_subscription_topic, subscription_items):
        with pytest.raises(AttributeFormatError, match=reason):
            check(topic)
    with pytest.raises(AttributeFormatError):
        publication_items(topic)


@pytest.mark.parametrize("topic", ["a/+", "#", "a+b"])
def test_publication_with_a_wildcard_is_refused(topic):
    with pytest.raises(AttributeFormatError, match="only subscriptions may have one"):
        check_publication_topic(topic)


def test_longest_topic_is_2048_bytes():
    assert check_publication_topic("x" * 2048) == b"x" * 2048
    with pytest.raises(AttributeFormatError, match="has 2050 bytes"):
        check_publication_topic("é" * 1025)


def test_empty_segments_in_the_middle_are_allowed():
    assert check_subscription_topic("a//+/#") == b"a//+/#"


def test_topic_is_one_segment_without_separators():
    assert subscription_items("a/b", separators="") == ["a/b"]
    assert publication_items("a/b", separators="") == ["a/b", "+", "#"]
    assert matches("a/b", "+", separators="")
    assert matches("a/b", "#", separators="")


@pytest.mark.parametrize(("separators", "reason"), [("/+", "wildcard"), ("#", "wildcard"), ("abcdefghijklm", "12")])
def test_bad_separators_are_refused(separators, reason):
    with pytest.raises(ParameterError, match=reason):
        separator_bytes(separators)
    with pytest.raises(ParameterError, match=reason):
        publication_items("q", separators)


@pytest.mark.parametrize("separators", ["]", "^", "-/", "\\", ".", "]^-"])
def test_separators_are_not_special_characters(separators):
    topic = "a" + separators[0] + "b"
    assert matches(topic, "a" + separators[0] + "+", separators)
    assert len(publication_items(topic, separators)) == 6
