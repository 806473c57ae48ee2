"""A sweep of which one point ends its process and one never ends, and a program that runs it on a cluster.

`python -c PROGRAM FOLDER MASTER POINTS` is the driver that tests and the benchmark kill.
"""

import os
import time

import workbench as wb

# Not `python -m`: the measure would be another one, of the module __main__.
PROGRAM = f"import sys; from {__name__} import main; main(*sys.argv[1:])"
TIMEOUT_S = 3.0
PACE_S = 0.05  # a point takes no less: on a fast machine, too, there are points left when workers and drivers die
SAID = {
    "poisoned": "the point ended its process twice (exit status 3)",
    "endless": f"the point did not end within {TIMEOUT_S:g} s and was stopped",
}


def scenario():
    """A run that takes some ten milliseconds."""
    return wb.Scenario(
        topology=wb.topology.grid(5, 5),
        protocol=wb.Diffusion(),
        workload=[wb.subscribe(at=0, what="TEMP GE 25"), wb.publish(at=24, what="TEMP IS 26.5", every_s=2)],
        radio=wb.Radio(loss=0.1),
        duration_s=10,
    )


def places(points):
    """The seeds of the point that ends its process, and of the one that never ends."""
    return points // 3, points // 2


def sweep(points):
    """The sweep, as many seeds as points."""
    poisoned, endless = places(points)

    def rows_of(run):
        if run.scenario.seed == poisoned:
            os._exit(3)
        while run.scenario.seed == endless:
            pass
        time.sleep(PACE_S)
        return {"trace_rows": run.trace.num_rows}

    return wb.Sweep(scenario(), {"seed": range(points)}, engine="reference", measure=rows_of)


def main(folder, master, points):
    """Run the sweep into a folder on a cluster."""
    from tests.sweeps.cluster import CONFIG

    runner = wb.SparkRunner(master, CONFIG, timeout_s=TIMEOUT_S)
    sweep(int(points)).run(out=folder, runner=runner, progress=False)
