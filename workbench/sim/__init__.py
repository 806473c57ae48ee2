"""Simulation: scenario, radio, kernel, trace, metrics."""
