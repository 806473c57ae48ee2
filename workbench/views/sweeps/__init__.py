"""Charts of sweeps: a metric against a parameter (`summary.py`), savings of a protocol relative to another
(`savings.py`), sensitivity of a metric to parameters (`sensitivity.py`). `workbench.sweeps.means` has the statistics.
"""
