"""A single DPS node with scripted neighbors: its links, their timers, and its treatment of publications."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.network import SECOND
from tests.protocols.dps.alone import CHANGE, HIGH, LOW, NONE, SAK, Alone, acknowledgement, subscription
from workbench.attributes.text import parse
from workbench.errors import AttributeFormatError, EncodeError, ParameterError
from workbench.protocols.contract import Forwarded, Held
from workbench.protocols.dps import DPS, wire
from workbench.protocols.dps.automaton import ACTIVE, LINKING, MUTED, UNLINKING
from workbench.protocols.dps.bloom import BitVector
from workbench.protocols.dps.events import Acknowledged, LinkSet
from workbench.protocols.dps.series import publication_filter, subscription_filter
from workbench.protocols.dps.wire import coap


def publication(topics=("a/b",), sequence=1, id=b"p" * 16, ttl_s=0, lifetime_s=0, hops=0, acknowledge=False, data=b"x"):
    vector = publication_filter(topics, DPS())
    return wire.Publication(1, None, ttl_s, hops, lifetime_s, id, sequence, acknowledge, vector, topics, data)


def test_an_unanswered_link_is_requested_at_ticks_2_3_4_and_given_up_at_5():
    alone = Alone()
    alone.node.link(1, 0)
    ((to, first),) = alone.sent()
    assert (to, first.sequence, first.flags, first.interests) == (1, 1, SAK, NONE)
    repeated = alone.until(60)
    assert repeated == [(second, 1, first) for second in (4, 6, 8)]
    assert alone.state() is None
    states = [event.detail for event in alone.node.events if isinstance(event, LinkSet)]
    assert states == ["linking", "gone"]


def test_retries_are_parameters():
    alone = Alone(update_s=1.0, retry_ticks=3, retries=1)
    alone.node.link(1, 0)
    alone.sent()
    assert [second for second, _, _ in alone.until(60)] == [3]
    assert alone.state() is None


def test_a_silent_link_sends_a_keep_alive_that_requests_an_answer():
    alone = Alone().linked()
    alone.node.subscribe_topics("a/b", 0)
    alone.says(1, acknowledgement(1, 1))
    (sign, *_) = alone.until(33)
    assert (sign[0], sign[2].sequence, sign[2].flags, sign[2].interests) == (32, 1, CHANGE | SAK, NONE)
    alone.says(1, acknowledgement(1, 1))
    assert alone.until(64.9) == []
    assert [second for second, _, _ in alone.until(100)] == [65, 69, 71, 73]
    assert alone.state() is None


def test_own_changes_are_announced_at_once_and_learnt_changes_later_together():
    alone = Alone().linked(1).linked(2)
    alone.until(5)
    alone.node.subscribe_topics("a/b", alone.now)
    messages = alone.sent()
    assert [to for to, _ in messages] == [1, 2]
    for neighbor in (1, 2):
        alone.says(neighbor, acknowledgement(1, 1))
    assert [to for to, _ in alone.says(1, subscription(2, SAK | CHANGE, ["c/d"]))] == [1]
    alone.until(6)
    alone.says(1, subscription(3, SAK | CHANGE, ["e/f"]))
    ((second, to, learnt),) = alone.until(8)
    expected = subscription_filter(("c/d", "e/f"), DPS())
    assert (second, to, learnt.interests, learnt.sequence, learnt.flags) == (7, 2, expected, 2, CHANGE | SAK)


def test_changes_during_an_outstanding_answer_are_announced_after_it():
    alone = Alone().linked()
    alone.node.subscribe_topics("a/b", 0)
    alone.node.subscribe_topics("c/d", 0)
    ((_, first),) = alone.sent()
    assert first.interests == subscription_filter(["a/b"], DPS())
    alone.says(1, acknowledgement(1, 1))
    ((_, _, second),) = alone.until(3)
    assert (second.sequence, second.interests) == (2, subscription_filter(["c/d"], DPS()))


def test_first_answer_contains_interests_and_is_repeated_with_them():
    alone = Alone()
    alone.node.subscribe_topics("a/b", 0)
    ((_, answer),) = alone.says(1, subscription(1, SAK))
    assert (answer.sequence, answer.flags, answer.acknowledged) == (1, SAK | CHANGE, 1)
    # The answer was lost: the repeated message gets the same answer.
    assert alone.says(1, subscription(1, SAK)) == [(1, answer)]
    assert alone.until(5) == [(4, 1, answer)]
    alone.says(1, acknowledgement(1, 1))
    assert alone.until(9) == [] and alone.state() == ACTIVE


def test_crossing_subscriptions_are_both_answered_without_interests_and_stay_outstanding():
    alone = Alone()
    alone.node.subscribe_topics("a/b", 0)
    alone.node.link(1, 0)
    alone.sent()
    ((_, answer),) = alone.says(1, subscription(1, SAK, ["c/d"]))
    assert (answer.interests, answer.sequence, answer.flags) == (None, 1, 0)
    assert alone.state() == LINKING
    assert [second for second, _, _ in alone.until(5)] == [4]
    alone.says(1, acknowledgement(1, 1))
    assert alone.state() == ACTIVE and alone.node.links.remotes[1].inbound is not None


def test_old_revisions_unknown_neighbors_and_changes_without_a_base_are_dropped():
    alone = Alone().linked(1, ["a/b"])
    alone.says(1, subscription(2, SAK | CHANGE))
    assert alone.says(1, subscription(1, SAK | CHANGE)) == []
    assert alone.says(2, acknowledgement(1, 1)) == []
    assert alone.says(2, subscription(1, SAK | CHANGE)) == []
    assert alone.says(2, wire.Subscription(1, None, 1, SAK | wire.UNLINK, HIGH, None, None)) == []
    assert alone.says(1, acknowledgement(9, 9)) == []
    assert alone.drops() == {"stale": 2, "no_base": 1, "unknown": 2}
    assert alone.node.links.remotes[1].inbound[0] == subscription_filter(["a/b"], DPS())


def test_a_change_without_its_base_is_answered_with_all_interests_to_restart_both_ends():
    alone = Alone().linked(1, ["a/b"])
    alone.node.subscribe_topics("c/d", 0)
    alone.says(1, acknowledgement(1, alone.node.links.remotes[1].revision))
    ((to, all_of_them),) = alone.says(1, subscription(4, SAK | CHANGE))
    assert (to, all_of_them.flags, all_of_them.interests) == (1, SAK, subscription_filter(["c/d"], DPS()))
    assert alone.says(1, subscription(5, SAK | CHANGE)) == []  # while these interests may be in transit
    assert alone.drops() == {"no_base": 2}
    assert (alone.state(), alone.node.links.remotes[1].inbound) == (ACTIVE, None)


def test_first_interests_over_a_link_active_only_at_this_end_are_answered_in_full():
    alone = Alone()
    alone.node.subscribe_topics("a/b", 0)
    alone.node.link(1, 0)
    alone.sent()
    alone.says(1, acknowledgement(0, 1))  # without interests: none arrived over this link
    assert (alone.state(), alone.node.links.remotes[1].inbound_revision) == (ACTIVE, 0)
    ((_, answer),) = alone.says(1, subscription(7, SAK, ["c/d"]))
    assert (answer.acknowledged, answer.interests) == (7, subscription_filter(["a/b"], DPS()))


def test_a_late_neighbor_is_not_given_up_right_after_its_first_message():
    alone = Alone(update_s=1.0, retry_ticks=2, retries=3)
    alone.node.link(1, 0)
    alone.until(4.9)
    alone.says(1, subscription(1, SAK))
    assert [second for second, _, _ in alone.until(7.9)] == [5, 6, 7]
    assert alone.state() == LINKING
    alone.until(8)
    assert alone.state() is None


def test_a_repeated_revision_is_answered_and_not_applied():
    alone = Alone().linked(1, ["a/b"])
    ((_, answer),) = alone.says(1, subscription(1, SAK | CHANGE, ["c/d"]))
    assert answer.acknowledged == 1
    assert alone.node.links.remotes[1].inbound[0] == subscription_filter(["a/b"], DPS())


def test_a_restarted_neighbor_is_linked_again():
    alone = Alone()
    alone.node.subscribe_topics("x", 0)
    alone.linked(1, ["a/b"])
    alone.says(1, subscription(2, SAK | CHANGE, ["c/d"]))
    ((_, answer),) = alone.says(1, subscription(1, SAK, ["e/f"], mesh_id=b"\xfe" * 16))
    # In full, and with a number that the neighbor has not used: its message may be an old one after all.
    assert (answer.sequence, answer.flags, answer.interests) == (2, SAK, subscription_filter(["x"], DPS()))
    assert alone.node.links.remotes[1].inbound[0] == subscription_filter(["e/f"], DPS())


def test_a_neighbor_that_was_given_up_gets_the_next_revision():
    alone = Alone()
    alone.node.link(1, 0)
    alone.until(20)
    alone.node.link(1, alone.now)
    assert [message.sequence for _, message in alone.sent()] == [2]


def test_the_same_lowest_mesh_id_from_two_neighbors_mutes_the_second():
    alone = Alone(recheck_s=0.0).linked(1, ["a/b"], mesh_id=LOW)
    ((_, answer),) = alone.says(2, subscription(1, SAK, ["c/d"], mesh_id=LOW))
    assert (answer.flags, answer.sequence, answer.interests) == (wire.MUTE, 0, None)
    assert (alone.state(1), alone.state(2)) == (ACTIVE, MUTED)
    # Interests, publications and keep-alives are not sent over this link; received ones are accepted.
    alone.node.subscribe_topics("a/b", 0)
    assert {to for to, _ in alone.sent()} == {1}
    assert {to for _, to, _ in alone.until(7)} == {1}
    before = len(alone.node.subscriptions.open[0].take())
    alone.says(2, publication())
    assert len(alone.node.subscriptions.open[0].take()) == before + 1


def test_the_own_mesh_id_from_a_neighbor_is_a_loop_but_not_the_last_one_sent():
    alone = Alone()
    own = alone.node.links.mesh_ids.own.to_bytes(16, "little")
    alone.linked(1, mesh_id=own)
    assert alone.state(1) == MUTED
    alone = Alone().linked(1, mesh_id=LOW)
    alone.says(1, subscription(2, SAK | CHANGE, mesh_id=LOW))
    assert alone.state(1) == ACTIVE


def test_a_neighbor_that_mutes_a_link_is_muted_too():
    alone = Alone()
    alone.node.link(1, 0)
    alone.says(1, acknowledgement(0, 1, wire.MUTE))
    assert alone.state() == MUTED and alone.node.next_wake is not None


def test_losing_an_active_link_unmutes_one_with_a_mesh_id_below_all():
    low = (1 << 100).to_bytes(16, "little")
    alone = Alone().linked(1, ["a/b"], mesh_id=low).linked(2, mesh_id=low)
    assert alone.state(2) == MUTED
    (_, answer), (to, unmute) = alone.says(1, wire.Subscription(1, None, 2, SAK | wire.UNLINK, HIGH, None, None))
    assert isinstance(answer, wire.SubscriptionAcknowledgement) and answer.acknowledged == 2
    assert (to, unmute.flags, alone.state(1)) == (2, SAK | wire.UNMUTE, None)
    assert int.from_bytes(unmute.mesh_id, "little") < int.from_bytes(low, "little")


def test_an_unmuting_neighbor_is_answered_with_an_unmute_and_interests():
    low, lower = ((1 << bit).to_bytes(16, "little") for bit in (100, 90))
    alone = Alone()
    alone.node.subscribe_topics("x", 0)
    alone.linked(1, ["a/b"], mesh_id=low).linked(2, ["c/d"], mesh_id=low)
    assert alone.state(2) == MUTED
    (_, own), (_, answer) = alone.says(2, subscription(2, SAK | CHANGE | wire.UNMUTE, ["e/f"], mesh_id=lower))
    expected = subscription_filter(("x", "a/b"), DPS())
    assert isinstance(own, wire.Subscription) and own.flags == SAK | wire.UNMUTE and own.interests == expected
    assert answer.flags == SAK and answer.interests == expected and answer.acknowledged == 2
    assert int.from_bytes(own.mesh_id, "little") < 1 << 90
    assert alone.node.links.remotes[2].inbound[0] == subscription_filter(["e/f"], DPS())
    alone.says(2, acknowledgement(2, answer.sequence))
    assert alone.state(2) == ACTIVE


def test_unmute_in_an_acknowledgement_is_an_error():
    alone = Alone().linked()
    assert alone.says(1, acknowledgement(1, 0, wire.UNMUTE)) == [] and alone.drops() == {"malformed": 1}


def test_an_acknowledgement_that_requests_one_without_interests_is_an_error():
    alone = Alone().linked(1, ["a/b"])
    assert alone.says(1, acknowledgement(2, 0, SAK | CHANGE | wire.UNLINK)) == []
    assert alone.drops() == {"malformed": 1} and alone.state() == ACTIVE


def test_unlinking_waits_for_an_outstanding_message_and_ends_with_its_answer():
    alone = Alone()
    alone.node.link(1, 0)
    alone.node.unlink(1, 0)
    assert [message.flags for _, message in alone.sent()] == [SAK]
    ((_, unlink),) = alone.says(1, acknowledgement(0, 1, CHANGE))
    assert (unlink.flags, unlink.sequence, unlink.needs) == (SAK | wire.UNLINK, 2, None)
    assert alone.state() == UNLINKING
    alone.says(1, acknowledgement(0, 2, CHANGE))
    assert alone.state() is None and alone.until(100) == []


def test_the_number_of_links_is_bounded():
    alone = Alone(max_links=2).linked(1).linked(2)
    assert alone.says(3, subscription(1, SAK)) == [] and alone.drops() == {"full": 1}
    with pytest.raises(ParameterError, match="the node has 2 links, as many as max_links"):
        alone.node.link(4, 0)


def test_publication_is_forwarded_to_interested_neighbors_once_and_not_back():
    alone = Alone().linked(1, ["a/b"]).linked(2, ["a/+"]).linked(3, ["c"]).linked(4, ["a/b"])
    forwarded = alone.says(1, publication(hops=2))
    assert [(to, message.hops, message.port) for to, message in forwarded] == [(2, 3, 40000), (4, 3, 40000)]
    assert alone.says(2, publication()) == [] and alone.says(4, publication(sequence=1)) == []
    assert alone.drops() == {"duplicate": 2}
    # The next publication of the series: neighbor 4 has sent it already.
    assert [to for to, _ in alone.says(4, publication(sequence=2))] == [1, 2]
    assert alone.says(1, publication(sequence=1)) == [] and alone.drops()["stale"] == 1
    held_publications = [(event.sequence, event.value) for event in alone.node.events if isinstance(event, Held)]
    origin_part = wire.origin_of(b"p" * 16)[1] << 32
    assert held_publications == [(origin_part + 1, 3), (origin_part + 2, 1)]
    assert [event.value for event in alone.node.events if isinstance(event, Forwarded)] == [2, 2]


def test_protected_bytes_are_forwarded_unchanged():
    alone = Alone().linked(1, ["a/b"]).linked(2, ["a/b"])
    came = wire.decode(wire.encode(publication(ttl_s=3, lifetime_s=9)))
    ((_, onward),) = alone.says(1, came)
    assert (onward.protected, onward.body, onward.ttl_s) == (came.protected, came.body, 3)


def test_publications_with_impossible_lifetimes_are_dropped():
    alone = Alone()
    alone.says(1, publication(ttl_s=5, lifetime_s=4))
    alone.says(1, publication(ttl_s=-1))
    alone.says(1, publication(hops=65535))
    assert alone.drops() == {"ttl": 1, "not_retained": 1, "hops": 1}


def test_retained_publication_is_resent_with_its_remaining_seconds_and_replaced_by_the_next():
    alone = Alone().linked(1)
    alone.says(1, publication(ttl_s=20, lifetime_s=20))
    alone.until(3.5)
    answers = alone.says(2, subscription(1, SAK, ["a/b"]))
    assert [type(message) for _, message in answers] == [wire.SubscriptionAcknowledgement, wire.Publication]
    assert (answers[1][1].ttl_s, answers[1][1].lifetime_s, answers[1][1].hops) == (17, 20, 1)
    alone.says(1, publication(sequence=2, ttl_s=0))
    assert len(alone.node.publications.retained) == 0


def test_unchanged_interests_do_not_cause_retained_publications_to_be_resent():
    alone = Alone().linked(1, ["a/b"])
    alone.node.publish_topics("a/b", b"x", 0, ttl_s=300)
    alone.sent()
    signs = [alone.says(1, subscription(revision, SAK | CHANGE, filter=NONE)) for revision in range(2, 12)]
    needs = subscription_filter(["a/b"], DPS()).fuzzy_hash()
    signs += [
        alone.says(1, subscription(revision, SAK | CHANGE, filter=NONE)._replace(needs=needs)) for revision in (12, 13)
    ]
    messages_after_changes = [message for messages in signs[:1] + signs[10:11] for _, message in messages]
    # The needs changed twice: the publication is sent at once for the first change, later for the second.
    assert [type(message) for message in messages_after_changes].count(wire.Publication) == 1
    other_messages = [message for messages in signs[1:10] + signs[11:] for _, message in messages]
    assert {type(message) for message in other_messages} == {wire.SubscriptionAcknowledgement}


@pytest.mark.parametrize("is_ended_between", [False, True])
def test_a_neighbor_with_ever_new_interests_gets_retained_publications_once_per_update_s(is_ended_between):
    alone = Alone(update_s=2.0).linked(1)
    alone.node.publish_topics("a/b", b"x", 0, ttl_s=300)
    needs = subscription_filter(["a/b"], DPS()).fuzzy_hash()
    replies = alone.says(1, subscription(2, SAK | CHANGE, ["a/b"]))
    if is_ended_between:
        alone.says(1, wire.Subscription(1, None, 3, SAK | wire.UNLINK, HIGH, None, None))
        replies += alone.says(1, subscription(1, SAK, ["a/b"]))
    else:
        for revision in range(3, 40):
            change = subscription(revision, SAK | CHANGE, [f"{revision}"])
            replies += alone.says(1, change._replace(needs=needs))
    assert [type(message) for _, message in replies].count(wire.Publication) == 1
    later = [(second, message.ttl_s) for second, _, message in alone.until(10) if type(message) is wire.Publication]
    assert len(later) == 1 and later[0] == (2, 298)


def test_only_the_neighbor_with_changed_interests_gets_retained_publications():
    alone = Alone().linked(1, ["a/b"]).linked(2)
    alone.node.publish_topics("a/b", b"x", 0, ttl_s=300)
    alone.sent()
    replies = alone.says(2, subscription(2, SAK | CHANGE, ["a/b"]))
    assert [to for to, message in replies if type(message) is wire.Publication] == [2]


def test_the_number_of_retained_publications_is_bounded():
    alone = Alone(max_retained=3)
    for number in range(10):
        alone.says(1, publication(id=bytes([number]) * 16, ttl_s=100 + number, lifetime_s=200))
    ttls_s = [entry.message.ttl_s for entry in alone.node.publications.retained.values()]
    assert ttls_s == [107, 108, 109] and alone.drops()["full"] == 7


def test_retained_publications_of_others_cannot_replace_own_ones():
    alone = Alone(max_retained=2).linked(1)
    own = [alone.node.publish_topics(f"own/{number}", b"x", 0, ttl_s=3600) for number in range(2)]
    alone.says(1, publication(id=b"z" * 16, ttl_s=32767, lifetime_s=32767))
    assert alone.drops()["full"] == 1
    own[0].expire(0)
    for number in range(3):
        alone.says(1, publication(id=b"%016d" % number, ttl_s=9000 - number, lifetime_s=9000))
    entries = [(entry.is_own, entry.message.ttl_s) for entry in alone.node.publications.retained.values()]
    assert entries == [(True, 3600), (False, 8998)]
    own[0].publish(b"again", 0, 60)
    assert [entry.is_own for entry in alone.node.publications.retained.values()] == [True, True]
    assert alone.node.publish_topics("more", b"x", 0, ttl_s=3600).sequence == 1
    assert own[1].publication_id in alone.node.publications.retained._publications
    assert alone.node.publications.retained.get(own[0].publication_id) is None  # the own publication that expires first


def test_publication_with_very_many_topics_is_forwarded_but_not_matched_locally():
    alone = Alone().linked(1).linked(2, ["t/0"])
    subscription_here = alone.node.subscribe_topics("t/0", 0)
    alone.sent()
    topics = tuple(f"t/{number}" for number in range(257))
    ((to, onward),) = alone.says(1, publication(topics))
    assert (to, onward.topics, alone.drops()) == (2, topics, {"topics": 1})
    alone.says(1, publication(topics[:256], 2))
    assert [arrival.sequence for arrival in subscription_here] == [2]
    with pytest.raises(ParameterError, match="has 257 topics; it must have 1 to 256"):
        alone.node.publish_topics(topics, b"", 0)


def test_history_stores_all_linked_neighbors_and_few_others():
    alone = Alone(max_links=40)
    for neighbor in range(30):
        alone.linked(neighbor)
    for neighbor in range(100, 200):
        alone.says(neighbor, publication())
    for neighbor in range(30):
        alone.says(neighbor, publication())
    noted = alone.node.publications.history.get(b"p" * 16).neighbors
    assert sorted(noted) == [*range(30), *range(100, 116)]


def test_acknowledgement_is_forwarded_unchanged_to_the_neighbor_with_the_fewest_hops():
    alone = Alone().linked(1, ["a/b"]).linked(2, ["a/b"])
    subscription = alone.node.subscribe_topics("a/b", 0)
    alone.sent()
    alone.says(1, publication(hops=5, acknowledge=True))
    alone.says(2, publication(hops=1, acknowledge=True))
    (arrival,) = subscription
    alone.node.acknowledge(arrival, b"yes", 0)
    assert alone.sent() == [(2, wire.decode(wire.encode(wire.Acknowledgement(b"p" * 16, 1, b"yes"))))]
    passed = wire.Acknowledgement(b"p" * 16, 1, b"other")
    assert alone.says(1, passed) == [(2, wire.decode(wire.encode(passed)))]
    assert alone.says(2, passed) == [] and alone.says(1, passed._replace(acknowledged=2)) == []
    assert alone.says(1, passed._replace(publication_id=b"q" * 16)) == []
    assert alone.drops() == {"duplicate": 1, "no_way_back": 1, "unasked": 2}


def test_acknowledgement_follows_the_newest_publication_even_if_an_earlier_path_was_shorter():
    # The neighbor of an earlier publication over fewer hops may have restarted and lost its own reverse path.
    alone = Alone().linked(1, ["a/b"]).linked(2, ["a/b"])
    subscription = alone.node.subscribe_topics("a/b", 0)
    alone.sent()
    for neighbor, sequence, hops in ((1, 1, 0), (2, 1, 3), (2, 2, 4), (1, 1, 0)):
        alone.says(neighbor, publication(sequence=sequence, hops=hops, acknowledge=True))
    for arrival in subscription:
        alone.node.acknowledge(arrival, b"yes", 0)
    assert [to for to, _ in alone.sent()] == [2, 2]
    alone.says(1, publication(sequence=2, hops=1, acknowledge=True))
    passed = wire.Acknowledgement(b"p" * 16, 2, b"other")
    assert alone.says(2, passed) == [(1, wire.decode(wire.encode(passed)))]


def test_acknowledgement_reaches_the_series_and_an_unrequested_one_is_refused():
    alone = Alone().linked(1, ["a/b"])
    series = alone.node.publish_topics("a/b", b"", 0, acknowledge=True)
    alone.says(1, wire.Acknowledgement(series.publication_id, 1, b"yes"))
    assert [(answer.sequence, answer.data) for answer in series] == [(1, b"yes")]
    assert [event.value for event in alone.node.events if isinstance(event, Acknowledged)] == [3]
    subscription = alone.node.subscribe_topics("c", 0)
    alone.says(1, publication(("c",)))
    with pytest.raises(ParameterError, match="requests no acknowledgement"):
        alone.node.acknowledge(subscription.take()[0], b"", 0)


def test_publication_with_only_local_subscribers_is_not_sent():
    alone = Alone()
    subscription = alone.node.subscribe_topics("a/+", 0)
    series = alone.node.publish_topics(["a/b", "c"], b"1", 0, acknowledge=True)
    (arrival,) = subscription
    assert (arrival.hops, arrival.neighbor, arrival.data) == (0, None, b"1")
    alone.node.acknowledge(arrival, b"here", 0)
    assert [answer.data for answer in series] == [b"here"] and alone.sent() == []


def test_without_wildcards_only_subscribers_of_the_exact_topic_get_a_publication():
    alone = Alone().linked(1, ["a/b"]).linked(2, ["a/+"])
    alone.node.publish_topics("a/b", b"", 0, wildcards=False)
    assert [to for to, _ in alone.sent()] == [1]


def test_payload_beyond_a_datagram_is_refused_and_the_series_continues():
    alone = Alone().linked(1, ["a/b"])
    series = alone.node.publish_topics("a/b", b"", 0)
    with pytest.raises(EncodeError, match="make its payload [0-9]+ bytes shorter"):
        series.publish(bytes(65500), 0)
    assert series.publish(bytes(65000), 0) == 2


def test_multicast_publication_must_leave_space_for_its_envelope():
    node = Alone().node
    frame_B = len(wire.encode(publication(data=bytes(65_000))))
    series = node.publish_topics("a/b", b"", 0)
    room_B = wire.LARGEST_DATAGRAM_B - frame_B
    assert series.publish(bytes(65_000 + room_B - 8), 0)
    node.multicasts = True
    with pytest.raises(EncodeError, match="has room for 65491"):
        series.publish(bytes(65_000 + room_B - 8), 0)
    node.take_frames()
    assert series.publish(bytes(65_000 + room_B - 32), 0)
    ((to, frame),) = node.take_frames()
    assert to is None and len(coap.wrap(frame, 1)) <= wire.LARGEST_DATAGRAM_B


def test_invalid_publications_and_subscriptions_are_refused():
    alone = Alone(max_subscriptions=1)
    node = alone.node
    for call, error in (
        (lambda: node.publish_topics("a/+", b"", 0), AttributeFormatError),
        (lambda: node.publish_topics((), b"", 0), ParameterError),
        (lambda: node.publish_topics("a", b"", 0, ttl_s=40000), ParameterError),
        (lambda: node.subscribe_topics("/a", 0), AttributeFormatError),
        (lambda: node.subscribe_topics((), 0), ParameterError),
        (lambda: node.publish_topics("a", b"", 0).expire(0), ParameterError),
        (lambda: node.subscribe(parse('TOPIC NE "a"'), 0), AttributeFormatError),
    ):
        with pytest.raises(error):
            call()
    node.subscribe_topics("a", 0)
    with pytest.raises(ParameterError, match="max_subscriptions"):
        node.subscribe_topics("b", 0)


def test_history_forgets_expired_publications_and_is_bounded():
    alone = Alone(max_history=500)
    history = alone.node.publications.history
    for number in range(3000):
        alone.now += SECOND // 10
        alone.says(1, publication(id=number.to_bytes(16, "big")))
        assert len(history) <= 500
    # Publications of ten seconds are live; the history is cleared when that number has doubled.
    assert len(history) <= 210 and history.get((2999).to_bytes(16, "big")) is not None
    alone = Alone(max_history=500)
    for number in range(3000):
        alone.says(1, publication(id=number.to_bytes(16, "big")))
    history = alone.node.publications.history
    assert len(history) == 500 and history.get((2500).to_bytes(16, "big")) is not None


vectors = st.lists(st.integers(0, 8191), max_size=4).map(BitVector.at)
mesh_ids = st.sampled_from((LOW, HIGH, b"\x01" * 16))
messages = st.one_of(
    st.builds(
        lambda revision, flags, mesh_id, vector: subscription(revision, flags | SAK, (), mesh_id, vector),
        st.integers(0, 4),
        st.integers(0, 31),
        mesh_ids,
        vectors,
    ),
    st.builds(acknowledgement, st.integers(0, 4), st.integers(0, 4), st.sampled_from((0, 1, 4, 8, 9, 16)), mesh_ids),
    st.builds(
        lambda revision, acknowledged, flags, mesh_id, vector: wire.SubscriptionAcknowledgement(
            1, None, revision, flags | SAK, mesh_id, vector.fuzzy_hash(), vector, acknowledged
        ),
        st.integers(0, 4),
        st.integers(0, 4),
        st.integers(0, 31),
        mesh_ids,
        vectors,
    ),
    st.builds(
        publication,
        st.sampled_from((("a/b",), ("c", "d/e"))),
        st.integers(1, 4),
        st.sampled_from((b"p" * 16, b"q" * 16)),
        st.integers(-2, 9),
        st.integers(-2, 9),
        st.integers(0, 65535),
        st.booleans(),
    ),
    st.builds(
        lambda *fields: wire.Acknowledgement(*fields), st.just(b"p" * 16), st.integers(1, 4), st.binary(max_size=3)
    ),
)
happenings = st.one_of(
    st.tuples(st.just("says"), st.integers(1, 4), messages),
    st.tuples(st.just("wait"), st.integers(1, 40), st.none()),
    st.tuples(st.sampled_from(("link", "unlink")), st.integers(1, 4), st.none()),
)


@given(happened=st.lists(happenings, max_size=40))
def test_the_sums_of_interests_are_correct_after_any_messages(happened):
    alone = Alone(update_s=1.0, link_loss_s=5.0)
    node = alone.node
    node.subscribe_topics(("a/b",), 0)
    for kind, argument, message in happened:
        if kind == "says":
            alone.says(argument, message)
        elif kind == "wait":
            alone.until(alone.now / SECOND + argument)
        else:
            getattr(node, kind)(argument, alone.now)
        entries = [subscription_.request.pair for subscription_ in node.subscriptions.open]
        entries += [link.inbound for link in node.links.remotes.values() if link.inbound is not None]
        union = BitVector(8192)
        for interests, _ in entries:
            union = union | interests
        assert node.links.interests.combine(None)[0] == union
        assert all(remote.pending is None or remote.tick_us is not None for remote in node.links.remotes.values())
        assert node.next_wake is None or node.next_wake > alone.now or kind != "wait"
    # Without further messages, every link is settled or given up.
    alone.until(alone.now / SECOND + 200)
    assert {remote.state for remote in node.links.remotes.values()} <= {MUTED}


@given(frame=st.binary(max_size=60))
def test_invalid_bytes_are_dropped(frame):
    alone = Alone()
    alone.node.receive(frame, 1, 0, False)
    assert alone.drops() == {"malformed": 1} and not alone.node.outbox


def test_memory_does_not_grow_with_forwarded_publications():
    alone = Alone(max_history=100, max_retained=50).linked(1, ["a/b"]).linked(2, ["a/b"])
    node = alone.node
    subscription = node.subscribe_topics("a/b", 0)
    for number in range(3000):
        alone.now += SECOND // 100
        if number % 3:
            ttl_s = number % 7 * 10
            message = publication(id=number.to_bytes(16, "big"), ttl_s=ttl_s, lifetime_s=ttl_s, acknowledge=True)
            alone.says(1 + number % 2, message)
        else:
            node.publish_topics("a/b", b"", alone.now, ttl_s=number % 5, acknowledge=True)
        for arrival in subscription:
            node.acknowledge(arrival, b"", alone.now)
        node.take_frames()
        node.take_events()
    publications = node.publications
    assert len(publications.history) <= 100 and len(publications.retained) <= 50
    assert len(publications.retained._expiries) <= 2 * 50 + 64 and len(node.acknowledgements._own_series) <= 100


def test_secured_messages_are_forwarded_but_not_delivered_without_keys():
    alone = Alone().linked(1).linked(2, ["a/b"])
    subscription = alone.node.subscribe_topics("a/b", 0)
    alone.sent()
    sealed = wire.with_secured_body(publication(), b"\xd0\x83\x40\xa0\x41\x00")
    ((to, onward),) = alone.says(1, sealed)
    assert (to, onward.body, onward.data) == (2, sealed.body, None)
    assert subscription.take() == [] and alone.drops() == {"sealed": 1}


def test_foreign_data_are_not_decoded_as_attributes():
    alone = Alone().linked(1)
    subscription = alone.node.subscribe(parse("TEMP GE 20"), 0)
    alone.says(1, publication(("TEMP/2500",), data=b"25 degrees"))
    assert subscription.take() == [] and alone.drops() == {"no_attributes": 1}


@given(
    captured=st.sampled_from((publication(), subscription(1, SAK, ["a/b"]), acknowledgement(1, 1))),
    changes=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_damaged_messages_raise_nothing(captured, changes):
    alone = Alone().linked(1, ["a/b"])
    alone.node.subscribe_topics("a/b", 0)
    frame = bytearray(wire.encode(captured))
    for position, byte in changes:
        frame[position % len(frame)] = byte
    alone.node.receive(bytes(frame), 1, 1, False)
    alone.until(100)


@pytest.mark.parametrize("topic", ["a/\udcff", "\udcff\udc80", "", "a//", "#", "a/\udcff/+"])
def test_an_invalid_published_topic_is_forwarded_retained_and_expired_like_others(topic):
    alone = Alone().linked(1).linked(2, ["a/+"])
    early = alone.node.subscribe_topics("a/+", 0, expired=True)
    filter = publication(["a/x"]).filter
    message = publication(["a/x"])._replace(topics=(topic,), filter=filter, ttl_s=5, lifetime_s=5)
    onward = [reply for to, reply in alone.says(1, message) if to == 2 and isinstance(reply, wire.Publication)]
    assert [reply.topics for reply in onward] == [(topic,)]
    late = alone.node.subscribe_topics("a/+", alone.now)
    alone.until(10)
    wanted = [(topic,)] if topic == "a/\udcff" else []
    assert [arrival.topics for arrival in late] == wanted
    assert [(arrival.topics, arrival.is_expiry) for arrival in early] == [
        (topics_, ends) for topics_ in wanted for ends in (False, True)
    ]
    assert not len(alone.node.publications.retained)
    assert alone.drops() == ({} if wanted else {"no_match": 3})


def test_retained_publication_never_gains_time_when_the_clock_is_set_back():
    alone = Alone().linked(1)
    alone.now = 10**13
    alone.says(1, publication(ttl_s=100, lifetime_s=100))
    alone.now = 0
    replies = alone.says(2, subscription(1, SAK, ["a/b"]))
    assert [message.ttl_s for _, message in replies if isinstance(message, wire.Publication)] == [100]


def test_interests_overtaken_by_newer_ones_are_stale():
    alone = Alone().linked(1, ["a/b"])
    alone.says(1, subscription(4, SAK, ["c/d"]))
    newest = alone.node.links.remotes[1].inbound
    assert alone.says(1, subscription(3, SAK, ["e/f"])) == [] and alone.drops() == {"stale": 1}
    assert alone.node.links.remotes[1].inbound == newest


def test_a_change_of_missing_interests_makes_both_ends_send_everything_again():
    alone = Alone().linked(1, ["a/b"])
    alone.node.links.remotes[1].inbound = None
    needs = publication_filter(["a/b"], DPS()).fuzzy_hash()
    sign = wire.Subscription(1, None, 1, SAK | CHANGE, HIGH, needs, NONE)
    ((to, reply),) = alone.says(1, sign)
    assert to == 1 and isinstance(reply, wire.Subscription) and not reply.flags & CHANGE
    assert alone.drops() == {"no_base": 1}
