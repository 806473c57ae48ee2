"""Traces of many runs: where they are kept, how Spark reads them, and questions to them.

table       the rows of all runs of a folder, or of runs and scenarios, as a table
source      "workbench.trace" for Spark: a folder, or runs that are simulated when they are read
questions   load, losses, what stands at a time; mean and band over runs
arrived     deliveries and their publications: latency, flows
"""
