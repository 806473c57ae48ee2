"""The protocols, a folder each. Beside them: what all of them need, `contract.py` first."""
