"""A small scenario and filters for tests of sweeps."""

import os

import workbench as wb


def scenario(**changes):
    """Return a scenario with a sink at one end of a line of five nodes and a source at the other."""
    line = wb.Scenario(
        topology=wb.topology.line(5),
        protocol=wb.Diffusion(),
        workload=[wb.subscribe(at=0, what="TEMP GE 25"), wb.publish(at=4, what="TEMP IS 26.5", every_s=2)],
        duration_s=5,
    )
    return line.replace(**changes)


class Clock:
    """A replacement for the module `time`, whose clock advances only by `sleep`, so that waiting takes no time."""

    def __init__(self):
        self.now_s = 0.0

    def perf_counter(self):
        return self.now_s

    def sleep(self, seconds):
        self.now_s += seconds


def harmless(attributes):
    return attributes


def poisoned(attributes):
    os._exit(3)
