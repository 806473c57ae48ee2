"""A protocol and its settings: what a host knows of it. Its nodes (`contract.py`) know nothing of this.

A mote never loads this file: it is given a node's class and the values of all settings.

This file keeps to MicroPython's subset of Python, so that tests of nodes run there.
"""

from collections import namedtuple

from workbench.errors import ParameterError
from workbench.protocols.contract import Node

_LARGEST = 1e30
Parameter = namedtuple("Parameter", ("name", "default", "minimum", "maximum", "unit", "reason"))


class Protocol:
    """A protocol and its settings: an immutable value from which nodes are made.

    A subclass names its node class, its table of parameters and the largest address its frames can carry::

        class Flooding(Protocol):
            node = FloodingNode
            parameters = (Parameter("ttl", 50, 1, 255, "hops", "why 50"),)

    Every parameter is a keyword argument, checked against the table, and readable as an attribute.
    """

    node = Node
    parameters = ()
    largest_address = 0xFFFFFFFF
    # Whether a publication is meant to reach every node: then its coverage has a meaning.
    disseminates = False

    def __init__(self, **settings):
        table = {}
        for parameter in self.parameters:
            value = settings.pop(parameter.name, parameter.default)
            table[parameter.name] = check_parameter(self.public_class().__name__, parameter, value)
        if settings:
            unknown = sorted(settings)[0]
            known = ", ".join([parameter.name for parameter in self.parameters])
            name = self.public_class().__name__
            raise ParameterError("%s has no parameter %r; it has: %s" % (name, unknown, known or "none"))
        self.settings = table

    def __getattr__(self, name):
        # Only called when ordinary look-up fails: parameters read as attributes (protocol.ttl).
        if name != "settings" and name in self.settings:
            return self.settings[name]
        raise AttributeError(name)

    @classmethod
    def public_class(cls):
        """The class whose name scenario files, errors and titles say, and which makes this protocol of its settings."""
        return cls

    def matching_samples(self, subscription, publication):
        """The samples of a publication that a subscription asks for, both as attributes: what metrics go by."""
        from workbench.attributes.model import matching_samples

        return matching_samples(subscription, publication)

    def kind_of_node(self):
        """The class of this protocol's nodes with these settings."""
        return self.node

    def make_node(self, address, random):
        """A fresh node of this protocol."""
        return self.kind_of_node()(address, self, random)

    @classmethod
    def mote_modules(cls):
        """The modules that a mote needs for this protocol's nodes: they, and what they import, go there."""
        return (cls.node.__module__,)

    def on_a_mote(self):
        """What the settings of a node on a mote are: {name: plain value}, which goes there as JSON."""
        return {name: plain(value) for name, value in self.settings.items()}

    def __eq__(self, other):
        return type(self) is type(other) and self.settings == other.settings

    def __hash__(self):
        return hash((type(self).__name__, tuple(sorted([(k, str(v)) for k, v in self.settings.items()]))))

    def __repr__(self):
        changed = [
            "%s=%r" % (parameter.name, self.settings[parameter.name])
            for parameter in self.parameters
            if self.settings[parameter.name] != parameter.default
        ]
        return "%s(%s)" % (self.public_class().__name__, ", ".join(changed))


def plain(value):
    """A setting as JSON has it: numbers, texts, True, False, None, lists of them, and what has a ``to_dict``."""
    if hasattr(value, "to_dict"):
        value = value.to_dict()
    if isinstance(value, (tuple, list)):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if value is None or isinstance(value, (str, int, float)):
        return value
    raise ParameterError(
        "a setting is %.60s; a scenario holds numbers, texts, True, False and lists of them" % repr(value)
    )


def check_parameter(owner, parameter, value):
    """``value`` as the default's type; ParameterError unless it is of that type and within the parameter's range.

    A range of None leaves that side open; a tuple as ``minimum`` lists the only values allowed. A list will do for a
    tuple, and the integers and floats of other libraries for Python's.
    """
    name, default, minimum, maximum, unit, _ = parameter
    value = _plain(value, default)
    if isinstance(minimum, tuple):
        if value not in minimum:
            raise ParameterError(
                "%s: %s is %r; it must be one of %s"
                % (owner, name, value, ", ".join([repr(choice) for choice in minimum]))
            )
        return value
    if isinstance(default, tuple) and not isinstance(value, tuple):
        raise ParameterError("%s: %s is %r; write a tuple or a list, as in %s=[...]" % (owner, name, value, name))
    number = isinstance(default, (int, float)) and not isinstance(default, bool)
    right_type = (
        isinstance(value, (int, float) if isinstance(default, float) else int) and not isinstance(value, bool)
        if number
        else isinstance(value, type(default))
    )
    # Written so that not-a-number fails, and infinity even where a side is open: neither can be written as JSON.
    too_small = number and right_type and not value >= (-_LARGEST if minimum is None else minimum)
    too_large = number and right_type and not value <= (_LARGEST if maximum is None else maximum)
    if not right_type or too_small or too_large:
        kind = "a number" if isinstance(default, float) else "a whole number" if number else type(default).__name__
        limits = "" if minimum is None else " from %s to %s" % (minimum, "any" if maximum is None else maximum)
        raise ParameterError("%s: %s is %r; it must be %s%s %s" % (owner, name, value, kind, limits, unit))
    return value


def _plain(value, default):
    """A list as a tuple, and a number of numpy's as Python's, where the default asks for one; all else as it is."""
    if isinstance(default, tuple):
        return tuple(value) if isinstance(value, list) else value
    if isinstance(default, bool) or not isinstance(default, (int, float)) or type(value) in (bool, int, float):
        return value
    try:
        if hasattr(value, "__index__"):
            return value.__index__()
        if isinstance(default, float) and hasattr(value, "__float__"):
            return float(value)
    except TypeError:  # An array has these names too.
        pass
    return value
