"""Neighbors that die, restart at once, or do not send requests: each link ends or recovers, whatever its state."""

import pytest

from tests.network import SECOND
from tests.protocols.dps.alone import CHANGE, HIGH, LOW, SAK, Alone, Fuzz, acknowledgement, subscription
from workbench.protocols.dps import DPS, wire
from workbench.protocols.dps.automaton import ACTIVE, MUTED
from workbench.protocols.dps.series import subscription_filter

SIGN_S = 32  # link_loss_s and update_s
GIVEN_UP_S = 10
OTHER = b"\xfe" * 16


class ReferenceNeighbor:
    """A neighbor that answers like the reference implementation (src/sub.c), with subscriptions to ``topics``.

    It creates a link for any subscription of a node without one, and treats a change as all interests. It sends its
    own interests only in the acknowledgement of that subscription, in full, and drops messages with older revisions.
    """

    def __init__(self, topics=(), mesh_id=HIGH):
        self.topics, self.mesh_id = topics, mesh_id
        self.inbound = None  # revision and interests
        self.revision = 0

    def restart(self, mesh_id=OTHER):
        """Restart on the same port without memory."""
        self.__init__(self.topics, mesh_id)

    def hears(self, message):
        """Return the neighbor's answer to a message, or None."""
        if isinstance(message, wire.SubscriptionAcknowledgement) and not message.flags & SAK:
            return None
        is_new = self.inbound is None
        revision, interests = self.inbound or (0, subscription_filter((), DPS()))
        if message.sequence < revision:
            return None
        if message.sequence > revision:
            is_change = message.flags & CHANGE and not is_new
            self.inbound = message.sequence, message.interests ^ interests if is_change else message.interests
        if not (is_new and self.topics):
            return acknowledgement(self.revision, message.sequence, CHANGE, self.mesh_id)
        self.revision = 1
        vector = subscription_filter(self.topics, DPS())
        return wire.SubscriptionAcknowledgement(
            1, None, 1, SAK | CHANGE, self.mesh_id, vector.fuzzy_hash(), vector, message.sequence
        )


def talk(alone, neighbor, messages):
    """Exchange messages until both ends are silent; return the messages of the node."""
    messages_of_node = list(messages)
    for message in messages_of_node:
        answer = neighbor.hears(message)
        if answer is not None:
            messages_of_node += [reply for to, reply in alone.says(1, answer) if to == 1]
        assert len(messages_of_node) < 20, "the exchange does not end"
    return messages_of_node


def live(alone, neighbor, until_s):
    """Let time pass while the neighbor answers the node; return [(second, message)] of the node's messages to it."""
    timed_messages = []
    while alone.now < until_s * SECOND:
        for second, to, message in alone.until(alone.now / SECOND + 0.1):
            if to == 1:
                timed_messages += [(second, sent_message) for sent_message in talk(alone, neighbor, [message])]
    return timed_messages


def loop(topics=()):
    """Return a node with an active link to 1 and a muted link to 2, which 2 requested."""
    alone = Alone().linked(1, mesh_id=LOW)
    alone.says(2, subscription(1, SAK, topics, LOW))
    assert (alone.state(1), alone.state(2)) == (ACTIVE, MUTED)
    return alone


def with_1_alive(alone, seconds):
    """Let time pass while 1 acknowledges messages; return [(second, message)] of the messages to 2."""
    messages_to_2 = []
    for second in range(int(alone.now / SECOND) + 1, int(alone.now / SECOND + seconds) + 1):
        for at, to, message in alone.until(second):
            if to == 1:
                alone.says(1, acknowledgement(1, message.sequence, 0, LOW))
            else:
                messages_to_2.append((at, message))
    return messages_to_2


def linked(topics, revisions):
    """Return a node that subscribed to x and a linked ReferenceNeighbor whose interests have changed."""
    alone, neighbor = Alone(), ReferenceNeighbor(topics)
    alone.node.subscribe_topics("x", 0)
    alone.node.link(1, 0)
    talk(alone, neighbor, [message for _, message in alone.sent()])
    for revision in range(2, revisions + 1):
        neighbor.revision = revision
        alone.says(1, subscription(revision, SAK | CHANGE))
    assert alone.state() == ACTIVE
    return alone, neighbor


# Dead neighbors


@pytest.mark.parametrize("seed", range(60))
def test_a_silent_neighbor_is_forgotten_in_every_state(seed):
    fuzz = Fuzz(seed)
    for _ in range(80):
        fuzz.step()
    node, settings = fuzz.node, fuzz.node.settings
    silent_s = 1.25 * (settings.link_loss_s + settings.update_s)
    given_up_s = (settings.retry_ticks + settings.retries) * settings.update_s
    fuzz.alone.until(fuzz.alone.now / SECOND + silent_s + 2 * given_up_s)
    assert node.links.remotes == {}
    own = subscription_filter([topic for subscription_ in fuzz.subscriptions for topic in subscription_.topics], DPS())
    assert node.links.interests.combine(None)[0] == own


@pytest.mark.parametrize("recheck_s", [0.0, 60.0])
def test_forged_neighbors_are_forgotten_and_their_entries_reused(recheck_s):
    alone = Alone(recheck_s=recheck_s)
    alone.node.subscribe_topics("x", 0)
    for neighbor in range(256):
        alone.says(neighbor, subscription(1, SAK, [f"only/{neighbor}"], LOW))
    assert [remote.state for remote in alone.node.links.remotes.values()].count(MUTED) == 255
    alone.says(256, subscription(1, SAK))
    assert alone.drops() == {"full": 1}
    alone.until(1.25 * SIGN_S + GIVEN_UP_S)
    assert alone.node.links.remotes == {}
    assert alone.linked(256).state(256) == ACTIVE


@pytest.mark.parametrize("recheck_s", [0.0, 60.0])
def test_a_muted_neighbor_that_answers_stays_muted_while_there_is_a_loop(recheck_s):
    alone = Alone(recheck_s=recheck_s).linked(1, mesh_id=LOW)
    alone.says(2, subscription(1, SAK, ["c/d"], LOW))
    for _ in range(20):
        for _, to, message in alone.until(alone.now / SECOND + 1):
            if isinstance(message, wire.Subscription):
                assert to == 1 or bool(message.flags & wire.MUTE) == (not recheck_s)
                alone.says(to, acknowledgement(1, message.sequence, wire.MUTE if to == 2 else 0, LOW))
    assert (alone.state(1), alone.state(2)) == (ACTIVE, MUTED)


def test_interests_of_a_muted_neighbor_count_until_the_next_recheck():
    alone = loop(["c/d"])
    requests = with_1_alive(alone, 1.25 * SIGN_S)
    assert requests[0][1].interests.is_empty and alone.node.links.remotes[2].inbound is None


# Requests for muted links


def test_the_other_end_of_a_muted_link_takes_over_requests_that_stop():
    alone = loop()
    requests = with_1_alive(alone, 1.25 * SIGN_S)
    assert {message.flags for _, message in requests} == {SAK} and requests[0][0] >= SIGN_S
    # The loop has disappeared meanwhile.
    alone.says(2, acknowledgement(1, requests[0][1].sequence, 0, OTHER))
    assert alone.state(2) == ACTIVE


def test_the_other_end_of_a_muted_link_stays_silent_while_it_receives_requests():
    alone = loop()
    for revision in range(2, 12):
        assert with_1_alive(alone, 0.875 * SIGN_S) == []
        alone.says(2, subscription(revision, SAK, (), LOW))
        assert alone.state(2) == MUTED


# Restarts


@pytest.mark.parametrize(("topics", "revisions"), [(("a/b",), 1), (("a/b",), 3), ((), 1), ((), 3)])
def test_a_restarted_reference_neighbor_exchanges_interests_again(topics, revisions):
    alone, neighbor = linked(topics, revisions)
    live(alone, neighbor, 20)
    neighbor.restart()
    timed_messages = live(alone, neighbor, 20 + SIGN_S + 5)
    remote = alone.node.links.remotes[1]
    assert neighbor.inbound[1] == subscription_filter(["x"], DPS())
    assert (
        remote.inbound == ((interests := subscription_filter(topics, DPS())), interests.fuzzy_hash())
        if topics
        else (remote.inbound is None)
    )
    assert (alone.state(), remote.pending) == (ACTIVE, None)
    # A keep-alive, and then all interests.
    subscriptions = [message for _, message in timed_messages if isinstance(message, wire.Subscription)]
    assert [(message.flags, message.interests.is_empty) for message in subscriptions] == [
        (SAK | CHANGE, True),
        (SAK, False),
    ]
    after = live(alone, neighbor, 20 + 3 * SIGN_S)
    assert {message.flags for _, message in after} == {SAK | CHANGE}, "keep-alives follow"


def test_a_reference_neighbor_that_restarts_before_a_change_gets_all_interests():
    alone, neighbor = linked(("a/b",), 2)
    neighbor.restart()
    alone.node.subscribe_topics("y", alone.now)
    talk(alone, neighbor, [message for _, message in alone.sent()])
    assert neighbor.inbound[1] == subscription_filter(("x", "y"), DPS())
    assert alone.node.links.remotes[1].inbound[0] == subscription_filter(["a/b"], DPS())


def test_answers_of_a_live_neighbor_are_not_taken_for_a_restart():
    alone, neighbor = linked(("a/b",), 1)
    messages = [message for _, message in live(alone, neighbor, 10 * SIGN_S)]
    assert len(messages) >= 8 and {message.flags for message in messages} == {SAK | CHANGE}
    # A neighbor without interests always acknowledges alike, and another mesh id alone does not show a restart.
    alone, neighbor = linked((), 1)
    messages = [message for _, message in live(alone, neighbor, 5 * SIGN_S)]
    neighbor.mesh_id = OTHER
    alone.node.subscribe_topics("y", alone.now)
    messages += talk(alone, neighbor, [message for _, message in alone.sent()])
    assert {message.flags for message in messages} == {SAK | CHANGE}


def test_interests_of_a_restarted_neighbor_of_ours_are_used_when_its_link_is_needed():
    alone = loop()
    alone.says(2, subscription(5, SAK, (), LOW))
    assert alone.state(2) == MUTED
    replies = alone.says(1, wire.Subscription(1, None, 2, SAK | wire.UNLINK, HIGH, None, None))
    ((_, request),) = [reply for reply in replies if reply[0] == 2]
    vector = subscription_filter(["c/d"], DPS())
    alone.says(
        2,
        wire.SubscriptionAcknowledgement(1, None, 1, SAK, OTHER, vector.fuzzy_hash(), vector, request.sequence),
    )
    assert alone.state(2) == ACTIVE and alone.node.links.remotes[2].inbound[0] == vector
