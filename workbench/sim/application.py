"""The application layer of the reference engine: it performs the workload's actions at the nodes.

Contract
    `plan` puts the workload's actions on the kernel's heap. The kernel calls ``act`` for each at its time; the
    application calls the node, then ``kernel.collect`` for the node's events and frames. Failures and recoveries
    change ``kernel.down`` and are reported to the channel (`Outages`).

    A driver of nodes that run elsewhere, such as motes, has its own application with an ``act`` method. It shares
    `plan`, `reading` and `Outages`.

In the fast engine, `workbench.sim.fast.prepare` lists the actions before the run, and the loop performs them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from workbench.attributes.model import Attribute, with_payload
from workbench.attributes.text import parse, to_text
from workbench.errors import ScenarioError, WorkbenchError
from workbench.protocols.contract import NOBODY
from workbench.sim import actions, workload
from workbench.sim.actions import ABSENT, CRASHED, JOINED, RESTARTED
from workbench.sim.changes.arcs import position_at
from workbench.sim.changes.items import count_absent
from workbench.sim.channel import Channel
from workbench.sim.kernel import ACTION, Kernel


def plan(scenario: Any, kernel: Kernel, duration_us: int) -> None:
    """Put all actions of the workload before ``duration_us`` on the kernel's heap of future events.

    Changes of links come before actions at the same instant.
    """
    kernel.channel.plan_changes()
    for action in workload.expand(scenario.workload, kernel.addresses, duration_us, scenario.seed):
        kernel.push(action.time_us, ACTION, action)


def reading(scenario: Any, action: actions.Action, now: int) -> tuple[Attribute, ...]:
    """Return the attributes that a publish action publishes at the time ``now`` (µs).

    A workload item that publishes a text has the same attributes each time. The attributes of a sensor field or of
    `Readings` depend on the node and the time.
    """
    published_data = action.item.what
    if not isinstance(published_data, str):
        x_m, y_m = position_at(scenario, action.node, now)
        published_data = published_data.attributes(action.node, x_m, y_m, now / 1e6, scenario.extent_m)
    return parse(published_data)


def _record(kernel: Kernel, now: int, node: int, event: str, sequence: int, value: int, detail: str) -> None:
    """Append a row to the trace: an action of the application at a node, or the node's failure or recovery.

    ``node``: the node's address. ``event`` to ``detail``: the values of the trace's columns of these names.
    """
    kernel.recorder.append((now, node, event, NOBODY, "", node, sequence, 0, value, detail))


class Outages:
    """The failures and recoveries of nodes, which may overlap: a node is down while any of its outages lasts.

    A node that has lost its memory, or was not yet in the network, starts anew when it comes up.
    """

    def __init__(self, kernel: Kernel, channel: Channel) -> None:
        self.kernel, self.channel = kernel, channel

    def fail(self, i: int, now: int, detail: str = "") -> None:
        """Begin an outage of node ``i``. The node goes down unless another outage already keeps it down.

        ``detail``: CRASHED if the node loses its memory, ABSENT if it is not yet in the network.
        """
        kernel = self.kernel
        kernel.down[i] += 1
        kernel.lost_memory[i] |= bool(detail)
        if kernel.down[i] == 1 or detail == CRASHED:  # A crash ends the node's subscriptions during an outage, too.
            _record(kernel, now, kernel.addresses[i], "failed", 0, 0, detail)
        if kernel.down[i] == 1:
            self.channel.stop_radio(i, now)

    def absences(self, scenario: Any) -> dict[int, Callable[[], None]]:
        """Return {index of a node: function that takes the node down at time 0} for the nodes that join later."""
        index = self.kernel.index
        counts = count_absent(scenario.workload, self.kernel.addresses)
        return {index[node]: partial(self._mark_absent, index[node], count) for node, count in counts.items()}

    def _mark_absent(self, i: int, count: int) -> None:
        for _ in range(count):
            self.fail(i, 0, ABSENT)
        self.kernel.boots[i] = -1

    def recover(self, i: int, now: int) -> None:
        """End an outage of node ``i``. The node goes up unless another outage still keeps it down."""
        kernel = self.kernel
        kernel.down[i] -= 1
        if kernel.down[i] == 0:
            self.channel.restart_radio(i, now)
            kernel.wake_at[i] = None
            if not kernel.lost_memory[i]:
                _record(kernel, now, kernel.addresses[i], "recovered", 0, 0, "")
                self.channel.report_changed_links(i, now)
                kernel.collect(i, now)
                return
            boot = kernel.boots[i] + 1
            _record(kernel, now, kernel.addresses[i], "recovered", 0, boot, RESTARTED if boot else JOINED)
            kernel.restart(i, now)


class Application:
    """The application layer for nodes that run in this process: it performs the actions of the workload."""

    def __init__(self, scenario: Any, kernel: Kernel, outages: Outages) -> None:
        self.scenario, self.kernel, self.outages = scenario, kernel, outages
        self.subscriptions: dict[tuple[int, int], Any] = {}  # (node's index, workload item's index) -> subscription
        kernel.handlers[ACTION] = self.act

    def act(self, now: int, action: actions.Action) -> None:
        """Perform an action of the workload at its time ``now`` (µs).

        A node that is down does not subscribe, unsubscribe, publish or reinforce.

        Raises ScenarioError, which ends the run, if the node refuses the action.
        """
        i = self.kernel.index[action.node]
        if action.kind == actions.FAIL:
            self.outages.fail(i, now)
        elif action.kind == actions.CRASH:
            self.outages.fail(i, now, CRASHED)
            self.subscriptions = {key: value for key, value in self.subscriptions.items() if key[0] != i}
        elif action.kind == actions.RECOVER:
            self.outages.recover(i, now)
        elif not self.kernel.down[i]:
            try:
                self._perform(i, now, action)
            except WorkbenchError as error:
                raise ScenarioError(f"workload item {action.index} at node {action.node}: {error}") from error
            self.kernel.collect(i, now)

    def _perform(self, i: int, now: int, action: actions.Action) -> None:
        if action.kind == actions.PUBLISH:
            self._publish(i, now, action)
        elif action.kind == actions.SUBSCRIBE:
            self._subscribe(i, now, action)
        elif action.kind == actions.REINFORCE:
            self.scenario.protocol.reinforce(self.kernel.nodes[i], parse(action.item.what), now)
        else:
            self._unsubscribe(i, now, action)

    def _subscribe(self, i: int, now: int, action: actions.Action) -> None:
        item = action.item
        attributes = parse(item.what)
        subscription = self.kernel.nodes[i].subscribe(attributes, now, item.expires_s, item.match_all)
        self.subscriptions[i, action.index] = subscription
        expires_us = NOBODY if subscription.expires_us is None else subscription.expires_us
        _record(self.kernel, now, action.node, "subscribed", subscription.number, expires_us, to_text(attributes))

    def _unsubscribe(self, i: int, now: int, action: actions.Action) -> None:
        """End a subscription of the node; do nothing if the node lacks the subscription."""
        subscription = self.subscriptions.pop((i, action.index), None)
        if subscription is not None:
            _record(self.kernel, now, action.node, "unsubscribed", subscription.number, 0, "")
            self.kernel.nodes[i].unsubscribe(subscription, now)

    def _publish(self, i: int, now: int, action: actions.Action) -> None:
        item = action.item
        attributes = reading(self.scenario, action, now)
        reading_number = self.kernel.nodes[i].publish(attributes, now, item.payload)
        text = to_text(with_payload(attributes, item.payload))
        _record(self.kernel, now, action.node, "published", reading_number, 0, text)
