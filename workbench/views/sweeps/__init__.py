"""Charts of sweeps: a metric against a parameter (`summary.py`), savings of one beside another
(`savings.py`), what a metric depends on (`sensitivity.py`). `workbench.sweeps.means` works out the numbers."""
