"""Networks that change during a run: nodes fail, join, leave and move; links appear, vanish and lose frames in bursts.

    items       the workload items of these changes
    arcs        the delivery ratio of each arc over time, computed from the items before a run
    measured    delivery ratios of a measurement, for the item `link_trace`

Times at which nodes go down and come up are actions of the workload (`workbench.sim.actions`). Movements are in
`workbench.mobility`.
"""
