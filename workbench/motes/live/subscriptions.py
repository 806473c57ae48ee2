"""What the workload of a live run has its nodes subscribe to, and by which numbers their motes know it.

A subscription ends when the workload says so, whatever its mote is doing then: if its number is still on the way, it is
ended when it comes; if the mote is lost, it is not made again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workbench.attributes.text import parse
from workbench.errors import LinkError
from workbench.motes import messages
from workbench.motes.line import Answer
from workbench.sim import workload

Key = tuple[int, int]  # node, workload item


class Subscriptions:
    """The open subscriptions of all nodes. Only the conductor's thread calls its methods.

    ``post(node, kind, *fields, rest, then)`` sends a command. Reading threads call ``answered(node, kind, value)`` with
    the mote's answer: "numbered" with (key, number), which is to come to `numbered`, or "refused" with a sentence.
    """

    def __init__(self, post: Callable[..., None], answered: Callable[[int, str, Any], None]) -> None:
        self._post, self._answered = post, answered
        self._open: dict[Key, workload.Action] = {}
        self._numbers: dict[Key, int] = {}

    def begin(self, action: workload.Action, now: int) -> None:
        """Have a node subscribe."""
        self._open[action.node, action.index] = action
        self._ask(action, now)

    def end(self, action: workload.Action) -> None:
        """End a subscription of a node. Ending an unknown one does nothing."""
        key = action.node, action.index
        self._open.pop(key, None)
        number = self._numbers.pop(key, None)
        if number is not None:
            self._post(action.node, messages.UNSUBSCRIBE, number)

    def numbered(self, key: Key, number: int) -> None:
        """Note by which number a mote knows a subscription."""
        if key in self._open:
            self._numbers[key] = number
        else:  # It has ended meanwhile.
            self._post(key[0], messages.UNSUBSCRIBE, number)

    def forget_numbers(self, node: int) -> None:
        """Forget the numbers of a mote that is lost: whatever answers in its place has numbers of its own."""
        self._numbers = {key: number for key, number in self._numbers.items() if key[0] != node}

    def begin_again(self, node: int, now: int) -> None:
        """Make a node's subscriptions again, for as long as they have left: its mote has lost its memory."""
        for action in list(self._open.values()):
            if action.node == node:
                self._ask(action, now)

    def _ask(self, action: workload.Action, now: int) -> None:
        item, node = action.item, action.node
        seconds = -1.0
        if item.expires_s is not None:
            seconds = item.expires_s - (now - action.time_us) / 1e6
            if seconds <= 0:
                return

        def note(answer: Answer | LinkError) -> None:
            if isinstance(answer, Answer):
                self._answered(node, "numbered", ((node, action.index), answer.number))
            else:
                self._answered(node, "refused", str(answer))

        rest = messages.encode_attribute_list(parse(item.what))
        self._post(node, messages.SUBSCRIBE, seconds, item.match_all, rest=rest, then=note)
