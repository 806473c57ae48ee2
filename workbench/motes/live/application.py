"""The application of a live run: what the workload asks for, as commands to motes, and motes that are lost and found.

It stands where the simulator's own (`workbench.sim.application`) stands: the kernel calls ``act``. A mote answers when
it can, so nothing here waits: rows of subscriptions and publications come from the motes, as do refusals.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from workbench.attributes.model import with_payload
from workbench.errors import WorkbenchError
from workbench.motes import messages
from workbench.motes.live.commands import Commands
from workbench.motes.live.subscriptions import Subscriptions
from workbench.motes.mote import configuration
from workbench.protocols.contract import NOBODY
from workbench.sim import workload
from workbench.sim.application import Application, Outages, reading
from workbench.sim.kernel import ACTION, Kernel


class MoteOutages:
    """Failures and recoveries of nodes on motes, those of the workload and those of motes that are lost and found.

    ``outages`` does what they mean for kernel and air. The motes' clocks are held meanwhile.
    """

    def __init__(self, outages: Outages, commands: Commands, subscriptions: Subscriptions) -> None:
        self.kernel, self.air = outages.kernel, outages.air
        self.lost: set[int] = set()
        self._outages, self._commands, self._subscriptions = outages, commands, subscriptions
        self._found: Counter[int] = Counter()  # how often a node's mote was lost and has answered again
        self._unmade: set[int] = set()  # nodes whose motes have answered again, but are not made their nodes yet

    def fail(self, node: int, now: int) -> None:
        """There is one more reason why a node is off: its mote's clock is held."""
        self._outages.fail(self.kernel.index[node], now)
        self._commands.hold(node, now)

    def recover(self, node: int, now: int) -> None:
        """One of the reasons has ended: after the last one its mote goes on."""
        i = self.kernel.index[node]
        self._outages.recover(i, now)
        if self.kernel.down[i]:
            return
        self._commands.release(node, now)
        if node in self._unmade:
            self._unmade.discard(node)
            self._make_again(node, now)

    def lose(self, node: int, reason: str, now: int) -> None:
        """A node's mote is lost: it counts as failed."""
        if node in self.lost:
            return
        self.lost.add(node)
        self._unmade.discard(node)
        self._subscriptions.forget_numbers(node)
        self._commands.notes.add(node, "link_lost", reason, now)
        self.fail(node, now)

    def find(self, node: int, now: int) -> None:
        """A lost mote answers again: it is to become its node again, now or when an outage of the workload ends."""
        if node not in self.lost:
            return
        mote = self._commands.crew.motes[node]
        boot = mote.greeting.boot if mote.greeting is not None else 0
        row = now, node, "link_found", NOBODY, "", node, boot, 0, 0, f"{mote.url} answers again"
        self.kernel.recorder.append(row)
        self.lost.discard(node)
        self._found[node] += 1
        self._unmade.add(node)
        if self.kernel.down[self.kernel.index[node]] > 1:
            self._commands.hold(node, now)
        self.recover(node, now)

    def _make_again(self, node: int, now: int) -> None:
        crew = self._commands.crew
        # Of its own restarts and those that the host saw, the host's are counted: a mote whose line was cut has not
        # begun again, but it loses its memory here.
        boot = crew.first_boots[node] + self._found[node]
        rest = configuration(**crew.configuration(node, boot))
        self._commands.post(node, messages.CONFIGURE, rest=rest, then=self._commands.refusals(node))
        self.air.report_links(self.kernel.index[node], now)
        self._subscriptions.begin_again(node, now)


class MoteApplication:
    """Does what the workload asks for, on motes. What cannot be done is noted, and the run goes on.

    ``simulated`` does what is asked of nodes that are simulated.
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

    def act(self, now: int, action: workload.Action) -> None:
        """Do what the workload asks for. A node that is down is asked for nothing."""
        node = action.node
        if node not in self._commands.crew.motes:
            try:
                self._simulated.act(now, action)
            except WorkbenchError as error:
                self._commands.notes.add(node, "refused", str(error), now)
        elif action.kind == workload.FAIL:
            self.outages.fail(node, now)
        elif action.kind == workload.RECOVER:
            self.outages.recover(node, now)
        elif not self.kernel.down[self.kernel.index[node]]:
            try:
                self._ask(now, action)
            except WorkbenchError as error:
                self._commands.notes.add(node, "refused", str(error), now)
        elif action.kind == workload.UNSUBSCRIBE and node in self.outages.lost:
            # A subscription that ends while its mote is lost must not be made again.
            self._subscriptions.end(action)

    def _ask(self, now: int, action: workload.Action) -> None:
        if action.kind == workload.SUBSCRIBE:
            self._subscriptions.begin(action, now)
        elif action.kind == workload.UNSUBSCRIBE:
            self._subscriptions.end(action)
        else:
            attributes = with_payload(reading(self.scenario, action, now), action.item.payload)
            rest = messages.encode_attribute_list(attributes)
            then = self._commands.refusals(action.node)
            self._commands.post(action.node, messages.PUBLISH, rest=rest, then=then)
