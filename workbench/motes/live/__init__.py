"""Live runs on motes: they run by the wall clock, and the motes' clocks give the events their times.

Theory of operation
    A thread sends the workload's actions (subscribe, publish, outage) at their times as commands to motes. Motes that
    have no radio send and receive through the host. The host connects them by the simulator's channel, with the
    topology's links, losses, collisions and delays; the simulator's event queue then runs by the wall clock. Motes with
    a radio report the frames that they sent and received.

    The node of a lost mote (unplugged, killed, reset, silent) counts as failed. When the mote answers again, the host
    configures it again, even if it has kept its memory. The host then repeats the node's subscriptions and counts it as
    recovered. An outage of the workload disconnects a node's radio and stops its clock. A lost mote that answers during
    an outage is configured when the outage ends.

    A refused command, or a message too long for a frame of the host link, adds a note to the run, which continues.

Parts
    run          the `Run` that the user gets
    driver       the thread's loop: clock, kernel, messages from the motes
    application  the workload as commands; subscriptions, outages, motes that are lost and reconnected
    recorder     the trace, readable while it grows; the notes; the run's clock

    Kernel and channel are the simulator's own (`workbench.sim.kernel`, `workbench.sim.channel`); the kernel's nodes are
    `driver.LiveNode`.

Order
    The rows of the trace are sorted by time. A mote's times have an error of up to half a round trip, so the row of an
    effect may precede the row of its cause.
"""
