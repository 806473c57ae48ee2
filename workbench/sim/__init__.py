"""Simulation: scenarios, the engines that play them, and the traces and metrics of a run.

scenario workload radio run      the values: a scenario with its workload and radio; the run is its result
file_format runner               a scenario as JSON; the choice of the engine
kernel channel application engine    the reference engine and its three layers
trace metrics                    the rows that a run records, and numbers computed from them
random_workload                  queries, events and failures drawn at random
fast/                            the fast engine
"""
