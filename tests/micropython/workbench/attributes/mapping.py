"""A stand-in for what only hosts have: attributes from mappings."""


def describe(values=None, **more):
    """Refuse: no test of what runs on a mote describes attributes by a mapping."""
    raise NotImplementedError


def make_callable(name):
    """Leave the package as it is: MicroPython's modules cannot be called."""
