"""The twin of `workbench.protocols.dps`: links, interests as filters, publications that go where they may be asked for.

Theory of operation
    `state.py` has what nodes remember, `links.py` how links tell interests, `publications.py` how publications travel,
    `filters.py` what filters say; topics are hashed and compared before the run (`topics.py`). A frame's message is one
    message of a link, or a publication of a certain size, whose word is the hops that it has made.

    What a link does is the definition's table (`automaton.py`), as arrays of the state; what a node decides by are the
    definition's functions (`rules.py`), compiled as they are.

Cost
    For a message of a link a pass over the filters of its node's links; for a publication some words for each link.
    Memory: 32 bytes for each node and publication; 150 for each neighbor; each filter that differs once.

Limits
    A network whose nodes have more than 256 neighbors is left to the definition.
"""

from __future__ import annotations

import numpy as np

from workbench.protocols.dps import rules
from workbench.protocols.dps.automaton import GONE, MUTED
from workbench.protocols.dps.fast import state
from workbench.protocols.dps.fast.acknowledgements import take_answer
from workbench.protocols.dps.fast.filters import EMPTY, Number, add_to_sum, clear_sum, keep_filter, keep_needs
from workbench.protocols.dps.fast.links import (
    ask,
    end,
    give_link_up,
    take_acknowledgement,
    take_subscription,
    update,
    wake_links,
)
from workbench.protocols.dps.fast.mesh_ids import OWN_HIGH, marked, stream_bits, swapped
from workbench.protocols.dps.fast.neighborhood import choose, next_neighbor, welcome_all
from workbench.protocols.dps.fast.outgoing import announce
from workbench.protocols.dps.fast.publications import (
    give_retained,
    publish_content,
    take_publication,
    wake_resending,
    wake_waiting,
)
from workbench.protocols.dps.fast.remotes import link_of
from workbench.protocols.dps.fast.repeats import give_up, wake_repeats
from workbench.protocols.dps.fast.retained import remove_ended
from workbench.protocols.dps.fast.state import Message
from workbench.protocols.dps.wire import SAK_REQUESTED
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled

twin.compiled_rules(rules)

PARTS = (state,)
WAKES = True


@compiled
def has_room(core, state):
    """Whether the filters and needs that an event may make have room."""
    filters, rows = state.numbers[Number.FILTERS] + state.most_new, state.numbers[Number.NEEDS] + state.most_new
    return filters < len(state.filters) and rows < len(state.needs)


@compiled
def start(core, state, i, now):
    """Draw a mesh id, and when to ask neighbors for a link."""
    i = np.int64(i)
    node = state.nodes[i]
    node.mesh_low = marked(swapped(stream_bits(core, i)))
    node.mesh_high = swapped(stream_bits(core, i)) & OWN_HIGH
    node.has_news = 1
    welcome_all(core, state, i, now)
    _finish(core, state, i, now)


@compiled
def _finish(core, state, i, now):
    """Report what has changed, and plan when to wake up."""
    announce(core, state, i, now)
    _plan_wake(core, state, i)


@compiled
def _plan_wake(core, state, i):
    node = state.nodes[i]
    earliest_us = _earlier(_earlier(node.update_us, node.ids_us), node.next_end_us)
    earliest_us = _earlier(earliest_us, _earlier(node.choose_us, node.scout_us))
    earliest_us = _earlier(earliest_us, node.repeat_us)
    link = np.int64(node.links.first)
    while link != NONE:
        it = state.links[link]
        earliest_us = _earlier(_earlier(_earlier(earliest_us, it.tick_us), it.keep_alive_us), it.resend_us)
        earliest_us = _earlier(earliest_us, it.again_us)
        link = np.int64(it.next)
    link = np.int64(node.asked.first)
    while link != NONE:
        earliest_us = _earlier(earliest_us, state.askings[link].ask_us)
        link = np.int64(state.askings[link].next)
    publication = np.int64(node.waiting.first)
    while publication != NONE:
        earliest_us = _earlier(earliest_us, state.waitings[publication, i].due_us)
        publication = np.int64(state.waitings[publication, i].next)
    if node.entries:
        what = np.int64(core.nodes[i].first_subscription)
        while what != NONE:
            if state.asks[what]:
                earliest_us = _earlier(earliest_us, core.subscriptions[what].expires_us)
            what = np.int64(core.subscriptions[what].next)
    core.next_wake[i] = earliest_us


@compiled
def _earlier(one_us, other_us):
    if other_us == NONE:
        return one_us
    return other_us if one_us == NONE else min(one_us, other_us)


# Own subscriptions


@compiled
def _change_own(core, state, i, what, asks, now):
    """A subscription of the node's own begins or ends: their sum is another, and every neighbor is told."""
    state.asks[what] = asks
    node = state.nodes[i]
    node.entries += 1 if asks else -1
    node.own = EMPTY
    node.own_needs = EMPTY
    if node.entries:
        clear_sum(state)
        one = np.int64(core.nodes[i].first_subscription)
        while one != NONE:
            if state.asks[one]:
                asked = state.asked_of[one]
                add_to_sum(state, state.asked_filter[asked], state.asked_needs[asked])
            one = np.int64(core.subscriptions[one].next)
        node.own = keep_filter(state)
        node.own_needs = keep_needs(state)
    node.has_news = 1
    update(core, state, i, now)


@compiled
def subscribe(core, state, i, what, now):
    """Ask for what matches."""
    i = np.int64(i)
    _change_own(core, state, i, what, 1, now)
    give_retained(core, state, i, what, now)
    _finish(core, state, i, now)


@compiled
def unsubscribe(core, state, i, what, now):
    """Ask for it no longer, if the subscription has not ended already."""
    i = np.int64(i)
    if state.asks[what]:
        _change_own(core, state, i, what, 0, now)
    _finish(core, state, i, now)


# Messages


@compiled
def publish(core, state, i, content, number, now):
    """Publish a reading."""
    i = np.int64(i)
    publish_content(core, state, i, content, number, now)
    if state.retains:
        _plan_wake(core, state, i)


@compiled
def receive(core, state, i, sender, message, word, broadcast, now):
    """Take a neighbor's message; of a publication ``word`` has the hops before this one."""
    i, sender = np.int64(i), np.int64(sender)
    name = core.messages[message].name
    if name == Message.PUBLICATION:
        take_publication(core, state, i, sender, message, word, now)
        if state.retains or state.nodes[i].is_crowded:
            _plan_wake(core, state, i)
        return
    link = link_of(state, i, sender)
    if name == Message.ACKNOWLEDGEMENT:
        take_answer(core, state, i, link, message, now)
        return
    if name == Message.SUBSCRIPTION:
        take_subscription(core, state, i, link, message, now)
    else:
        take_acknowledgement(core, state, i, link, message, now)
    _finish(core, state, i, now)


@compiled
def sent(core, state, i, receiver, message, word, ok, now):
    """Send again what the radio has given up."""
    name, link = core.messages[message].name, link_of(state, i, np.int64(receiver))
    if ok:
        state.links[link].repeated = 0
        return
    if name == Message.PUBLICATION:
        give_up(core, state, i, link, np.int64(state.letters[message].publication), word, now)
    elif name != Message.ACKNOWLEDGEMENT:
        is_answer = name != Message.SUBSCRIPTION and not state.letters[message].flags & SAK_REQUESTED
        give_link_up(core, state, i, link, is_answer, now)
    _plan_wake(core, state, i)


# Time


@compiled
def wake(core, state, i, now):
    """Do what is due: subscriptions that end, messages of links, links to ask for."""
    i = np.int64(i)
    if state.nodes[i].entries:
        what = np.int64(core.nodes[i].first_subscription)
        while what != NONE:
            expires_us = core.subscriptions[what].expires_us
            if state.asks[what] and expires_us != NONE and expires_us <= now:
                _change_own(core, state, i, what, 0, now)
            what = np.int64(core.subscriptions[what].next)
    wake_links(core, state, i, now)
    wake_waiting(core, state, i, now)
    remove_ended(state, i, now)
    wake_resending(core, state, i, now)
    wake_repeats(core, state, i, now)
    node = state.nodes[i]
    if node.choose_us != NONE and node.choose_us <= now:
        choose(core, state, i, now)
    if node.scout_us != NONE and node.scout_us <= now:
        _send_scout(core, state, i, now)
    _ask_neighbors(core, state, i, now)
    _finish(core, state, i, now)


@compiled
def _send_scout(core, state, i, now):
    """End the scout's link if it joins nothing, and ask the next neighbor."""
    node = state.nodes[i]
    scout = np.int64(node.scout)
    if scout != NONE:
        it = state.links[scout]
        if it.state == MUTED and not it.pending and not it.wanted:
            end(core, state, i, scout, now)
    scout = next_neighbor(state, i)
    node.scout = scout
    if scout != NONE:
        ask(core, state, i, scout, now)
    node.scout_us = now + rules.scout_after_us(node.recheck_s, twin.stream_uniform(core, i))


@compiled
def _ask_neighbors(core, state, i, now):
    asked, before = state.nodes[i].asked, NONE
    link = np.int64(asked.first)
    while link != NONE:
        it = state.askings[link]
        behind = np.int64(it.next)
        if it.ask_us <= now:
            it.is_asked = 0
            twin.remove_behind(asked, state.askings, before, link)
            if state.links[link].state == GONE:
                ask(core, state, i, link, now)
        else:
            before = link
        link = behind
