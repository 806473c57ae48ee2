"""Reinforcement: rules by which a sink chooses a path for a source's data, and by which nodes set up that path.

Theory of operation
    A reinforcement is an interest message that a sink sends to one neighbor only: the one that brought a source's new
    data first. That node moves its gradient towards the sender to the front. Then it forwards the message to the
    neighbor from which it received the source's data first. So the message travels to the source hop by hop, and from
    then on data takes this path in reverse.

Differs from the original in (the original is the TinyDiffusion design note of 2003; A20 and A21 are gaps in its
                              description, as numbered in the docstring of `workbench.protocols.diffusion`)
    A20  a reinforcement is accepted if its constraints lie within a cached interest (`attributes.is_within`). With
         equal constraints it changes the order of that interest's gradients. With stricter constraints it gets an
         entry of its own. Any other reinforcement is dropped.
    A21  a reinforcement is sent to the neighbors that brought new data first, once per source and round. A newer
         reinforcement replaces an older one: a node has one reinforced gradient per sink, so gradients cannot form a
         loop. The reinforced gradient stores the reinforcement's sequence number, by which the node recognizes
         duplicates. A reinforcement of an older round is dropped.
    --   a sink starts at most ``max_reinforcements`` reinforcements in a round of its interest, as it remembers that
         many sources. Without this limit every reading of a forgotten source would start another reinforcement, and
         each would change the paths of all sources (1500 nodes, 10 sinks, 100 sources: 1.5 million reinforcements in
         100 s).

The functions below only decide; `DiffusionNode` sends and drops messages and sets gradients.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.attributes.interests import constraints, is_within
from workbench.attributes.model import is_match


def containing_interests(reinforcement, entries):
    """Return the cache entries that contain a reinforcement.

    An entry contains it if the reinforcement's constraints lie within the constraints of the entry, and the entry has a
    gradient for the reinforcement's sink. See A20 in the module's docstring.
    """
    return [
        entry
        for entry in entries
        if is_within(reinforcement.attributes, entry.attributes)
        and any([gradient.sink == reinforcement.sink for gradient in entry.gradients])
    ]


def reason_to_refuse(reinforcement, entry, entries, address):
    """Return the reason why the node at ``address`` drops a reinforcement, or None if the node accepts it.

    ``entry``: the cache entry with the same constraints as the reinforcement, or None. ``entries``: the list [entry];
    if ``entry`` is None, the list of the cache entries within which the reinforcement lies (`containing_interests`).
    """
    sink = reinforcement.sink
    if sink == address:
        return "duplicate"
    if not entries:
        return "no_interest"
    if entry is None:
        return None
    newest_sequence = entry.newest_reinforcement(sink)
    if newest_sequence == reinforcement.sequence:
        return "duplicate"
    if newest_sequence > reinforcement.sequence or entry.has_newer_round(sink, reinforcement.round):
        return "stale"
    return None


def choose_paths(reinforcement, interests, settings, black_list, drop):
    """Return the data gradients along which a reinforcement is sent to the sources that match it.

    The result is a list of at most ``max_next_hops`` data gradients, to different neighbors. If an interest has the
    same constraints as the reinforcement, its data gradients to these neighbors are marked as reinforced.
    ``interests``: [(attributes, data gradients), ...] of the interests within which the reinforcement lies. ``drop``:
    the method `Node.drop`; it is called for each neighbor that is on the black list or exceeds a limit.
    """
    paths = []
    sink = reinforcement.sink
    wanted_constraints = constraints(reinforcement.attributes)
    for attributes, data_gradients in interests:
        # A source whose path is already reinforced is left out, unless the reinforcement is further constrained.
        is_equal = constraints(attributes) == wanted_constraints
        for data_gradient in data_gradients:
            neighbor = data_gradient.neighbor
            if neighbor == reinforcement.previous_hop or (is_equal and sink in data_gradient.reinforced_for):
                continue
            if not is_match(reinforcement.attributes, data_gradient.attributes, settings.matching):
                continue
            is_new = neighbor not in [path.neighbor for path in paths]
            if neighbor in black_list:
                drop(neighbor, "reinforcement", sink, reinforcement.sequence, "blacklisted")
            elif (is_equal and len(data_gradient.reinforced_for) >= settings.max_sinks) or (
                is_new and len(paths) >= settings.max_next_hops
            ):
                drop(neighbor, "reinforcement", sink, reinforcement.sequence, "full")
            else:
                if is_equal:
                    data_gradient.reinforced_for += (sink,)
                if is_new:
                    paths.append(data_gradient)
    return paths
