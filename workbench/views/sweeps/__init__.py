"""Views of sweeps: a metric against a parameter (`figure.py`), savings of one beside another (`savings.py`)."""
