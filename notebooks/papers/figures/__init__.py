"""Figures that only the notebooks of papers use: a module for each group, imported as ``figures.NAME``."""
