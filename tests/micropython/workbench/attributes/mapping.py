"""A stand-in for a module that only hosts have: attributes from mappings."""


def describe(values=None, **more):
    """Raise NotImplementedError: tests of a mote's files never describe attributes by a mapping."""
    raise NotImplementedError


def make_callable(name):
    """Leave the package as it is: MicroPython's modules cannot be called."""
