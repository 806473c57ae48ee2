"""Finite fields (`fields.py`), random linear network coding (`rlnc.py`), and compiled versions of both (`bulk/`)."""
