"""Finite fields (`fields.py`), random linear network coding (`rlnc.py`), and both for whole payloads (`bulk/`)."""
