"""Finite fields (`fields.py`), random linear network coding (`rlnc.py`), and both in compiled loops (`bulk/`)."""
