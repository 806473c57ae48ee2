"""The protocols, one folder each, and the modules that all of them share; begin with `contract.py`."""
