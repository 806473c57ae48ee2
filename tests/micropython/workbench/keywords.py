"""A stand-in for a module that only hosts have: suggestions for misspelled names."""


def answer_for(module):
    """Leave a module as it is."""


def imported_names(package):
    """Return an empty list: under MicroPython no test uses star imports."""
    return []


def checked(made):
    """Return a function or class as it is."""
    return made


def hand_out(package, homes):
    """Leave a package as it is."""
