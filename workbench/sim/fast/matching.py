"""Who gets what: `attributes.matching_samples` over integers.

A key's values are integers, or blobs, which are numbered as they come: what may be asked of a blob is only whether it
is the same.
"""

from workbench.attributes.model import EQ, EQ_ANY, GE, GT, IS, LE, LT, NE
from workbench.sim.fast.layout import NONE
from workbench.sim.fast.record import tell_delivered, tell_held
from workbench.sim.fast.compiled import compiled


@compiled
def satisfies(value, operator, bound):
    """`attributes.satisfies` of integers."""
    return (
        operator == EQ_ANY
        or (operator == EQ and value == bound)
        or (operator == NE and value != bound)
        or (operator == GE and value >= bound)
        or (operator == LE and value <= bound)
        or (operator == GT and value > bound)
        or (operator == LT and value < bound)
    )


@compiled
def one_way_match(attributes, first, last, sample_first, sample_last):
    """`attributes.one_way_match` of rows first:last (a subscription) and sample_first:sample_last of ``attributes``."""
    for a in range(first, last):
        if attributes[a, 1] == IS:
            continue
        met = False
        for b in range(sample_first, sample_last):
            if attributes[b, 0] == attributes[a, 0] and attributes[b, 1] == IS:
                met = met or satisfies(attributes[b, 2], attributes[a, 1], attributes[a, 2])
        if not met:
            return False
    return True


@compiled
def deliver(core, now, i, peer, message):
    """Hand each sample of a publication to the open subscriptions of node ``i`` that it matches."""
    content = core.contents[core.messages[message].content]
    index = core.nodes[i].first_subscription
    while index != NONE:
        subscription = core.subscriptions[index]
        if subscription.is_open and (subscription.expires_us < 0 or now < subscription.expires_us):
            for s in range(content.first_sample, content.last_sample):
                sample = core.samples[s]
                if one_way_match(core.attributes, subscription.first, subscription.last, sample.first, sample.last):
                    tell_delivered(core, now, i, peer, message, subscription.number, sample.detail)
        index = subscription.next


@compiled
def hold(core, pairs, i, peer, message, event, hops, now):
    """Node ``i`` has a publication: tell so and deliver it; ``pairs[event, i].held`` says whether it ever held it."""
    pair = pairs[event, i]
    is_first = not pair.held
    pair.held = 1
    tell_held(core, now, i, peer, message, hops, is_first)
    if core.nodes[i].first_subscription != NONE:
        deliver(core, now, i, peer, message)
