"""Sweeps: runs of the same scenario with varied parameters and seeds, by default on all cores of this machine.

A *point* is one run of a sweep: a set of values for the varied parameters.

design      the points of a sweep: their numbers, and the values of the varied parameters
plans       the designs of `wb.plans`, and sweeps that choose their points by results
plan        a base scenario, a design and the engine; builds the scenarios and keys of points on demand
values      values of varied parameters: their labels in tables, and texts that identify them
work        runs one point and returns its row
code        the digest of the code that a point runs
user_code   the user's filters and protocols: digests of their code, and shipping to workers
references  the user's code that a function or class refers to
sources     sources of the user's modules, for workers that cannot import them
runners     LocalRunner, the interface of runners, and the default runner
processes   ProcessRunner: runs points on all cores of this machine
forking     processes that run points, and the server that forks them
limits      time and memory limits of a point
shares      division of the points into shares (lists of points) that take about the same time
spark       SparkRunner: runs points on a cluster
store       stores of results, in a folder (Parquet) or in memory; each result is stored once (docs/SWEEPS.md)
progress    a bar in a notebook, a line in a terminal
table       SweepTable: the results as a DataFrame, a summary, a figure
means       means over runs with their 95 % confidence intervals; `workbench.views.sweeps` draws them
"""

from workbench.sweeps.processes import ProcessRunner
from workbench.sweeps.runners import LocalRunner, Runner
from workbench.sweeps.spark import SparkRunner
from workbench.sweeps.sweep import Sweep
from workbench.sweeps.table import SweepTable

__all__ = ["LocalRunner", "ProcessRunner", "Runner", "SparkRunner", "Sweep", "SweepTable"]
