"""The stand-in of tests/families.py: MicroPython runs every parameter, and the runner bounds the examples."""


def examples(count):
    """Return the number of examples that a test names."""
    return count


def family_except(values, *always):
    """Return the values of a parametrized test."""
    return list(values)
