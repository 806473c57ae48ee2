"""Charts of sweeps, whose statistics come from `workbench.sweeps.means`.

comparison.py     protocols compared under equal conditions
summary.py        a metric against a parameter
savings.py        the cost that protocols save relative to a baseline
sensitivity.py    how much each parameter influences a metric
"""
