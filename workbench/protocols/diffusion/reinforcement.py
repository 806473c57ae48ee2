"""Reinforcement: how a sink chooses among the paths that its data came on, and what the nodes on them do about it.

Theory of operation
    A reinforcement is an interest message that a sink sends to one neighbor alone: the one that brought a source's new
    data first. That node puts its gradient towards the sender before all others and sends the message on to the
    neighbor that brought *it* the source's data first, and so on to the source. From then on data takes that path.

Differs from the original in
    A20  a reinforcement is taken if it lies within a cached interest (`attributes.is_within`): an equal one changes the
         order of that interest's gradients, a further constrained one gets an entry of its own. Any other is dropped.
    A21  it goes to the neighbors that brought new data first, to each source once per round. Of two reinforcements the
         newer wins, and a node keeps one gradient of the newest wave per sink, so gradients cannot form a loop. That
         gradient is also how a node knows a reinforcement again. One of an older round than the interest's is dropped.
    --   a sink starts at most ``max_reinforcements`` of them in a round of its interest. It remembers no more sources
         than that, so without this bound every reading of one it has forgotten would be reinforced again, and the
         paths of all would change with each (1500 nodes, 10 sinks, 100 sources: 1.5 million in 100 s).

The functions below decide; `DiffusionNode` sends, drops and sets gradients accordingly.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.attributes.interests import constraints, is_within
from workbench.attributes.model import one_way_match


def interests_around(reinforcement, entries):
    """Return the same sink's cached interests that a further constrained reinforcement lies within (A20)."""
    return [
        entry
        for entry in entries
        if is_within(reinforcement.attributes, entry.attributes)
        and any([gradient.sink == reinforcement.sink for gradient in entry.gradients])
    ]


def reason_to_refuse(reinforcement, entry, entries, address):
    """Return why the node at ``address`` refuses a reinforcement, or None.

    ``entry`` is the cached interest with the same constraints, or None. ``entries`` are all that it lies within.
    """
    sink = reinforcement.sink
    if sink == address:
        return "duplicate"
    if not entries:
        return "no_interest"
    if entry is None:
        return None
    newest = entry.newest_wave(sink)
    if newest == reinforcement.sequence:
        return "duplicate"
    if newest > reinforcement.sequence or entry.is_past(sink, reinforcement.round):
        return "stale"
    return None


def choose_paths(reinforcement, interests, settings, black_list, drop):
    """Return the data gradients that a reinforcement follows, one for each neighbor, and mark them as reinforced.

    They lead to the sources that the reinforcement asks for. ``interests`` has (attributes, data gradients) of each
    interest that it lies within. `Node.drop` is called as ``drop`` for each neighbor that must be left out.
    """
    paths = []
    sink = reinforcement.sink
    wanted = constraints(reinforcement.attributes)
    for attributes, data_gradients in interests:
        # A source whose path is already reinforced is left out, unless the reinforcement is further constrained.
        same = constraints(attributes) == wanted
        for data_gradient in data_gradients:
            neighbor = data_gradient.neighbor
            if neighbor == reinforcement.previous_hop or (same and sink in data_gradient.reinforced_for):
                continue
            if not one_way_match(reinforcement.attributes, data_gradient.attributes):
                continue
            is_new = neighbor not in [path.neighbor for path in paths]
            if neighbor in black_list:
                drop(neighbor, "reinforcement", sink, reinforcement.sequence, "blacklisted")
            elif (same and len(data_gradient.reinforced_for) >= settings.max_sinks) or (
                is_new and len(paths) >= settings.max_next_hops
            ):
                drop(neighbor, "reinforcement", sink, reinforcement.sequence, "full")
            else:
                if same:
                    data_gradient.reinforced_for += (sink,)
                if is_new:
                    paths.append(data_gradient)
    return paths
