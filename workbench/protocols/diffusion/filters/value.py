"""A filter as a value, which a scenario holds and a file spells out, and the filters that users register.

A mote never loads this file: it is told a filter's plain values (`on_node.PlainFilter`).

This file keeps to MicroPython's subset of Python, so that tests of nodes run there.
"""

from workbench.attributes.keys import key_of
from workbench.attributes.model import FIRST_FILTER_KEY, LAST_FILTER_KEY
from workbench.attributes.text import parse, to_text
from workbench.attributes.wire import encode_attributes
from workbench.errors import ParameterError
from workbench.protocols.diffusion.filters.built_in import BUILT_IN, registered
from workbench.protocols.diffusion.filters.on_node import complete_settings, on_node
from workbench.protocols.protocol import Shown

# What built-in filters in C (`c/built_in.h`) are set to. blob_fusion, which calls a function of the user's, has none.
IN_C = {
    "suppress_unchanged": ("key", "tolerance", "heartbeat_us"),
    "running_mean": ("key", "window"),
    "running_minimum": ("key", "window"),
    "running_maximum": ("key", "window"),
    "neighborhood_average": ("key", "period_us"),
    "rate_limit": ("interval_us",),
    "threshold_alarm": ("key", "high", "low"),
}


class Filter:
    """Which filter sits on which nodes: a value. ``Filter("running_mean", key=200, match="TEMP EQ_ANY", window=5)``.

    name      a built-in filter (`BUILT_IN`) or one registered with `register_filter`
    key       200-250: the order in which filters see a message
    match     text of the attributes that choose the messages; "" takes every message. Of an aggregated message a
              filter sees one sample at a time; interests are chosen by the keys they are about
    at        the nodes that carry it: a number, several, or "all" (None is the same)
    messages  "data" or "interest"
    settings  the filter's own parameters
    """

    kind = "filter"
    __signature__ = Shown("signature_with", lambda cls: (cls.__init__, _tables().values()))

    def __init__(self, name, key=FIRST_FILTER_KEY, match="", at=None, messages="data", **settings):
        self.name = name
        self.key = key
        self.match = to_text(parse(match))
        self.at = _nodes(name, at)
        self.messages = messages
        self.settings = settings
        if not (isinstance(key, int) and FIRST_FILTER_KEY <= key <= LAST_FILTER_KEY):
            raise ParameterError(
                "filter %s has key %r; it must be from %d to %d" % (name, key, FIRST_FILTER_KEY, LAST_FILTER_KEY)
            )
        if messages not in ("data", "interest"):
            raise ParameterError("filter %s is for %r messages; it must be 'data' or 'interest'" % (name, messages))
        try:
            self.instance()  # An unknown name or a wrong setting is told here, not in the middle of a run.
        except ParameterError:
            if not register_plugins():
                raise
            self.instance()

    def instance(self):
        """A fresh filter for one node, with a state of its own."""
        return on_node(self.name, self.key, self.match, self.messages, self.settings)

    def to_dict(self):
        """The filter as plain values, for a scenario's JSON."""
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
        """The filter as a mote that carries it is told of it: C reads no texts, and has the match in bytes."""
        match = parse(self.match)
        wire = bytes((len(match),)) + encode_attributes(match)
        values = self.to_dict()
        values.update({"at": None, "wire": wire.hex(), "in_c": self.in_c()})
        return values

    def in_c(self):
        """What its code in C is set to: {field of its struct: number as on the wire}; empty without such code.

        Of a filter of the user's these are the settings as they were given.
        """
        if self.name not in IN_C:
            return {} if self.name in BUILT_IN else self.settings
        kind = BUILT_IN[self.name]
        made = kind(complete_settings(self.name, kind.parameters, self.settings))
        return {field: getattr(made, field) for field in IN_C[self.name]}

    @staticmethod
    def from_dict(values):
        """The filter of `to_dict`'s values; ParameterError if it names one that is not registered here."""
        if not isinstance(values, dict) or "name" not in values:
            raise ParameterError("a filter is described by an object with a name, not by %r" % (values,))
        rest = {name: value for name, value in values.items() if name not in ("name", "settings")}
        try:
            return Filter(values["name"], **rest, **values.get("settings", {}))
        except TypeError as error:
            raise ParameterError("filter %s: %s" % (values["name"], error)) from None

    # What a scenario and a sweep ask of a part of a protocol's settings (`Protocol.parts`)

    def keys(self):
        """The numbers of the keys that it speaks of."""
        numbers = [attribute.key for attribute in parse(self.match)]
        if isinstance(self.settings.get("of"), str):
            numbers.append(key_of(self.settings["of"]).number)
        return numbers

    def user_code(self):
        """What of the user's it calls, by the names it was registered under."""
        # A built-in filter may be told a registered function by its name (blob_fusion).
        names = [self.name] + [value for value in self.settings.values() if isinstance(value, str)]
        return {name: registered[name] for name in names if name in registered}

    @staticmethod
    def register(name, make):
        """Register the user's code in another process than the one it comes from."""
        register_filter(name, make)

    def __eq__(self, other):
        return type(other) is Filter and self.to_dict() == other.to_dict()

    def __hash__(self):
        return hash((self.name, self.key, self.match))

    def __repr__(self):
        said = [("at", list(self.at))] if self.at is not None else []
        said += [("messages", self.messages)] if self.messages != "data" else []
        said += [(name, self.settings[name]) for name in sorted(self.settings)]
        more = "".join([", %s=%r" % pair for pair in said])
        return "Filter(%r, key=%d, match=%r%s)" % (self.name, self.key, self.match, more)


_TEXT = getattr(Filter, "__doc__", "")  # MicroPython has none.
Filter.__doc__ = Shown("sections", lambda _: (_TEXT, _tables()))


def _tables():
    """The parameters of built-in filters, by name."""
    return {name: one.parameters for name, one in BUILT_IN.items()}


def _nodes(name, at):
    """The nodes that ``at`` means, as a tuple; None for all of them."""
    if at is None or (isinstance(at, str) and at == "all"):
        return None
    nodes = [_node_number(node) for node in _each(at)]
    if None in nodes:
        raise ParameterError('filter %s: at is %r; it must be a node number, several, or "all"' % (name, at))
    return tuple(nodes)


def _each(at):
    if not isinstance(at, (str, bytes, dict)):
        try:
            return list(at)  # Tried and not asked for: MicroPython's tuples have no __iter__.
        except TypeError:
            pass
    return [at]


def _node_number(value):
    """An integer of Python or numpy as an int; None for anything else."""
    if isinstance(value, int):
        return None if isinstance(value, bool) else value
    return value.__index__() if hasattr(value, "__index__") else None


def register_filter(name, make):
    """Register a user's filter: a function ``attributes -> attributes or None``, or a class with ``decide``.

    A class is called with the filter's settings, once per node. Registering a name again replaces it; the names of
    built-in filters are taken.
    """
    if name in BUILT_IN:
        raise ParameterError("%s is a built-in filter; register yours under another name" % name)
    if not callable(make):
        raise ParameterError("filter %s is %r; it must be a function or a class with decide()" % (name, make))
    registered[name] = make
    return make


def register_plugins():
    """Register the filters of plug-ins that are not registered yet; return whether there were any."""
    try:
        from workbench import plugins
    except ImportError:  # a mote has none
        return False
    found = plugins.load_all("filters", [*BUILT_IN, *registered])
    registered.update(found)
    return bool(found)


def registered_filters():
    """name -> what the user registered under it (a copy)."""
    return dict(registered)
