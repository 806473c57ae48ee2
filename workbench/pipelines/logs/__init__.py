"""Logs: read by the million, made into links between nodes, and into readings that a workload replays."""
