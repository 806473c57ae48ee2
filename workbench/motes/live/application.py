"""The application of a live run, which executes the workload on motes, and handles lost and reconnected motes.

The application replaces the simulator's application (`workbench.sim.application`): the kernel calls ``act`` for each
action of the workload. Commands are sent without waiting for answers. The motes report subscriptions, publications and
refusals when they have executed a command.

A command to end a subscription needs the number that the mote gave to the subscription. If the mote has not yet
answered with that number, the command is sent when the answer arrives. If the mote is lost at the subscription's end,
the subscription is not repeated after the reconnection.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any

from workbench.attributes.model import with_payload
from workbench.attributes.text import parse
from workbench.errors import EncodeError, LinkError, WorkbenchError
from workbench.motes import messages
from workbench.motes.line import Answer
from workbench.motes.live.recorder import Notes
from workbench.motes.mote import configuration
from workbench.motes.session import MoteSession
from workbench.protocols.contract import NOBODY
from workbench.sim import actions
from workbench.sim.actions import CRASHED
from workbench.sim.application import Application, Outages, reading
from workbench.sim.kernel import ACTION, Kernel

Key = tuple[int, int]  # node, workload item


class Commands:
    """A sender of commands to a session's motes. Commands to a lost mote are dropped.

    The threads that read the motes' lines put answers and reports into the queue ``inbox``, as (node, kind of message,
    its content). The live driver takes them from this queue. A command that is too long adds a sentence to ``notes``.
    """

    def __init__(self, session: MoteSession, notes: Notes, inbox: SimpleQueue[tuple[int, str, Any]]) -> None:
        self.session, self.notes, self.inbox = session, notes, inbox

    def post(self, node: int, kind: int, *fields: Any, **more: Any) -> None:
        """Send a command to a node's mote without waiting for the answer.

        ``kind`` is the message type, ``fields`` are the message's fields, and ``more`` has the optional arguments
        ``rest`` and ``then`` of `Mote.post`. A command to a lost mote is dropped. A command too long for a frame is not
        sent, and adds a note to the run.
        """
        with suppress(LinkError):
            try:
                self.session.motes[node].post(kind, *fields, **more)
            except EncodeError as error:
                self.notes.add(node, "refused", f"the command was not sent: {error}")

    def hold(self, node: int, now: int) -> None:
        """Set a mote's clock to ``now`` and stop it, so that none of the mote's timers fires."""
        self.post(node, messages.SET_TIME, now, messages.HELD)

    def release(self, node: int, now: int) -> None:
        """Set a mote's clock to ``now`` and let it run.

        This invalidates the clock times that the mote has reported. They are discarded, and a new one is requested.
        """
        mote = self.session.motes[node]
        mote.clock.forget()
        self.post(node, messages.SET_TIME, now, messages.RUNNING)
        with suppress(LinkError):
            mote.request_clock()

    def put_answer(self, node: int, kind: str, value: Any) -> None:
        """Put a mote's answer into the inbox, from which the live driver takes it.

        The threads that read the motes' lines call this method. If ``kind`` is "numbered", ``value`` is (key of a
        subscription, the number that the mote gave to it). If ``kind`` is "refused", ``value`` is a sentence with the
        reason.
        """
        self.inbox.put((node, kind, value))

    def refusal_callback(self, node: int) -> Callable[[Answer | LinkError], None]:
        """Return a function for the argument ``then`` of `post`.

        If the command fails, the function puts "refused" and the reason into the inbox. Otherwise it does nothing.
        """

        def put_refusal(answer: Answer | LinkError) -> None:
            if isinstance(answer, LinkError):
                self.put_answer(node, "refused", str(answer))

        return put_refusal


class Subscriptions:
    """The open subscriptions of all nodes on motes.

    Only the thread of the live driver may call the methods. ``post`` is a function that sends a command to a node's
    mote, such as `Commands.post`. ``put_answer(node, kind, value)`` is a function that passes a mote's answer to the
    live driver, such as `Commands.put_answer`. The threads that read the motes' lines call ``put_answer``. Its
    ``kind`` is

        "numbered"  if the mote accepted the subscription; value: (key of the subscription, the number that the mote
                    gave to it). The live driver then calls `store_number`
        "refused"   if the command failed; value: a sentence with the reason
    """

    def __init__(self, post: Callable[..., None], put_answer: Callable[[int, str, Any], None]) -> None:
        self._post, self._put_answer = post, put_answer
        self._open_subscriptions: dict[Key, actions.Action] = {}
        self._numbers: dict[Key, int] = {}

    def begin(self, action: actions.Action, now: int) -> None:
        """Send the SUBSCRIBE command of ``action`` to the node's mote, and store the new subscription as open."""
        self._open_subscriptions[action.node, action.index] = action
        self._send_subscription(action, now)

    def end(self, action: actions.Action) -> None:
        """End the subscription that an UNSUBSCRIBE action names; an unknown subscription is ignored.

        If the mote has not yet numbered the subscription, `store_number` sends the command later.
        """
        key = action.node, action.index
        self._open_subscriptions.pop(key, None)
        subscription_number = self._numbers.pop(key, None)
        if subscription_number is not None:
            self._post(action.node, messages.UNSUBSCRIBE, subscription_number)

    def store_number(self, key: Key, number: int) -> None:
        """Store the number that a mote gave to the subscription ``key``.

        If the subscription has ended meanwhile, send the command that ends it.
        """
        if key in self._open_subscriptions:
            self._numbers[key] = number
        else:  # The subscription has ended meanwhile.
            self._post(key[0], messages.UNSUBSCRIBE, number)

    def forget(self, node: int) -> None:
        """Discard all subscriptions of a node that has crashed. After its restart the workload subscribes anew."""
        self._open_subscriptions = {key: item for key, item in self._open_subscriptions.items() if key[0] != node}
        self.forget_numbers(node)

    def forget_numbers(self, node: int) -> None:
        """Discard the numbers that a node's mote gave to its subscriptions. A lost mote assigns new ones."""
        self._numbers = {key: number for key, number in self._numbers.items() if key[0] != node}

    def repeat(self, node: int, now: int) -> None:
        """Send a node's open subscriptions, with their remaining time, to its mote, which has lost its memory."""
        for action in list(self._open_subscriptions.values()):
            if action.node == node:
                self._send_subscription(action, now)

    def _send_subscription(self, action: actions.Action, now: int) -> None:
        item, node = action.item, action.node
        remaining_s = -1.0
        if item.expires_s is not None:
            remaining_s = item.expires_s - (now - action.time_us) / 1e6
            if remaining_s <= 0:
                return

        def process_answer(answer: Answer | LinkError) -> None:
            if isinstance(answer, Answer):
                self._put_answer(node, "numbered", ((node, action.index), answer.number))
            else:
                self._put_answer(node, "refused", str(answer))

        attribute_bytes = messages.encode_attribute_list(parse(item.what))
        self._post(node, messages.SUBSCRIBE, remaining_s, item.match_all, rest=attribute_bytes, then=process_answer)


class MoteOutages:
    """A handler of failures and recoveries of nodes on motes: outages of the workload, lost and reconnected motes.

    ``outages`` is the object that applies failures and recoveries to kernel and channel. The clock of a failed node's
    mote is stopped.
    """

    def __init__(self, outages: Outages, commands: Commands, subscriptions: Subscriptions) -> None:
        self.kernel, self.channel = outages.kernel, outages.channel
        self.lost: set[int] = set()
        self._outages, self._commands, self._subscriptions = outages, commands, subscriptions
        self._reconnections: Counter[int] = Counter()  # number of reconnections and crashes of each node's mote
        self._unconfigured: set[int] = set()  # nodes whose reconnected motes are not configured yet

    def fail(self, node: int, now: int) -> None:
        """Begin an outage of a node: switch the node off and stop its mote's clock. Outages of a node may overlap."""
        self._outages.fail(self.kernel.index[node], now)
        self._commands.hold(node, now)

    def absences(self, scenario: Any) -> dict[int, Callable[[], None]]:
        """Return {index of the node: function to call at time 0} for each node that joins later.

        The function keeps the node down and stops its mote's clock. The mote is configured again when the node
        joins.
        """
        addresses, absences = self.kernel.addresses, self._outages.absences(scenario)
        return {i: partial(self._take_node_down, addresses[i], take_down) for i, take_down in absences.items()}

    def _take_node_down(self, node: int, take_down: Callable[[], None]) -> None:
        take_down()
        if node in self._commands.session.motes:
            self._commands.hold(node, 0)
            self._unconfigured.add(node)

    def crash(self, node: int, now: int) -> None:
        """Begin an outage in which a node loses its memory: its mote is configured again when the node recovers."""
        self._outages.fail(self.kernel.index[node], now, CRASHED)
        self._commands.hold(node, now)
        self._subscriptions.forget(node)
        self._reconnections[node] += 1
        self._unconfigured.add(node)

    def recover(self, node: int, now: int) -> None:
        """End one outage of a node. If the node has no other outage, let its mote's clock run again.

        If the mote was lost and has answered again during the outage, also configure the mote.
        """
        i = self.kernel.index[node]
        self._outages.recover(i, now)
        if self.kernel.down[i]:
            return
        self._commands.release(node, now)
        if node in self._unconfigured:
            self._unconfigured.discard(node)
            self._reconfigure_node(node, now)

    def lose(self, node: int, reason: str, now: int) -> None:
        """Record that a node's mote is lost, with the reason, and begin an outage of the node."""
        if node in self.lost:
            return
        self.lost.add(node)
        self._unconfigured.discard(node)
        self._subscriptions.forget_numbers(node)
        self._commands.notes.add(node, "link_lost", reason, now)
        self.fail(node, now)

    def reconnect(self, node: int, now: int) -> None:
        """Record that a node's lost mote has reconnected. Configure it now, or when the workload's outage ends."""
        if node not in self.lost:
            return
        mote = self._commands.session.motes[node]
        boot = mote.greeting.boot if mote.greeting is not None else 0
        trace_row = now, node, "link_found", NOBODY, "", node, boot, 0, 0, f"{mote.url} answers again"
        self.kernel.recorder.append(trace_row)
        self.lost.discard(node)
        self._reconnections[node] += 1
        self._unconfigured.add(node)
        if self.kernel.down[self.kernel.index[node]] > 1:
            self._commands.hold(node, now)
        self.recover(node, now)

    def _reconfigure_node(self, node: int, now: int) -> None:
        session = self._commands.session
        # The host's count of reconnections is used, not the mote's count of restarts: configuring the mote erases its
        # memory even if it never restarted.
        boot = session.first_boots[node] + self._reconnections[node]
        configuration_json = configuration(**session.configuration(node, boot))
        self._commands.post(
            node, messages.CONFIGURE, rest=configuration_json, then=self._commands.refusal_callback(node)
        )
        self.channel.report_links(self.kernel.index[node], now)
        self._subscriptions.repeat(node, now)


class MoteApplication:
    """The executor of the workload's actions on motes. An action that fails adds a note, and the run continues.

    ``simulated`` is the simulator's application, which executes the actions of nodes without a mote.
    """

    def __init__(
        self,
        scenario: Any,
        kernel: Kernel,
        outages: MoteOutages,
        commands: Commands,
        subscriptions: Subscriptions,
        simulated: Application,
    ) -> None:
        self.scenario, self.kernel, self.outages = scenario, kernel, outages
        self._commands, self._subscriptions = commands, subscriptions
        self._simulated = simulated
        kernel.handlers[ACTION] = self.act

    def act(self, now: int, action: actions.Action) -> None:
        """Carry out an action of the workload; actions of a node that is off are skipped."""
        node = action.node
        if node not in self._commands.session.motes:
            try:
                self._simulated.act(now, action)
            except WorkbenchError as error:
                self._commands.notes.add(node, "refused", str(error), now)
        elif action.kind == actions.FAIL:
            self.outages.fail(node, now)
        elif action.kind == actions.CRASH:
            self.outages.crash(node, now)
        elif action.kind == actions.RECOVER:
            self.outages.recover(node, now)
        elif not self.kernel.down[self.kernel.index[node]]:
            try:
                self._send_command(now, action)
            except WorkbenchError as error:
                self._commands.notes.add(node, "refused", str(error), now)
        elif action.kind == actions.UNSUBSCRIBE and node in self.outages.lost:
            # A subscription that ends while its mote is lost must not be repeated later.
            self._subscriptions.end(action)

    def _send_command(self, now: int, action: actions.Action) -> None:
        if action.kind == actions.SUBSCRIBE:
            self._subscriptions.begin(action, now)
        elif action.kind == actions.UNSUBSCRIBE:
            self._subscriptions.end(action)
        else:
            attributes = with_payload(reading(self.scenario, action, now), action.item.payload)
            attribute_bytes = messages.encode_attribute_list(attributes)
            refusal_callback = self._commands.refusal_callback(action.node)
            self._commands.post(action.node, messages.PUBLISH, rest=attribute_bytes, then=refusal_callback)
