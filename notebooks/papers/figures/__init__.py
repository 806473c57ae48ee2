"""The figures that one paper has for itself: a module for each group, imported as ``figures.NAME``."""
