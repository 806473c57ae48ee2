"""Figures that only the lessons use: a module for each group, imported as ``lessons.figures.NAME``."""
