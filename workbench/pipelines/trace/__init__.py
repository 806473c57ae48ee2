"""Traces of many runs as one table, and statistics computed from it.

table       the rows of all runs in a folder, of given runs, or of scenarios
source      the Spark data source "workbench.trace": a folder, or runs that are simulated when they are read
statistics  load, losses, states over time; mean and percentiles over runs
deliveries  deliveries and their publications: latency, flows, paths
"""
