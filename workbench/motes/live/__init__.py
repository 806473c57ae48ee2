"""Live runs on motes: time is the wall clock, and the motes' own clocks date the events.

Theory of operation
    A thread carries out the workload (subscribe, publish, outage) at its times, as commands to motes. Motes without a
    radio of their own send and receive through the host. The reference engine's channel is then between them, with the
    topology's links, losses, collisions and delays, and its event queue waits for the clock. Motes with a radio report
    the frames that they sent and received.

    A mote that is lost (unplugged, killed, reset, silent) counts as failed from then on; when it answers again it is
    made its node again, whether it has kept its memory or not, its subscriptions are made again, and it counts as
    recovered. An outage of the workload takes a node's radio away and holds its clock; a mote that answers again within
    one is made its node when the outage ends.

    What a mote refuses, or what does not fit into a frame of the host link, is noted, and the run goes on.

Parts
    run          the Run that a user holds
    driver       the thread's loop: clock, kernel, messages of the motes
    application  what the workload asks for, as commands; subscriptions, outages, and motes that are lost and found
    recorder     rows that can be looked at while they come, notes, the clock

    Kernel and air are the simulator's own (`workbench.sim.kernel`, `workbench.sim.channel`); the kernel's nodes are
    `driver.LiveNode`.

Order
    Rows are sorted by time. A mote's times are right to half a round trip, so a row may stand before its cause.
"""
