"""The figures that one lesson has for itself: a module for each group, imported as ``lessons.figures.NAME``."""
