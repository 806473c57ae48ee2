"""Data on its way: logs to links and readings, traces of many runs to answers, live readings to windows.

What fits in this machine's memory is worked on here, without Java; what does not, or lies elsewhere, on Spark. Both by
the same call, and with the same result.
"""
