"""A small scenario, filters and a runner for tests of sweeps."""

import os

import workbench as wb
from workbench.sweeps import LocalRunner


def scenario(**changes):
    """Return a scenario with a sink at one end of a line of five nodes and a source at the other."""
    line = wb.Scenario(
        topology=wb.topology.line(5),
        protocol=wb.Diffusion(),
        workload=[wb.subscribe(at=0, what="TEMP GE 25"), wb.publish(at=4, what="TEMP IS 26.5", every_s=2)],
        duration_s=5,
    )
    return line.replace(**changes)


class Counting:
    """A runner in this process that records which points it ran, and stops after some points."""

    def __init__(self, points=None, error=KeyboardInterrupt):
        self.points, self.error, self.ran = points, error, []

    def run(self, plan, numbers, report_progress):
        for rows in LocalRunner().run(plan, numbers, report_progress):
            if len(self.ran) == self.points:
                raise self.error
            self.ran += [row.number for row in rows]
            yield rows


def harmless(attributes):
    return attributes


def poisoned(attributes):
    os._exit(3)
