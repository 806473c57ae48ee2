"""The class `Filter`, which describes a filter in a scenario, and the registration of users' filters.

A mote never loads this file: it receives a filter's plain values (`on_node.PlainFilter`). The file still keeps to
MicroPython's subset of Python, so that the tests of nodes can run on MicroPython.
"""

from workbench.attributes.keys import key_of
from workbench.attributes.model import FIRST_FILTER_KEY, LAST_FILTER_KEY
from workbench.attributes.text import parse, to_text
from workbench.attributes.wire import encode_attributes
from workbench.errors import ParameterError
from workbench.protocols.diffusion.filters.built_in import BUILT_IN, registered
from workbench.protocols.diffusion.filters.on_node import complete_settings, on_node
from workbench.protocols.protocol import Shown

# Built-in filter -> fields of its settings in C (`c/built_in.h`). blob_fusion, which calls a user's function, is not
# available in C.
IN_C = {
    "suppress_unchanged": ("key", "tolerance", "heartbeat_us"),
    "running_mean": ("key", "window"),
    "running_minimum": ("key", "window"),
    "running_maximum": ("key", "window"),
    "neighborhood_average": ("key", "period_us", "flush"),
    "rate_limit": ("interval_us",),
    "threshold_alarm": ("key", "high", "low"),
}


class Filter:
    """A filter and the nodes that carry it: ``Filter("running_mean", key=200, match="TEMP EQ_ANY", window=5)``.

    name      a built-in filter (`BUILT_IN`) or one registered with `register_filter`
    key       200-250: a node applies its filters in ascending order of key
    match     text of the attributes that select messages; "" selects all. Samples of an aggregated message are
              processed one at a time. An interest is selected if it contains the keys of ``match``
    at        the nodes that carry the filter: an address, a list of addresses, or "all" (None is the same)
    messages  "data" or "interest"
    settings  the filter's own parameters
    """

    kind = "filter"
    __signature__ = Shown("signature_with", lambda cls: (cls.__init__, _parameters_by_name().values()))

    def __init__(self, name, key=FIRST_FILTER_KEY, match="", at=None, messages="data", **settings):
        self.name = name
        self.key = key
        self.match = to_text(parse(match))
        self.at = _parse_nodes(name, at)
        self.messages = messages
        self.settings = settings
        if not (isinstance(key, int) and FIRST_FILTER_KEY <= key <= LAST_FILTER_KEY):
            raise ParameterError(
                "filter %s has key %r; it must be from %d to %d" % (name, key, FIRST_FILTER_KEY, LAST_FILTER_KEY)
            )
        if messages not in ("data", "interest"):
            raise ParameterError("filter %s has messages=%r; it must be 'data' or 'interest'" % (name, messages))
        try:
            self.instance()  # Report an unknown name or a wrong setting now, not during a run.
        except ParameterError:
            if not register_plugins():
                raise
            self.instance()

    def instance(self):
        """Return a new FilterOnNode for one node, with its own state."""
        return on_node(self.name, self.key, self.match, self.messages, self.settings)

    def to_dict(self):
        """Return {name: plain value}, the filter's description in a scenario's JSON file."""
        at = None if self.at is None else list(self.at)
        return {
            "name": self.name,
            "key": self.key,
            "match": self.match,
            "at": at,
            "messages": self.messages,
            "settings": self.settings,
        }

    def on_a_mote(self):
        """Return {name: plain value}, the filter's description that a mote receives.

        The values of `to_dict` are extended by ``wire``, the encoded attributes of ``match`` (hexadecimal), and by the
        result of `in_c`. Both are for firmware in C, which cannot parse the text of ``match``.
        """
        match = parse(self.match)
        wire = bytes((len(match),)) + encode_attributes(match)
        values = self.to_dict()
        values.update({"at": None, "wire": wire.hex(), "in_c": self.in_c()})
        return values

    def in_c(self):
        """Return {field: value}, the fields of the C struct that represents this filter on a node written in C.

        The result is {} for a built-in filter that is not implemented in C. The fields of a user's filter are its
        settings, unchanged.
        """
        if self.name not in IN_C:
            return {} if self.name in BUILT_IN else self.settings
        filter_class = BUILT_IN[self.name]
        decider = filter_class(complete_settings(self.name, filter_class.parameters, self.settings))
        return {field: getattr(decider, field) for field in IN_C[self.name]}

    @staticmethod
    def from_dict(values):
        """Return the Filter that ``values``, a dictionary in the format of `to_dict`, describes.

        Raises ParameterError for an unregistered name or invalid values.
        """
        if not isinstance(values, dict) or "name" not in values:
            raise ParameterError('protocol: filters contains %r; each filter must be a dict with a "name"' % (values,))
        options = {name: value for name, value in values.items() if name not in ("name", "settings")}
        try:
            return Filter(values["name"], **options, **values.get("settings", {}))
        except TypeError as error:
            raise ParameterError("filter %s: %s" % (values["name"], error)) from None

    # The interface of a component of a protocol's settings, for scenarios and sweeps (`Protocol.parts`)

    def keys(self):
        """Return the numbers of the attribute keys in ``match``, and of the key in the setting ``of``, if it is set."""
        key_numbers = [attribute.key for attribute in parse(self.match)]
        if isinstance(self.settings.get("of"), str):
            key_numbers.append(key_of(self.settings["of"]).number)
        return key_numbers

    def measured_keys(self):
        """Return the keys whose values the filter processes: the key in its setting ``of``, or those in ``match``."""
        settings = self.settings
        if self.name in BUILT_IN:
            settings = complete_settings(self.name, BUILT_IN[self.name].parameters, settings)
        of = settings.get("of")
        return [key_of(of).number] if isinstance(of, str) else [attribute.key for attribute in parse(self.match)]

    def user_code(self):
        """Return {registered name: function or class} of the user's code in the filter and its settings."""
        # A setting of a built-in filter may name a registered function (blob_fusion).
        names = [self.name] + [value for value in self.settings.values() if isinstance(value, str)]
        return {name: registered[name] for name in names if name in registered}

    @staticmethod
    def register(name, make):
        """Register ``make``, a user's function or class that another process has sent to this process."""
        register_filter(name, make)

    def __eq__(self, other):
        return type(other) is Filter and self.to_dict() == other.to_dict()

    def __hash__(self):
        return hash((self.name, self.key, self.match))

    def __repr__(self):
        options = [("at", list(self.at))] if self.at is not None else []
        options += [("messages", self.messages)] if self.messages != "data" else []
        options += [(name, self.settings[name]) for name in sorted(self.settings)]
        text = "".join([", %s=%r" % pair for pair in options])
        return "Filter(%r, key=%d, match=%r%s)" % (self.name, self.key, self.match, text)


_TEXT = getattr(Filter, "__doc__", "")  # MicroPython has no docstrings.
Filter.__doc__ = Shown("sections", lambda _: (_TEXT, _parameters_by_name()))


def _parameters_by_name():
    return {name: cls.parameters for name, cls in BUILT_IN.items()}


def _parse_nodes(name, at):
    """Return the addresses in ``at`` as a tuple; None for all nodes.

    Raises ParameterError, with the filter's ``name``, if ``at`` is neither an address, a list of addresses, "all" nor
    None.
    """
    if at is None or (isinstance(at, str) and at == "all"):
        return None
    nodes = [_to_address(node) for node in _as_list(at)]
    if None in nodes:
        raise ParameterError(
            'filter %s: `at` is %r; it must be the address of a node, several addresses, or "all"' % (name, at)
        )
    return tuple(nodes)


def _as_list(at):
    if not isinstance(at, (str, bytes, dict)):
        try:
            return list(at)  # Not tested with hasattr: MicroPython's tuples have no __iter__.
        except TypeError:
            pass
    return [at]


def _to_address(value):
    """Convert a node's address, an integer of Python or numpy, to an int; return None for any other value."""
    if isinstance(value, int):
        return None if isinstance(value, bool) else value
    return value.__index__() if hasattr(value, "__index__") else None


def register_filter(name, make):
    """Register a user's filter: a function ``attributes -> attributes or None``, or a class with ``decide``.

    A class is called with the filter's settings, once per node; its instance may send messages later, see
    ``emits_at_us`` in built_in.py. If the name is already registered, the new filter replaces the old one. Return
    ``make``, the function or class. Raises ParameterError for the name of a built-in filter, or if ``make`` is not
    callable.
    """
    if name in BUILT_IN:
        raise ParameterError("%s is a built-in filter; register your filter under another name" % name)
    if not callable(make):
        raise ParameterError("filter %s is %r; it must be a function or a class with decide()" % (name, make))
    registered[name] = make
    return make


def register_plugins():
    """Register those filters of plug-ins that are not registered yet; return whether there were any."""
    try:
        from workbench import plugins
    except ImportError:  # a mote has no plug-ins
        return False
    plugin_filters = plugins.load_all("filters", list(BUILT_IN) + list(registered))
    registered.update(plugin_filters)
    return bool(plugin_filters)


def registered_filters():
    """Return a copy of the table of registered filters: {name: function or class}."""
    return dict(registered)
