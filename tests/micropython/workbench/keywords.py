"""A stand-in for what only hosts have: answers to wrong names."""


def answer_for(module):
    """Leave a module as it is."""


def imported_names(package):
    """Return no names: MicroPython has no star imports to serve."""
    return []


def checked(made):
    """Return a function or class as it is."""
    return made


def hand_out(package, homes):
    """Leave a package as it is."""
