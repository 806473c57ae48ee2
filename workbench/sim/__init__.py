"""Simulation: what a run is, and what plays it.

scenario workload radio run      what a run is, and what comes of it
file_format runner               a scenario as JSON; the engine that plays it
kernel air application engine    the reference engine, and its parts
trace metrics                    what happened, as a table, and as numbers
random_workload                  queries, events and failures drawn at random
fast/                            the fast engine
"""
