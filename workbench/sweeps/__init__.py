"""Sweeps: the same scenario again and again, with parameters and seeds varied: on all cores of this machine, if nobody
says otherwise, on Spark or in this process.

design      which points there are: their numbers, and what is different about each
plans       the designs that `wb.plans` makes, and sweeps that choose their points by results
plan        a base scenario, a design and the engine: scenarios and keys of points, made when they are asked for
values      what can be varied: how a table shows it, and what tells it apart
work        one point run, and its row
code        the digest of the code that a point runs
user_code   the user's filters and protocols: told apart by their code, and shipped by value
runners     LocalRunner, what a runner is, and which one fits
processes   ProcessRunner
forking     processes that run points, and the server that forks them
shares      points dealt out in shares that take about the same time
spark       SparkRunner
store       results kept in a folder (Parquet) or in memory, each once; docs/SWEEPS.md
progress    a bar in a notebook, a line in a terminal
table       SweepTable: the results as a frame, a summary, a figure
means       means over runs with their 95 % confidence intervals; `workbench.views.sweeps` draws them
"""

from workbench.sweeps.processes import ProcessRunner
from workbench.sweeps.runners import LocalRunner, Runner
from workbench.sweeps.spark import SparkRunner
from workbench.sweeps.sweep import Sweep
from workbench.sweeps.table import SweepTable

__all__ = ["LocalRunner", "ProcessRunner", "Runner", "SparkRunner", "Sweep", "SweepTable"]
