"""The application of the reference engine: it does what the workload asks for.

Contract
    `plan` puts the workload's actions on the kernel's heap. The kernel calls ``act`` for each when its time has come;
    the application calls the nodes, and ``kernel.collect`` for what they have done. Failures and recoveries change
    ``kernel.down`` and are reported to the air (`Outages`).

    A driver of nodes that live elsewhere brings an application of its own: whatever has such an ``act``.
    It shares `plan`, `reading` and `Outages`.

The fast engine does the same in `workbench.sim.fast.prepare`, beforehand, and in its loop.
"""

from __future__ import annotations

from typing import Any

from workbench.attributes.model import Attribute, with_payload
from workbench.attributes.text import parse, to_text
from workbench.errors import ScenarioError, WorkbenchError
from workbench.protocols.contract import NOBODY
from workbench.sim import workload
from workbench.sim.channel import Air
from workbench.sim.kernel import ACTION, Kernel


def plan(scenario: Any, kernel: Kernel, duration_us: int) -> None:
    """Put all that the workload asks for on the heap."""
    for action in workload.expand(scenario.workload, kernel.addresses, duration_us, scenario.seed):
        kernel.push(action.time_us, ACTION, action)


def reading(scenario: Any, action: workload.Action, now: int) -> tuple[Attribute, ...]:
    """What a publication says: its text, or what was measured or the sensor field is, there and at this time."""
    text = action.item.what
    if not isinstance(text, str):
        x_m, y_m = scenario.topology.nodes[action.node]["pos"]
        text = text.attributes(action.node, x_m, y_m, now / 1e6, scenario.extent_m)
    return parse(text)


def _record(kernel: Kernel, now: int, node: int, event: str, sequence: int, value: int, detail: str) -> None:
    """Record what the application did at a node, or what became of the node."""
    kernel.recorder.append((now, node, event, NOBODY, "", node, sequence, 0, value, detail))


class Outages:
    """Failures and recoveries of nodes, by index. A node is off from its first failure to as many recoveries."""

    def __init__(self, kernel: Kernel, air: Air) -> None:
        self.kernel, self.air = kernel, air

    def fail(self, i: int, now: int) -> None:
        """There is one more reason why the node is off."""
        kernel = self.kernel
        kernel.down[i] += 1
        if kernel.down[i] == 1:
            _record(kernel, now, kernel.addresses[i], "failed", 0, 0, "")
            self.air.fall_silent(i, now)

    def recover(self, i: int, now: int) -> None:
        """One of the reasons has ended."""
        kernel = self.kernel
        kernel.down[i] -= 1
        if kernel.down[i] == 0:
            self.air.be_free(i, now)
            _record(kernel, now, kernel.addresses[i], "recovered", 0, 0, "")
            kernel.wake_at[i] = None
            kernel.collect(i, now)


class Application:
    """The application on nodes that are objects here."""

    def __init__(self, scenario: Any, kernel: Kernel, outages: Outages) -> None:
        self.scenario, self.kernel, self.outages = scenario, kernel, outages
        self.subscriptions: dict[tuple[int, int], Any] = {}  # by the node's index and the workload item's index
        kernel.handlers[ACTION] = self.act

    def act(self, now: int, action: workload.Action) -> None:
        """Do what the workload asks for. A node that is down is asked for nothing; what a node refuses ends the run."""
        i = self.kernel.index[action.node]
        if action.kind == workload.FAIL:
            self.outages.fail(i, now)
        elif action.kind == workload.RECOVER:
            self.outages.recover(i, now)
        elif not self.kernel.down[i]:
            try:
                self._ask(i, now, action)
            except WorkbenchError as error:
                raise ScenarioError(f"workload item {action.index} at node {action.node}: {error}") from error
            self.kernel.collect(i, now)

    def _ask(self, i: int, now: int, action: workload.Action) -> None:
        if action.kind == workload.PUBLISH:
            self._publish(i, now, action)
        elif action.kind == workload.SUBSCRIBE:
            self._subscribe(i, now, action)
        else:
            self._unsubscribe(i, now, action)

    def _subscribe(self, i: int, now: int, action: workload.Action) -> None:
        item = action.item
        attributes = parse(item.what)
        subscription = self.kernel.nodes[i].subscribe(attributes, now, item.expires_s, item.match_all)
        self.subscriptions[i, action.index] = subscription
        expires_us = NOBODY if subscription.expires_us is None else subscription.expires_us
        _record(self.kernel, now, action.node, "subscribed", subscription.number, expires_us, to_text(attributes))

    def _unsubscribe(self, i: int, now: int, action: workload.Action) -> None:
        """End a subscription of the node. Ending an unknown one does nothing."""
        subscription = self.subscriptions.pop((i, action.index), None)
        if subscription is not None:
            _record(self.kernel, now, action.node, "unsubscribed", subscription.number, 0, "")
            self.kernel.nodes[i].unsubscribe(subscription, now)

    def _publish(self, i: int, now: int, action: workload.Action) -> None:
        item = action.item
        attributes = reading(self.scenario, action, now)
        number = self.kernel.nodes[i].publish(attributes, now, item.payload)
        text = to_text(with_payload(attributes, item.payload))
        _record(self.kernel, now, action.node, "published", number, 0, text)
