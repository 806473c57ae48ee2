"""One DPS node without a network: tests write the messages of its neighbors by hand, and read the messages it sends."""

from tests.network import SECOND
from workbench import draws
from workbench.protocols.dps import DPS, wire
from workbench.protocols.dps.bloom import BitVector
from workbench.protocols.dps.remotes import NO_NEEDS
from workbench.protocols.dps.series import subscription_filter

NONE = BitVector(8192)
HIGH, LOW = b"\xff" * 16, b"\0" * 16
SAK, CHANGE = wire.SAK_REQUESTED, wire.DELTA


class Alone:
    """A node without a network, to which tests deliver messages of its neighbors."""

    def __init__(self, **settings):
        self.node = DPS(**settings).make_node(7, draws.Stream(draws.make_key(1)))
        self.node.start(0)
        self.now = 0

    def says(self, neighbor, message):
        """Deliver a message from a neighbor; return the messages that the node sends, as [(to, message)]."""
        self.node.receive(wire.encode(message), neighbor, self.now, False)
        return self.sent()

    def sent(self):
        """Return the messages that the node sends, as [(to, message)], without the flag COUNTS_HOPS."""
        messages = [(to, wire.decode(frame)) for to, frame in self.node.take_frames()]
        return [(to, _without_flag(message) if hasattr(message, "flags") else message) for to, message in messages]

    def until(self, seconds):
        """Let time pass; return [(second, to, message)] of the messages that the node sends meanwhile."""
        end, messages = round(seconds * SECOND), []
        while self.node.next_wake is not None and self.node.next_wake <= end:
            self.now = self.node.next_wake
            self.node.wake(self.now)
            messages += [(self.now / SECOND, *message) for message in self.sent()]
        self.now = end
        return messages

    def linked(self, neighbor=1, topics=(), mesh_id=HIGH):
        """Create a link that the neighbor requested, with these interests."""
        self.says(neighbor, subscription(1, SAK, topics, mesh_id))
        if self.node.links.remotes[neighbor].pending:
            self.says(neighbor, acknowledgement(1, self.node.links.remotes[neighbor].revision, mesh_id=mesh_id))
        return self

    def state(self, neighbor=1):
        remote = self.node.links.remotes.get(neighbor)
        return None if remote is None else remote.state

    def drops(self):
        return dict(self.node.drops)


def _without_flag(message):
    assert message.flags & wire.COUNTS_HOPS
    return message._replace(flags=message.flags & ~wire.COUNTS_HOPS)


def subscription(revision, flags, topics=(), mesh_id=HIGH, filter=None):
    vector = subscription_filter(topics, DPS()) if filter is None else filter
    needs = vector.fuzzy_hash() if vector.bits else NO_NEEDS
    return wire.Subscription(1, None, revision, flags, mesh_id, needs, vector)


def acknowledgement(revision, acknowledged, flags=0, mesh_id=HIGH):
    return wire.SubscriptionAcknowledgement(1, None, revision, flags, mesh_id, None, None, acknowledged)


class Fuzz:
    """A node whose application and neighbors act at random."""

    def __init__(self, seed):
        self.draw = draws.Stream(draws.make_key(seed))
        self.alone = Alone(update_s=1.0, link_loss_s=5.0, recheck_s=5.0)
        self.node = self.alone.node
        self.subscriptions = []
        self.steps = (self.link, self.unlink, self.subscribe, self.wait, self.subscription, self.acknowledgement)

    def one_of(self, *choices):
        return choices[self.draw.below(len(choices))]

    def step(self):
        step = self.steps[min(self.draw.below(12), len(self.steps) - 1)]
        step(1 + self.draw.below(3))

    def link(self, neighbor):
        self.node.link(neighbor, self.alone.now)

    def unlink(self, neighbor):
        self.node.unlink(neighbor, self.alone.now)

    def subscribe(self, neighbor):
        if len(self.subscriptions) > 3:
            self.node.unsubscribe(self.subscriptions.pop(0), self.alone.now)
        self.subscriptions.append(self.node.subscribe_topics(self.one_of("a", "b", "c"), self.alone.now))

    def wait(self, neighbor):
        self.alone.until(self.alone.now / SECOND + self.one_of(1, 1, 2, 5, 20))

    def mesh_id(self):
        foreign_ids = [
            remote.inbound_mesh_id.to_bytes(17, "little")[:16] for remote in self.node.links.remotes.values()
        ]
        return self.one_of(HIGH, LOW, bytes([self.draw.below(9)]) * 16, *foreign_ids)

    def subscription(self, neighbor):
        remote = self.node.links.remotes.get(neighbor)
        newest = 0 if remote is None else remote.inbound_revision
        flags = SAK | self.one_of(0, CHANGE, CHANGE, wire.UNMUTE, wire.UNLINK)
        message = subscription(newest + self.one_of(0, 1, 1, 2), flags, ("a",), self.mesh_id())
        self.alone.says(neighbor, message)

    def acknowledgement(self, neighbor):
        remote = self.node.links.remotes.get(neighbor)
        if remote is not None:
            acknowledged = remote.revision - self.one_of(0, 0, 0, 1)
            flags = self.one_of(0, CHANGE, wire.MUTE)
            self.alone.says(
                neighbor, acknowledgement(remote.inbound_revision, max(0, acknowledged), flags, self.mesh_id())
            )
