"""A protocol and its settings: what a host knows of it. Its nodes (`contract.py`) know nothing of this.

A mote never loads this file: it is given a node's class and the values of all settings.

This file keeps to MicroPython's subset of Python, so that tests of nodes run there.
"""

from workbench.errors import ParameterError
from workbench.protocols.contract import Node
from workbench.protocols.parameter import Parameter, check_parameter
from workbench.suggestion import meant

__all__ = ["Parameter", "Protocol", "check_parameter", "plain"]


class Shown:
    """What ``inspect.signature`` and ``help`` show of a class. It is made when they ask, and a mote never does.

    ``name``: the function of `workbench.keywords` that makes it. ``arguments(cls)``: what that is called with.
    """

    def __init__(self, name, arguments):
        self.name = name
        self.arguments = arguments

    def __get__(self, instance, cls):
        from workbench import keywords

        return getattr(keywords, self.name)(*self.arguments(cls))


class Protocol:
    """A protocol and its settings: an immutable value from which nodes are made.

    A subclass names its node class, its table of parameters and the largest address its frames can carry::

        class Flooding(Protocol):
            node = FloodingNode
            parameters = (Parameter("ttl", 50, 1, 255, "hops", "why 50"),)

    Every parameter is a keyword argument, checked against the table, and readable as an attribute. What else a host
    asks, the subclass says in the names below; modules are named and not imported, so that they load when asked for.
    """

    node = Node
    parameters = ()
    # Names of parameters that the first release did not have: JSON and hash of a scenario leave them out at their
    # defaults, so that old scenarios keep their hashes.
    added = ()
    largest_address = 0xFFFFFFFF
    # Whether a publication is meant to reach every node: then its coverage has a meaning.
    disseminates = False
    # The module of the nodes' fast twin, by name; "" without one. A subclass does not inherit it, as its nodes may do
    # something else: one whose nodes do the same says so (``fast = Flooding.fast``).
    fast = ""
    # Why there is no twin, if there is more to say than that there is none.
    why_not_fast = ""
    # Why its nodes cannot run on a mote; "" if they can.
    why_not_on_motes = ""
    # How nodes tell that they changed the samples of a message on purpose, as filters do: an event's name in the trace,
    # and its detail. Its other fields name the message. () if a node never does: whatever arrives otherwise is wrong.
    changes = ()
    # The module of the metrics that only this protocol has, by name; "" without any. It has
    # ``measure(scenario, rows) -> {name: number}``, and LOOKS_AT: the events, by their names in the trace, whose rows
    # that function asks for. SHOWN, if it has that, says how they are shown (`sim/metrics/shown.py`).
    metrics = ""
    # The module that follows the readings that did not arrive as only this protocol can, and explains why; "" without
    # one. `analysis/explain.py` lists what it may have.
    explain = ""
    # The module that takes this protocol's frames apart, by name; "" without one. `dissection.py` says what it has.
    dissector = ""
    # The module of what may stand in the setting whose unit is "Filter", by name; "" without such a setting. It has
    # ``kinds()``, ``make(values)`` and ``watch(node, tell)``; diffusion/filters/catalogue.py says what these are.
    catalogue = ""
    # Settings that somebody has used and written of, {name: {setting: value}}: a form offers them. What one leaves out
    # is at its default; nodes and filters stay as they are. A subclass with other parameters has its own.
    presets = {}

    __signature__ = Shown("signature_of", lambda cls: (cls.parameters,))

    def __init_subclass__(cls, **options):
        # MicroPython does not call this.
        super().__init_subclass__(**options)
        said = cls.__dict__.get("__doc__")
        cls.__doc__ = Shown("documentation", lambda cls: (said, cls.parameters))
        if isinstance(cls.__dict__.get("frame"), str):
            import warnings

            warnings.warn("%s.frame is now called dissector" % cls.__name__, DeprecationWarning, stacklevel=2)
            cls.dissector = cls.frame

    def __new__(cls, *unnamed, **settings):
        # Here and not in __init__, which subclasses have of their own.
        if unnamed:
            raise ParameterError(
                "%s: the value %r has no name; its parameters are given by name: %s"
                % (cls.public_class().__name__, unnamed[0], ", ".join([one.name for one in cls.parameters]) or "none")
            )
        return object.__new__(cls)

    def __init__(self, **settings):
        table = {}
        for parameter in self.parameters:
            if hasattr(Protocol, parameter.name):
                raise ParameterError(
                    "%s has a parameter %r; every protocol has something of that name, so the parameter needs another"
                    % (type(self).__name__, parameter.name)
                )
            value = settings.pop(parameter.name, parameter.default)
            table[parameter.name] = check_parameter(self.public_class().__name__, parameter, value)
        if settings:
            unknown = sorted(settings)[0]
            known = [parameter.name for parameter in self.parameters]
            name = self.public_class().__name__
            raise ParameterError(
                "%s has no parameter %r%s; it has: %s"
                % (name, unknown, meant(unknown, known), ", ".join(known) or "none")
            )
        self.settings = table

    def __getattr__(self, name):
        # Only called when ordinary look-up fails: parameters read as attributes (protocol.ttl).
        if name == "settings" or name.startswith("_"):
            raise AttributeError(name)
        if name in self.settings:
            return self.settings[name]
        raise AttributeError("%s has no attribute %r%s" % (type(self).__name__, name, meant(name, list(self.settings))))

    def __dir__(self):
        return sorted(set(object.__dir__(self)) | set(self.settings))

    @classmethod
    def public_class(cls):
        """The class whose name scenario files, errors and titles say, and which makes this protocol of its settings."""
        return cls

    def matching_samples(self, subscription, publication):
        """The samples of a publication that a subscription asks for, both as attributes: what metrics go by."""
        from workbench.attributes.model import matching_samples

        return matching_samples(subscription, publication)

    @classmethod
    def settings_from_plain(cls, values):
        """The settings of plain values, as `plain` writes them into a file; ParameterError for wrong ones."""
        return values

    def parts(self):
        """What the settings hold besides plain values (filters, say), as a list. A part has

        kind, name                what a sentence calls it: "filter", "running_mean"
        to_dict()                 its plain values; `settings_from_plain` is the way back
        at                        the nodes that it is at; None for all
        keys()                    the numbers of the attribute keys that it speaks of
        user_code()               {name: function or class} that the user has registered and that it calls
        register(name, code)      registers such code in another process
        """
        found = []
        for value in self.settings.values():
            several = value if isinstance(value, (tuple, list)) else (value,)
            found += [one for one in several if hasattr(one, "user_code")]
        return found

    def named_nodes(self):
        """The nodes that settings name, {setting: nodes}: a scenario refuses those that its network does not have."""
        return {}

    def kind_of_node(self):
        """The class of this protocol's nodes with these settings."""
        return self.node

    def make_node(self, address, random):
        """A fresh node of this protocol."""
        return self.kind_of_node()(address, self, random)

    @classmethod
    def mote_modules(cls):
        """The modules that a mote needs for this protocol's nodes: they, and what they import, go there."""
        return () if cls.why_not_on_motes else (cls.node.__module__,)

    def receptions_on_an_arc(self, readings, subscriptions, duration_s):
        """What a run costs the reference engine on each arc of the topology, in receptions of a flood.

        By this the fast engine is loaded where that pays. ``readings`` and ``subscriptions``: how many in the network.
        """
        return readings

    def sizes_in_c(self):
        """What the program of a mote in C is compiled for, {name in C: number}; None: these nodes are not written in C.

        Their C is in the folder ``c`` beside the node's module; what the program of a mote asks of it is in ``c/mote``.
        """
        return None

    def room_in_c(self, nodes):
        """What a mote in C needs room for besides, in a network of so many nodes, for the parts of these settings.

        {name in C: number}; empty without parts.
        """
        return {}

    def on_a_mote(self, address=None):
        """What the settings of the node at an address are on its mote: {name: plain value}, which goes there as JSON.

        Without an address: the most that a node is told.
        """
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
