"""Live runs on motes: they run by the wall clock, and the motes' clocks give the events their times.

Theory of operation
    A thread carries out the workload (subscribe, publish, outage) at its times, as commands to motes. Motes without a
    radio send and receive through the host. The host then connects them by the simulator's channel, with the topology's
    links, losses, collisions and delays; the simulator's event queue waits for the clock. Motes with a radio report the
    frames that they sent and received.

    A mote that is lost (unplugged, killed, reset, silent) counts as failed. When it answers again, the host configures
    it as its node again, even if it has kept its memory, repeats its subscriptions, and counts it as recovered. An
    outage of the workload disconnects a node's radio and holds its clock. A lost mote that answers during an outage is
    configured when the outage ends.

    A refused command, or a message too long for a frame of the host link, is noted, and the run continues.

Parts
    run          the `Run` that the user gets
    driver       the thread's loop: clock, kernel, messages from the motes
    application  the workload as commands; subscriptions, outages, motes that are lost and reconnected
    recorder     the trace, readable while it grows; notes; the clock

    Kernel and channel are the simulator's own (`workbench.sim.kernel`, `workbench.sim.channel`); the kernel's nodes are
    `driver.LiveNode`.

Order
    Rows are sorted by time. A mote's times are exact to half a round trip, so a row may precede its cause.
"""
