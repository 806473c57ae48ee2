"""Waiting, in tests, for what other threads and processes do."""

import time

PATIENCE_S = 120.0  # with a machine that is busy with other things: only what hangs takes as long


def wait_until(is_so, within_s=PATIENCE_S, every_s=0.01):
    """Return when ``is_so()``, which is called repeatedly; fail if that takes too long."""
    end_s = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < end_s, f"what was waited for did not happen within {within_s:g} s"
        time.sleep(every_s)
