"""A run on motes as it happens: time is the wall clock's, and the motes' own clocks say when something was.

Theory of operation
    A thread conducts: at its time it does what the workload asks (subscribe, publish, outage), as commands to motes.
    Motes without a radio of their own send and hear through the host: then the reference engine's air is between them,
    with the topology's links, losses, collisions and delays, only that its heap waits for the clock. Motes with a radio
    report what they sent and heard.

    A mote that is lost (unplugged, killed, reset, silent) counts as failed from then on; when it answers again it is
    made its node again, whether it has kept its memory or not, its subscriptions are made again, and it counts as
    recovered. An outage of the workload takes a node's radio away and holds its clock; a mote that answers again within
    one is made its node when the outage ends.

    What a mote refuses, or what does not fit into a frame of the host link, is noted, and the run goes on.

Parts
    run          the Run that a user holds
    conductor    the thread's loop: clock, kernel, messages of the motes
    application  what the workload asks for, as commands; subscriptions, outages, and motes that are lost and found
    recorder     rows that can be looked at while they come, notes, the clock

    Kernel and air are the simulator's own (`workbench.sim.kernel`, `workbench.sim.channel`); the kernel's nodes are
    `conductor.LiveNode`.

Order
    Rows are sorted by time. A mote's times are right to half a round trip, so a row may stand before its cause.
"""
