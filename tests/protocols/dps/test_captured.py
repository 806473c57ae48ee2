"""Our node in the place of each node of a captured exchange: it receives and sends the same messages.

The messages are equal byte for byte: the node has the ids of the capture, and its application acts at the same times.
The captures omit repeated messages, so answers that are missing there are missing here, too.
"""

import pytest

from workbench import draws
from workbench.protocols.dps import DPS, cose, wire
from workbench.protocols.dps.automaton import MUTED

SECOND = 1_000_000
# The separators of the example programs, and the update interval of the captures. Keep-alives come at other times
# than those of the captures. Nodes send them only if a test requests it, or to announce another mesh id.
SETTINGS = {"separators": "/.", "update_s": 0.2, "link_loss_s": 60.0}


def us(message):
    return round(message["time_s"] * SECOND)


def neighbor(port):
    return f"127.0.0.1:{port}"


def is_sign_of_life(frame):
    message = wire.decode(frame)
    return (
        isinstance(message, wire.Subscription)
        and message.flags == wire.DELTA | wire.SAK_REQUESTED
        and message.interests.is_empty
    )


class Replay:
    """A replay of an exchange, in which our node takes the place of one of the captured nodes."""

    def __init__(self, captured, scenario, port, until=None, **settings):
        self.messages = [message for message in captured["messages"] if message["scenario"] == scenario]
        if until is not None:
            names = [message["name"] for message in self.messages]
            self.messages = self.messages[: names.index(until) + 1]
        self.own = neighbor(port)
        sent_messages = [
            wire.decode(bytes.fromhex(message["hex"])) for message in self.messages if message["from"] == self.own
        ]
        self.answers = [message.data for message in sent_messages if isinstance(message, wire.Acknowledgement)]
        ids = [self._own_mesh_id()]
        ids += dict.fromkeys(
            message.publication_id
            for message in sent_messages
            if isinstance(message, wire.Publication) and not message.hops
        )
        self.node = DPS(**{**SETTINGS, **settings}).make_node(-1, draws.Stream(draws.make_key(1)))
        halves = [half for id_ in ids for half in (id_[:8], id_[8:])]
        self.node._random_bytes = lambda: halves.pop(0)
        self.node.port = port
        self.node.neighbor_of = lambda previous_hop, port: previous_hop if port is None else neighbor(port)
        self.node.start(0)
        self.node.links.start(ids[0])  # the id of a C node, without the mark of ours
        self.subscriptions, self.sent, self.expected = [], [], set()
        self.has_no_signs = self.node.settings.link_loss_s == SETTINGS["link_loss_s"]

    def _own_mesh_id(self):
        """Return the first id that the node sends and has not received before; if it sends none, the highest id."""
        received_ids = set()
        for message in self.messages:
            mesh_id = getattr(wire.decode(bytes.fromhex(message["hex"])), "mesh_id", None)
            if message["from"] == self.own and mesh_id is not None and mesh_id not in received_ids:
                return mesh_id
            received_ids.add(mesh_id)
        return b"\xff" * 16

    def subscribe(self, *topics, at=0.0):
        self.subscriptions.append(self.node.subscribe_topics(topics, round(at * SECOND)))

    def play(self, **actions):
        """Play the exchange; `actions` maps a message's name to what the application does before it, given the time."""
        now = 0
        for message in self.messages:
            act = actions.get(message["name"])
            now = us(message)
            if act is not None:
                act(now)
            self.wake(now)
            if message["to"] == self.own:
                self.node.receive(bytes.fromhex(message["hex"]), message["from"], now, False)
                self.answer(now)
            self.collect(now)
            if message["from"] == self.own:
                self.expect(message["to"], bytes.fromhex(message["hex"]), now)
        return self

    def play_again(self, name, now):
        """Deliver a message that was repeated, but is in the capture only once."""
        message = next(message for message in self.messages if message["name"] == name)
        self.node.receive(bytes.fromhex(message["hex"]), message["from"], now, False)

    def expect(self, to, frame, now):
        """Check that the node has sent this frame by now, or sends it soon."""
        if self.has_no_signs and is_sign_of_life(frame):
            return
        # Our timers may be a little later than those of the capture.
        self.wake(now + SECOND // 4)
        assert (to, frame) in self.sent, f"{wire.decode(frame)} is not in {[wire.decode(f) for _, f in self.sent]}"
        self.sent.remove((to, frame))
        self.expected.add((to, frame))

    def rest(self):
        """Return the messages that the node has sent and the capture does not have, except repetitions."""
        return [wire.decode(frame) for to, frame in self.sent if (to, frame) not in self.expected]

    def answer(self, now):
        for subscription in self.subscriptions:
            for arrival in subscription:
                if arrival.wants_answer:
                    self.node.acknowledge(arrival, self.answers.pop(0), now)

    def wake(self, now):
        while self.node.next_wake is not None and self.node.next_wake <= now:
            self.node.wake(self.node.next_wake)
            self.collect(now)
        self.collect(now)

    def collect(self, now):
        while frames := self.node.take_frames():
            for to, frame in frames:
                if self.has_no_signs and is_sign_of_life(frame):
                    self.answer_sign(to, wire.decode(frame), now)
                else:
                    self.sent.append((to, frame))
        self.node.take_events()

    def answer_sign(self, to, sign, now):
        """Deliver the reference's answer to a keep-alive.

        The reference does not announce a mesh id by itself, so the capture has no such answer.
        """
        remote = self.node.links.remotes[to]
        mesh_id = remote.inbound_mesh_id.to_bytes(17, "little")[:16]
        port = int(to.rpartition(":")[2])
        answer = wire.SubscriptionAcknowledgement(
            port, None, remote.inbound_revision, wire.DELTA, mesh_id, None, None, sign.sequence
        )
        self.node.receive(wire.encode(answer), to, now, False)


def test_basic_subscriber(dps_captured):
    replay = Replay(dps_captured, "basic", 40001)
    replay.subscribe("a/b/c")
    replay.play()
    assert not replay.rest()


def test_basic_publisher(dps_captured):
    replay = Replay(dps_captured, "basic", 40002)
    node = replay.node
    series = []
    replay.play(
        basic_00_sub=lambda now: node.link(neighbor(40001), now),
        basic_03_pub=lambda now: series.append(node.publish_topics("a/b/c", b"hello\0", now, acknowledge=True)),
        basic_05_sub=lambda now: node.unlink(neighbor(40001), now),
    )
    assert [publication.data for publication in series[0]] and not replay.rest() and not node.links.remotes


def test_subscriptions_with_wildcards_and_several_topics(dps_captured):
    replay = Replay(dps_captured, "wild", 40001)
    replay.subscribe("+/b/#")
    replay.subscribe("sensor/+/42", "x.y")
    replay.subscribe("1.1.#")
    replay.play()
    assert not replay.rest()


def test_publications_with_wildcards_and_several_topics(dps_captured):
    replay = Replay(dps_captured, "wild", 40002)
    node = replay.node

    def publish(topics, data):
        return lambda now: node.publish_topics(topics, data, now, acknowledge=True)

    def publish_the_last(now):
        publish("empty/house", b"never sent")(now)
        publish("q/b/z.1", data_of(dps_captured, "wild_11_pub"))(now)

    replay.node._random_bytes = numbered_ids(replay.node._random_bytes, skipped=3)
    replay.play(
        wild_00_sub=lambda now: node.link(neighbor(40001), now),
        wild_03_pub=publish("a/b/c", b"one"),
        wild_05_pub=publish(("sensor/temp/42", "x.y"), b"two"),
        wild_07_pub=publish("1.1.7", b"three"),
        wild_11_pub=publish_the_last,
    )
    assert not replay.rest()


def data_of(captured, name):
    return next(
        wire.decode(bytes.fromhex(message["hex"])).data for message in captured["messages"] if message["name"] == name
    )


def numbered_ids(halves, skipped):
    """Return the ids of the capture, with an additional one before the last: that of a publication not sent."""
    drawn = []

    def half():
        drawn.append(None)
        index = len(drawn) - 1  # after the halves of the mesh id
        return bytes(8) if index // 2 == skipped else halves()

    return half


@pytest.mark.parametrize("port", [40001, 40002])
def test_changed_interests_are_sent_as_changes(dps_captured, port):
    replay = Replay(dps_captured, "delta", port)
    node = replay.node
    if port == 40001:
        replay.play(delta_06_sub=lambda now: node.subscribe_topics("foo/#", now))
        assert not replay.rest()
        return
    replay.subscribe("a/b/c")
    replay.play(
        delta_00_sub=lambda now: node.link(neighbor(40001), now),
        delta_02_sub=lambda now: node.subscribe_topics(("d/e/f", "g/#"), now),
        delta_04_sub=lambda now: node.subscribe_topics("1/2/3", now),
    )
    assert not replay.rest()


@pytest.mark.parametrize("port", [40001, 40002])
def test_a_link_begins_and_ends(dps_captured, port):
    replay = Replay(dps_captured, "unlink", port)
    node = replay.node
    if port == 40001:
        replay.subscribe("a/#")
        replay.play()
    else:
        replay.play(
            unlink_00_sub=lambda now: node.link(neighbor(40001), now),
            unlink_03_sub=lambda now: node.unlink(neighbor(40001), now),
        )
    assert not replay.rest() and not node.links.remotes


@pytest.mark.parametrize("port", [40001, 40002, 40003, 40004])
def test_publication_follows_a_chain_and_its_acknowledgement_returns(dps_captured, port):
    replay = Replay(dps_captured, "chain", port, until="chain_14_ack")
    node = replay.node
    if port == 40001:
        replay.subscribe("news/#")
    actions = {
        40001: {},
        40002: {"chain_00_sub": lambda now: node.link(neighbor(40001), now)},
        40003: {"chain_03_sub": lambda now: node.link(neighbor(40002), now)},
        40004: {
            "chain_06_sub": lambda now: node.link(neighbor(40003), now),
            "chain_11_pub": lambda now: node.publish_topics("news/today", b"across\0", now, acknowledge=True),
        },
    }
    replay.play(**actions[port])
    passed_on = replay.rest()
    # The last message of the excerpt is the acknowledgement to 40002, which forwards it.
    assert [type(message) for message in passed_on] == ([wire.Acknowledgement] if port == 40002 else [])
    if port == 40002:
        ack = next(message for message in replay.messages if message["name"] == "chain_14_ack")
        assert (neighbor(40003), bytes.fromhex(ack["hex"])) in replay.sent


@pytest.mark.parametrize("port", [40001, 40002, 40003])
def test_a_triangle_mutes_its_third_link(dps_captured, port):
    replay = Replay(dps_captured, "loop", port, until="loop_13_sak")
    node = replay.node
    replay.subscribe({40001: "a/1", 40002: "b/1", 40003: "c/1"}[port])
    actions = {
        40001: {},
        40002: {"loop_00_sub": lambda now: node.link(neighbor(40001), now)},
        40003: {
            "loop_03_sub": lambda now: node.link(neighbor(40002), now),
            "loop_08_sub": lambda now: node.link(neighbor(40001), now),
        },
    }
    replay.play(**actions[port])
    assert not replay.rest()
    muted_port = {40001: 40003, 40003: 40001}.get(port)
    assert [remote.address for remote in node.links.remotes.values() if remote.state == MUTED] == [
        neighbor(muted_port)
    ] * bool(muted_port)


@pytest.mark.parametrize("port", [40001, 40002])
def test_keep_alives(dps_captured, port):
    replay = Replay(dps_captured, "keepalive", port, link_loss_s=2.0)
    node = replay.node
    replay.subscribe({40001: "a/#", 40002: "b/#"}[port])
    link = {"keepalive_00_sub": lambda now: node.link(neighbor(40001), now)} if port == 40002 else {}
    replay.play(**link)
    assert not replay.rest()


@pytest.mark.parametrize("port", [40001, 40002, 40003])
def test_retained_publications(dps_captured, port):
    # 40001 sends a keep-alive, which is answered like its first message.
    settings = {"link_loss_s": 2.0} if port == 40001 else {}
    replay = Replay(dps_captured, "retained", port, until="retained_16_pub", **settings)
    node = replay.node
    series = []
    if port != 40002:
        replay.subscribe("r/#")
    actions = {
        40001: {
            "retained_00_sub": lambda now: node.link(neighbor(40002), now),
            "retained_08_sub": lambda now: replay.play_again("retained_01_sak", now),
        },
        40003: {"retained_08_sub": lambda now: node.link(neighbor(40002), now)},
        40002: {
            "retained_02_pub": lambda now: series.append(
                node.publish_topics("r/1", b"first", now, ttl_s=20, acknowledge=True)
            ),
            "retained_04_pub": lambda now: series[0].publish(b"second", now, ttl_s=15),
            "retained_16_pub": lambda now: series[0].expire(now),
        },
    }
    replay.play(**actions[port])
    if port == 40002:
        assert [publication.data for publication in series[0]] == [
            b"This is an ACK from 127.0.0.1:40001",
            b"This is an ACK from 127.0.0.1:40001",
            b"This is an ACK from 127.0.0.1:40003",
        ]
        assert not len(node.publications.retained)


def test_encrypted_publication_and_its_acknowledgement_are_decrypted(dps_captured):
    keys = cose.KeyStore()
    for key in dps_captured["test_keys_A256KW"]:
        keys.add_symmetric(bytes.fromhex(key["kid"]), bytes.fromhex(key["key"]))
    replay = Replay(dps_captured, "enc1", 40002)
    node = replay.node
    node.security = cose.Security(keys)
    subscription = node.subscribe_topics("a/b/c", 0)
    publication, ack = (
        next(bytes.fromhex(message["hex"]) for message in replay.messages if message["name"] == name)
        for name in ("enc1_03_pub", "enc1_04_ack")
    )
    node.receive(publication, neighbor(40001), 1, False)
    arrival = subscription.take()[0]
    assert arrival.topics == ("a/b/c",) and arrival.data == b"secret\0" and arrival.opened is not None
    node.take_frames()
    node.acknowledge(arrival, b"read", 2)
    ((to, answer),) = node.take_frames()
    assert to == neighbor(40002) and b"read" not in answer
    assert node.security.open(wire.decode(answer))[0].data == b"read"
    assert node.security.open(wire.decode(ack))[0].data == b"This is an ACK from 127.0.0.1:40001"
