"""Charts of sweeps. The means and intervals come from `workbench.sweeps.means`.

comparison.py     protocols compared under equal conditions
faults.py         the heat map of a fault matrix
page.py           a page in which sliders choose one of a sweep's runs
savings.py        the cost that protocols save relative to a baseline
search.py         the trials of a search
sensitivity.py    how much each parameter influences a metric
summary.py        a metric against a parameter
"""
