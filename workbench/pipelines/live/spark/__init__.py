"""Captures on Spark: a data source for them, and windows by Structured Streaming."""
