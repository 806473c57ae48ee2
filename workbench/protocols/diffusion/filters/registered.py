"""What users have registered by name: filters, and functions that built-in filters call.

This file runs on a mote too (MicroPython's subset of Python), where nothing is registered.
"""

# Name -> function or class.
registered = {}
