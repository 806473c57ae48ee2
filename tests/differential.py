"""The differential test: a node in Python and the same in C are called alike, and everything they do is compared."""

from tests.c_nodes import make_node
from workbench import draws
from workbench.errors import WorkbenchError


class Pair:
    """A node twice. Each call is made at both; answers, errors, frames, events, wake-ups and drops have to be one."""

    def __init__(self, protocol, address=5, boot=0, **more):
        self.reference = protocol.make_node(address, draws.Stream(7))
        self.other = make_node(protocol, address, draws.Stream(7), **more)
        self.subscriptions = []
        self.unicasts = []  # the frames last sent to one neighbor: (destination, frame)
        self.now = 0
        self.call("start", boot)

    def call(self, name, *before, after=()):
        """Call a method with ``now`` between these arguments; returns (answer of Python or error's class, events)."""
        outcomes = [self._outcome(node, name, before, after) for node in (self.reference, self.other)]
        assert outcomes[0] == outcomes[1], (name, before, after, self.now)
        return outcomes[0]

    def _outcome(self, node, name, before, after):
        try:
            arguments = (self.now, *before) if name == "start" else (*before, self.now, *after)
            answer = getattr(node, name)(*arguments)
        except WorkbenchError as error:
            answer = type(error)
        drops = dict(node.drops) if node is self.reference else node.dropped()
        frames = node.take_frames()
        if node is self.reference:
            self.unicasts = [*self.unicasts, *(frame for frame in frames if frame[0] is not None)][-16:]
        return answer, node.take_events(), frames, node.next_wake, drops

    def subscribe(self, attributes, expires_s=None, match_all=False):
        """Subscribe at both."""
        made = []
        for node in (self.reference, self.other):
            answer, *rest = self._outcome(node, "subscribe", (attributes,), (expires_s, match_all))
            made.append((answer, (getattr(answer, "number", answer), getattr(answer, "expires_us", None), *rest)))
        assert made[0][1] == made[1][1], (attributes, expires_s, match_all, self.now)
        if hasattr(made[0][0], "number"):
            self.subscriptions.append((made[0][0], made[1][0]))
        return made[0][1]

    def unsubscribe(self, place):
        """End the subscription at this place among all that were ever made; it may have ended."""
        self._of_subscription("unsubscribe", place)

    def reinforce(self, place, attributes=None):
        """Reinforce the subscription at this place."""
        self._of_subscription("reinforce", place, attributes)

    def sent(self, place, ok):
        """Report the outcome of one of the last unicast frames, perhaps more often than a radio does."""
        if self.unicasts:
            self.call("sent", *self.unicasts[place % len(self.unicasts)], ok)

    def _of_subscription(self, name, place, *after):
        if not self.subscriptions:
            return
        both = self.subscriptions[place % len(self.subscriptions)]
        first, second = (
            self._outcome(node, name, (subscription,), after)
            for node, subscription in zip((self.reference, self.other), both, strict=True)
        )
        assert first == second, (name, place, after, self.now)

    def advance(self, microseconds):
        """Let time pass; both are woken when they want to be, each time together."""
        end = self.now + microseconds
        for _ in range(1000):
            wake = self.reference.next_wake
            assert wake == self.other.next_wake
            if wake is None or wake > end:
                break
            self.now = max(self.now, wake)
            self.call("wake")
        self.now = end

    def play(self, steps):
        """Play [("receive", frame, previous_hop, broadcast), ("advance", µs), ...]."""
        for name, *arguments in steps:
            if name == "receive":
                frame, previous_hop, broadcast = arguments
                self.call("receive", frame, previous_hop, after=(broadcast,))
            elif name in ("advance", "subscribe", "unsubscribe", "reinforce", "sent"):
                getattr(self, name)(*arguments)
            elif name == "sent_frame":
                self.call("sent", *arguments)
            elif name == "publish":
                self.call("publish", arguments[0], after=tuple(arguments[1:]))
            else:
                self.call(name, *arguments)
