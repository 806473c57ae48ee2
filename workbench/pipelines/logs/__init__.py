"""Logs of testbeds: reading them, cleaning their readings, deriving links, and replaying readings as a workload."""
