"""Link qualities in the fast engine: reported at the start, or learned from beacons.

`workbench.protocols.link_estimator` explains the beacons, and this module compiles its functions. Beacons are not
encoded: a receiver reads the delivery ratios from the records (`LINK`) in which the sender stored them. The sender's
next beacon overwrites these ratios. So, in both engines, a node creates no beacon while its radio still holds the
previous one.

Parameters of the functions: ``core`` is the run's `layout.Core`, the arrays of the engine; ``i`` and ``sender`` are
indices of nodes; ``now`` is the present time in µs.
"""

from workbench.protocols import link_estimator
from workbench.protocols.link_estimator import MAX_LISTED, MAX_NEIGHBORS, NUMBERS
from workbench.sim.fast.agenda import push
from workbench.sim.fast.channel import find_arc, let_go, send_at, take_frame, take_message
from workbench.sim.fast.compiled import compiled
from workbench.sim.fast.draws import below
from workbench.sim.fast.layout import BEACON, BROADCAST, NONE

half_interval_us, count_beacon, update_outbound, byte_of = (
    compiled(function)
    for function in (
        link_estimator.half_interval_us,
        link_estimator.count_beacon,
        link_estimator.update_outbound,
        link_estimator.byte_of,
    )
)
compiled(link_estimator.ratios_of)
has_changed = compiled(link_estimator.has_changed)


@compiled
def plan_beacon(core, i, earlier, now):
    """Schedule the next beacon of node ``i``; ``earlier`` is the number of its beacons so far."""
    half_us = half_interval_us(earlier, core.longest_beacon_us)
    frame = take_frame(core)
    boot = core.boots[i]
    core.frames[frame].sender = i
    core.frames[frame].header = earlier
    core.frames[frame].outage = boot  # beacons that were planned before a restart are not sent
    random_us = below(core.beacons[i].key, boot * NUMBERS + earlier, half_us)
    push(core, frame, now + half_us + random_us, BEACON)


@compiled
def send_beacon(core, i, earlier, now):
    """Send a beacon of node ``i``, unless the node is down or its previous beacon is still unsent.

    ``earlier``: the number of the node's beacons so far, which becomes the sequence number of the message.
    """
    beacons = core.beacons[i]
    if core.down[i] or beacons.is_waiting:
        return
    beacons.is_waiting = 1
    beacons.number = (beacons.number + 1) % NUMBERS
    _list_neighbors(core, beacons)
    size_B = link_estimator.HEADER_B + link_estimator.ENTRY_B * beacons.entries
    airtime_us = core.beacon_airtimes_us[beacons.entries]
    message = take_message(core, core.beacon_name, core.addresses[i], earlier, 0, size_B, airtime_us)
    send_at(core, now, i, BROADCAST, message, 0, now)
    let_go(core, message)


@compiled
def _list_neighbors(core, beacons):
    """Choose the neighbors that a node's new beacon lists, and store the inbound delivery ratio of each as a byte.

    A beacon lists up to MAX_LISTED neighbors. If the node has more, its next beacon continues with the other neighbors.
    ``beacons``: the node's row in ``core.beacons``.
    """
    sampled = 0
    arc = beacons.first
    while arc != NONE:
        sampled += core.links[arc].inbound >= 0
        arc = core.links[arc].next
    first_listed = 0
    if sampled > MAX_LISTED:
        first_listed = beacons.next_listed % sampled
        beacons.next_listed = first_listed + MAX_LISTED
    beacons.entries = min(sampled, MAX_LISTED)
    neighbor_index = -first_listed
    arc = beacons.first
    while arc != NONE:
        link = core.links[arc]
        link.listed = NONE
        if link.inbound >= 0:
            if neighbor_index % sampled < MAX_LISTED:
                link.listed = byte_of(link.inbound)
            neighbor_index += 1
        arc = link.next


@compiled
def receive_beacon(core, arc, i, sender):
    """Update the link estimates of node ``i`` from the latest beacon of node ``sender``.

    ``arc``: the index of the arc from the sender to node ``i``. Returns whether the link's delivery ratios differ from
    those last reported to the node.
    """
    link, beacons = core.links[arc], core.beacons[i]
    beacon_number = core.beacons[sender].number
    if link.beacon_count:
        count_beacon(link, beacon_number)
    else:
        if beacons.neighbors >= MAX_NEIGHBORS:
            return False
        link.number = beacon_number
        link.beacon_count = 1
        if beacons.last == NONE:
            beacons.first = arc
        else:
            core.links[beacons.last].next = arc
        beacons.last = arc
        beacons.neighbors += 1
    reverse_arc = find_arc(core, i, sender)
    listed_ratio = NONE if reverse_arc == NONE else core.links[reverse_arc].listed
    update_outbound(link, listed_ratio, core.beacons[sender].entries, beacons.number)
    return has_changed(link)
