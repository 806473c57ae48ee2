"""A protocol and its settings, as the host uses them. Nodes (`contract.py`) do not depend on this module.

A mote never loads this file: it receives a node's class and the values of all settings.

This file keeps to MicroPython's subset of Python, so that tests of nodes run there.
"""

from workbench.errors import ParameterError
from workbench.protocols.contract import Node
from workbench.protocols.parameter import Parameter, check_parameter
from workbench.suggestion import meant

__all__ = ["Parameter", "Protocol", "check_parameter", "plain"]


class Shown:
    """A class attribute that is computed at each access, so that `help` and signatures show a current value.

    ``name``: name of the function in `workbench.keywords` that computes the value. ``arguments``: a function that takes
    the class and returns the arguments with which the function ``name`` is called. Motes never access the attribute.
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

    Every parameter is a keyword argument, checked against the table, and readable as an attribute. Subclasses
    set further class attributes, which comments in this file describe. Modules are given by name, so that they load
    only when needed.
    """

    node = Node
    parameters = ()
    # Names of parameters that the first release did not have. A scenario's JSON and hash omit those that have their
    # default values, so that old scenarios keep their hashes.
    added = ()
    largest_address = 0xFFFFFFFF
    # The number of fragments in which a frame beyond the radio's ``max_frame_B`` may be sent. 1: it is refused.
    max_fragments = 1
    # Whether a publication is meant to reach every node, so that the metric "coverage" applies.
    disseminates = False
    # The module of the nodes' fast twin (the fast engine's version of the node), by name, or "". Subclasses do not
    # inherit it, as their nodes may behave differently. A subclass with the same nodes sets ``fast = Flooding.fast``.
    fast = ""
    # The reason why this protocol has no twin, if there is a particular one.
    why_not_fast = ""
    # The reason why its nodes cannot run on a mote, or "".
    why_not_on_motes = ""
    # The event (name in the trace, detail) by which nodes log that they changed a message's samples on purpose, as
    # filters do. Its other fields identify the message. (): nodes never do so, and any changed sample is an error.
    changes = ()
    # The event (name in the trace, detail) by which nodes log that they dropped a message's sample on purpose, as
    # filters do. In both events, value is the number of the filter. (): nodes never do so.
    drops = ()
    # The event by which a source logs that it does not send a sample to a sink, because the sink's INTERVAL requests
    # fewer samples: peer is the sink, value the sample's number. The sink does not expect it. "": never.
    withholds = ""
    # Whether `matching_samples` returns no sample that the common rule of attributes does not return, which is faster.
    narrows_matching = False
    # Whether a publication may have constraints, which the IS attributes of a subscription have to meet.
    allows_constrained_data = False
    # The module of the metrics that only this protocol has, by name, or "". It has
    # ``measure(scenario, rows) -> {name: number}`` and LOOKS_AT, the events (names in the trace) whose rows the
    # function needs. It may have SHOWN, which describes how to display them (`sim/metrics/shown.py`).
    metrics = ""
    # The module that explains missing readings by this protocol's rules, by name, or "". `analysis/explain.py` lists
    # its optional functions.
    explain = ""
    # The module that dissects this protocol's frames, by name, or "". `dissection.py` describes its interface.
    dissector = ""
    # The module of the objects that the setting with the unit "Filter" may contain, by name, or "". It has
    # ``kinds()``, ``make(values)`` and ``watch(node, observe)``; see diffusion/filters/catalogue.py.
    catalogue = ""
    # The nature of messages that do not carry readings, {name in the trace: "set_up" or "upkeep"}: "set_up" is sent
    # once for a node, a subscription or a change; "upkeep" is repeated while nothing changes. All others are useful.
    natures = {}
    # The reasons for which nodes drop useful messages that bring nothing new; no other messages are dropped for them.
    # (): unknown, so a run lacks the metric "usefulness_ratio".
    known_already = ()
    # Published settings, {name: {setting: value}}, which forms offer. Missing settings have their defaults; nodes and
    # filters are unchanged. A subclass with other parameters has presets of its own.
    presets = {}

    __signature__ = Shown("signature_of", lambda cls: (cls.parameters,))

    def __init_subclass__(cls, **options):
        # MicroPython does not call this.
        super().__init_subclass__(**options)
        docstring = cls.__dict__.get("__doc__")
        cls.__doc__ = Shown("documentation", lambda cls: (docstring, cls.parameters))
        if isinstance(cls.__dict__.get("frame"), str):
            import warnings

            warnings.warn(
                "%s.frame is now %s.dissector" % (cls.__name__, cls.__name__), DeprecationWarning, stacklevel=2
            )
            cls.dissector = cls.frame

    def __new__(cls, *unnamed, **settings):
        # The check is not in __init__, which subclasses override.
        if unnamed:
            raise ParameterError(
                "%s: the value %r has no name; pass parameters by name: %s"
                % (
                    cls.public_class().__name__,
                    unnamed[0],
                    ", ".join([parameter.name for parameter in cls.parameters]) or "none",
                )
            )
        return object.__new__(cls)

    def __init__(self, **settings):
        checked_settings = {}
        for parameter in self.parameters:
            if hasattr(Protocol, parameter.name):
                raise ParameterError(
                    "%s has a parameter %r; every protocol has an attribute of that name, so rename the parameter"
                    % (type(self).__name__, parameter.name)
                )
            value = settings.pop(parameter.name, parameter.default)
            checked_settings[parameter.name] = check_parameter(self.public_class().__name__, parameter, value)
        if settings:
            unknown_name = sorted(settings)[0]
            parameter_names = [parameter.name for parameter in self.parameters]
            name = self.public_class().__name__
            raise ParameterError(
                "%s has no parameter %r%s; it has: %s"
                % (name, unknown_name, meant(unknown_name, parameter_names), ", ".join(parameter_names) or "none")
            )
        self.settings = checked_settings

    def __getattr__(self, name):
        # Python calls this only if ordinary look-up fails: for parameters read as attributes (protocol.ttl).
        if name == "settings" or name.startswith("_"):
            raise AttributeError(name)
        if name in self.settings:
            return self.settings[name]
        raise AttributeError("%s has no attribute %r%s" % (type(self).__name__, name, meant(name, list(self.settings))))

    def __dir__(self):
        return sorted(set(object.__dir__(self)) | set(self.settings))

    @classmethod
    def public_class(cls):
        """Return the class whose name stands for this protocol in scenario files, errors and titles.

        A call of the returned class with the settings of this protocol must create an equal protocol.
        """
        return cls

    def matching_samples(self, subscription, publication):
        """Return the samples of a publication that match a subscription, each as its attributes; used by metrics.

        By default the result is [publication] if the publication matches, else [].
        """
        from workbench.attributes.model import matching_samples

        return matching_samples(subscription, publication)

    def reinforce(self, node, attributes, now):
        """Reinforce the paths on which data that matches ``attributes`` comes to ``node``; by default, do nothing.

        ``attributes``: constraints, which match only data that a subscription of the node matches too. Override this
        method in a protocol that can prefer one path to others.
        """

    @classmethod
    def settings_from_plain(cls, values):
        """Return {parameter: value} from ``values``, a dict of the plain values that `plain` returns.

        By default ``values`` is returned unchanged. Raises ParameterError for invalid values.
        """
        return values

    def measured_keys(self):
        """Return the numbers of the attribute keys that filters in the settings process, in the filters' order."""
        return []

    def parts(self):
        """Return the objects in the settings that are not plain values, such as filters. Each object has:

        kind, name                its names in error messages, such as "filter" and "running_mean"
        to_dict()                 its plain values; `settings_from_plain` is the inverse
        at                        the nodes to which it applies; None: all nodes
        keys()                    the numbers of the attribute keys that it uses
        user_code()               {name: function or class}: the user's registered code that it calls
        register(name, code)      register code of `user_code` in another process
        """
        parts = []
        for value in self.settings.values():
            values = value if isinstance(value, (tuple, list)) else (value,)
            parts += [part for part in values if hasattr(part, "user_code")]
        return parts

    def named_nodes(self):
        """Return {setting: tuple of the node addresses that the setting's value contains}; {} by default.

        A scenario raises an error if its network lacks one of these nodes.
        """
        return {}

    def kind_of_node(self):
        """Return the class of this protocol's nodes with these settings."""
        return self.node

    def make_node(self, address, random):
        """Return a new node of this protocol with this address; ``random``: the node's own random stream."""
        return self.kind_of_node()(address, self, random)

    @classmethod
    def mote_modules(cls):
        """Return the names of the modules that a mote needs for this protocol's nodes; () if motes cannot run them.

        Modules that these modules import need not be listed; the mote gets the imported modules as well.
        """
        return () if cls.why_not_on_motes else (cls.node.__module__,)

    def receptions_on_an_arc(self, readings, subscriptions, duration_s):
        """Estimate how many frames are received on each arc (directed link) of the topology during a run.

        The result decides whether loading the fast engine saves time. ``readings`` and ``subscriptions``: how many the
        whole network has; ``duration_s``: length of the run. By default each reading is flooded once: one reception on
        each arc.
        """
        return readings

    def sizes_in_c(self):
        """Return {name in C: number}, the constants for compiling a mote's C program, or None without nodes in C.

        The C sources are in the folder ``c`` beside the node's module; their interface to the mote is in ``c/mote``.
        """
        return None

    def room_in_c(self, nodes):
        """Return {name in C: number}, the sizes of further tables of a node in C, such as those of its filters.

        `sizes_in_c` has the sizes that do not depend on the network. ``nodes``: number of nodes of the network. By
        default the result is {}.
        """
        return {}

    def on_a_mote(self, address=None):
        """Return {name: plain value}, the settings that go as JSON to the mote of the node at ``address``.

        If ``address`` is None, the settings include everything that the mote of any node may receive.
        """
        return {name: plain(value) for name, value in self.settings.items()}

    def __eq__(self, other):
        return type(self) is type(other) and self.settings == other.settings

    def __hash__(self):
        return hash((type(self).__name__, tuple(sorted([(k, str(v)) for k, v in self.settings.items()]))))

    def __repr__(self):
        changed_settings = [
            "%s=%r" % (parameter.name, self.settings[parameter.name])
            for parameter in self.parameters
            if self.settings[parameter.name] != parameter.default
        ]
        return "%s(%s)" % (self.public_class().__name__, ", ".join(changed_settings))


def plain(value):
    """Return a setting as a value that JSON can represent; an object is converted by its ``to_dict``.

    Raises ParameterError if the setting contains other values than numbers, texts, True, False, None, lists and dicts.
    """
    if hasattr(value, "to_dict"):
        value = value.to_dict()
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if value is None or isinstance(value, (str, int, float)):
        return value
    raise ParameterError(
        "a protocol's setting is %.60s; it must be a number, a text, True, False or a list of these" % repr(value)
    )
