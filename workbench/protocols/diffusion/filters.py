"""Filters: code inside the network that sees messages on their way and passes, replaces or drops them.

Theory of operation
    A filter has a key (200-250), attributes that say which messages it wants, and a function. On every node that
    carries it, each matching message is handed to it in ascending order of key (A22). It owns the message and answers
    PASS, REPLACE (with other attributes) or DROP; after PASS and REPLACE the next filter gets its turn.

    A scenario is a value and holds no code, so a filter is named: one of the built-in ones below, or a function that
    was registered under a name. A user's filter is a plain function ``attributes -> attributes or None`` (None drops);
    a class with ``decide(attributes, origin, now)`` may keep a state of its own per node.

Differs from the original in
    Filters were compiled in through filters.h; here they are registered by name before the run.
    A22 The original forwards "a copy" to the filter yet lets it drop the message: the filter owns the message.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.attributes.keys import BLOB, key_of
from workbench.attributes.model import (
    FIRST_FILTER_KEY,
    IS,
    LAST_FILTER_KEY,
    Attribute,
    check,
    check_publication,
    one_way_match,
    split_samples,
)
from workbench.attributes.text import parse, to_text
from workbench.errors import AttributeFormatError, ParameterError
from workbench.protocols.contract import NOBODY
from workbench.protocols.diffusion.events import DROP, PASS, REPLACE, Filtered
from workbench.protocols.protocol import Parameter, check_parameter


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
        self.instance()  # An unknown name or a wrong setting is told here, not in the middle of a run.

    def instance(self):
        """A fresh filter for one node, with a state of its own."""
        return FilterOnNode(
            self.key, parse(self.match), self.messages, _make_decider(self.name, self.settings), self.name
        )

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

    def __eq__(self, other):
        return type(other) is Filter and self.to_dict() == other.to_dict()

    def __hash__(self):
        return hash((self.name, self.key, self.match))

    def __repr__(self):
        more = "".join([", %s=%r" % (name, self.settings[name]) for name in sorted(self.settings)])
        return "Filter(%r, key=%d, match=%r%s)" % (self.name, self.key, self.match, more)


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


class FilterOnNode:
    """A filter at work on one node."""

    def __init__(self, key, attributes, messages, decide, name=""):
        self.key = key
        self.attributes = attributes
        self.messages = messages
        self.name = name
        self._decide = decide

    def wants(self, messages, attributes):
        """Whether it is for this kind of message, and data matches it or an interest is about all of its keys."""
        if messages != self.messages:
            return False
        if messages == "interest":
            # An interest says what it wants and has no values to compare with.
            asked = [attribute.key for attribute in attributes]
            return all([attribute.key in asked for attribute in self.attributes])
        return one_way_match(self.attributes, attributes)

    def decide(self, attributes, origin, now):
        """(PASS, REPLACE or DROP, attributes).

        Raises ParameterError if the user's code does, and AttributeFormatError for an answer that is none.
        """
        try:
            answer = self._decide(attributes, origin, now)
        except Exception as error:
            raise ParameterError("filter %s failed with %s: %s" % (self.name, type(error).__name__, error)) from error
        if answer is None:
            return DROP, attributes
        if answer != attributes:
            answer = self._checked(answer)
        return (PASS, attributes) if answer == attributes else (REPLACE, answer)

    def _checked(self, answer):
        try:
            attributes = tuple([Attribute(*attribute) for attribute in answer])
        except TypeError:
            raise AttributeFormatError(
                "filter %s answered %r; it must answer a sequence of attributes, or None to drop the message"
                % (self.name, answer)
            ) from None
        try:
            if self.messages == "data":
                check_publication(attributes)
            else:
                for attribute in attributes:
                    check(attribute)
        except AttributeFormatError as error:
            raise AttributeFormatError("filter %s answered something wrong: %s" % (self.name, error)) from None
        return attributes


_registered = {}


class FiltersOnNode:
    """The filters that one node carries, in ascending order of key."""

    def __init__(self, node, filters):
        self.node = node
        self._filters = [one.instance() for one in filters if one.at is None or node.address in one.at]
        self._filters.sort(key=lambda one: one.key)

    def answer(self, messages, attributes, origin, sequence, now):
        """The attributes of a message after all filters that want it, or None if nothing is left of it."""
        if not self._filters:
            return attributes
        left = ()
        # A filter is about readings: of an aggregated message it sees one sample at a time.
        for part in [attributes] if messages == "interest" else split_samples(attributes):
            left += self._answer_one(messages, part, origin, sequence, now)
        return left or None

    def _answer_one(self, messages, attributes, origin, sequence, now):
        for one in self._filters:
            if not one.wants(messages, attributes):
                continue
            answer, attributes = one.decide(attributes, origin, now)
            if answer != PASS:
                self.node.events.append(Filtered(NOBODY, messages, origin, sequence, one.key, answer))
            if answer == DROP:
                return ()
        return attributes


def register_filter(name, make):
    """Register a user's filter: a function ``attributes -> attributes or None``, or a class with ``decide``.

    A class is called with the filter's settings, once per node. Registering a name again replaces it; the names of
    built-in filters are taken.
    """
    if name in BUILT_IN:
        raise ParameterError("%s is a built-in filter; register yours under another name" % name)
    if not callable(make):
        raise ParameterError("filter %s is %r; it must be a function or a class with decide()" % (name, make))
    _registered[name] = make
    return make


def registered_filters():
    """name -> what the user registered under it (a copy)."""
    return dict(_registered)


def _make_decider(name, settings):
    """A function (attributes, origin, now) -> attributes or None for one node."""
    kind = BUILT_IN.get(name) or _registered.get(name)
    if kind is None:
        raise ParameterError(
            "no filter is registered as %r; register it with register_filter(%r, function) first, or use one of %s"
            % (name, name, ", ".join(sorted(BUILT_IN)))
        )
    if name in BUILT_IN:
        return kind(checked_settings(name, kind.parameters, settings)).decide
    if hasattr(kind, "decide"):
        return kind(**settings).decide
    if settings:
        raise ParameterError("filter %s is a plain function and takes no setting %s" % (name, sorted(settings)[0]))
    return lambda attributes, origin, now: kind(attributes)


def checked_settings(name, parameters, settings):
    """All settings of a built-in filter, defaults filled in; ParameterError for one it does not have."""
    complete = {}
    for parameter in parameters:
        value = settings.get(parameter.name, parameter.default)
        complete[parameter.name] = check_parameter("filter " + name, parameter, value)
    for given in settings:
        if given not in complete:
            known = ", ".join([parameter.name for parameter in parameters])
            raise ParameterError("filter %s has no setting %r; it has: %s" % (name, given, known))
    return complete


def _value(attributes, key):
    """The first IS value of ``key``, or None."""
    for attribute in attributes:
        if attribute.key == key and attribute.operator == IS:
            return attribute.value
    return None


def _with_value(attributes, key, value):
    """The same attributes with the first IS value of ``key`` replaced."""
    answer = []
    for attribute in attributes:
        if attribute.key == key and attribute.operator == IS and value is not None:
            attribute, value = Attribute(key, IS, value), None
        answer.append(attribute)
    return tuple(answer)


def _number_key(settings):
    """The key that ``of`` names, which has to have numbers for values."""
    key = key_of(settings["of"])
    if key.type == BLOB:
        raise ParameterError("a filter that compares or averages is of %r; %s is a blob" % (settings["of"], key.name))
    return key


def _in_steps(key, amount):
    # 1.1 * 100 is 110.00000000000001, and a reading of 1.1 must not lie below that.
    return round(amount * key.steps, 6)


_OF = Parameter("of", "TEMP", None, None, "key", "what most motes measure")


class SuppressUnchanged:
    """Drop a reading that differs from the last one passed for its source by no more than ``tolerance``."""

    parameters = (
        _OF,
        Parameter("tolerance", 0.0, 0, None, "units of the key", "0 drops repetitions and nothing else"),
        Parameter("heartbeat_s", 60.0, 0, None, "s", "once a minute tells a live source from a dead one"),
    )

    def __init__(self, settings):
        key = _number_key(settings)
        self.key = key.number
        self.tolerance = _in_steps(key, settings["tolerance"])
        self.heartbeat_us = int(settings["heartbeat_s"] * 1000000)
        self.last = {}

    def decide(self, attributes, origin, now):
        value = _value(attributes, self.key)
        if value is None:
            return attributes
        last, passed_at = self.last.get(origin, (None, 0))
        if last is not None and abs(value - last) <= self.tolerance and now - passed_at < self.heartbeat_us:
            return None
        self.last[origin] = (value, now)
        return attributes


class RunningWindow:
    """Replace each reading by the mean, minimum or maximum of its source's last ``window`` readings."""

    parameters = (
        _OF,
        Parameter("window", 5, 1, 100, "readings", "smooths noise, and follows within five"),
    )

    def __init__(self, settings):
        self.key = _number_key(settings).number
        self.window = settings["window"]
        self.recent = {}

    def decide(self, attributes, origin, now):
        value = _value(attributes, self.key)
        if value is None:
            return attributes
        recent = self.recent.setdefault(origin, [])
        recent.append(value)
        if len(recent) > self.window:
            recent.pop(0)
        return _with_value(attributes, self.key, self.summary(recent))


def _mean(values):
    """The mean of integers, rounded to the nearest (half up), in integers so that every machine agrees."""
    return (2 * sum(values) + len(values)) // (2 * len(values))


class RunningMean(RunningWindow):
    """Replace each reading by the mean of its source's last ``window`` readings."""

    def summary(self, values):
        return _mean(values)


class RunningMinimum(RunningWindow):
    """Replace each reading by the smallest of its source's last ``window`` readings."""

    def summary(self, values):
        return min(values)


class RunningMaximum(RunningWindow):
    """Replace each reading by the largest of its source's last ``window`` readings."""

    def summary(self, values):
        return max(values)


class NeighborhoodAverage:
    """Pass one reading per ``period_s``: the mean of the latest reading of each source heard since the last one."""

    parameters = (
        _OF,
        Parameter("period_s", 5.0, 0.001, None, "s", "a round of readings at the usual period"),
    )

    def __init__(self, settings):
        self.key = _number_key(settings).number
        self.period_us = int(settings["period_s"] * 1000000)
        self.latest = {}
        self.next_us = None

    def decide(self, attributes, origin, now):
        value = _value(attributes, self.key)
        if value is None:
            return attributes
        if self.next_us is None:
            self.next_us = now + self.period_us
        self.latest[origin] = value
        if now < self.next_us:
            return None
        mean = _mean(list(self.latest.values()))
        self.latest = {}
        self.next_us = now + self.period_us
        return _with_value(attributes, self.key, mean)


class RateLimit:
    """Pass at most one message of each source per ``interval_s``."""

    parameters = (Parameter("interval_s", 10.0, 0.001, None, "s", "every second reading of a 5 s period"),)

    def __init__(self, settings):
        self.interval_us = int(settings["interval_s"] * 1000000)
        self.passed_at = {}

    def decide(self, attributes, origin, now):
        last = self.passed_at.get(origin)
        if last is not None and now - last < self.interval_us:
            return None
        self.passed_at[origin] = now
        return attributes


class ThresholdAlarm:
    """Pass a source's reading only when it rises above ``high`` (alarm) or falls below ``low`` again (all clear)."""

    parameters = (
        _OF,
        Parameter("high", 30.0, None, None, "units of the key", "a room that is too hot"),
        Parameter("low", 28.0, None, None, "units of the key", "two degrees of hysteresis: noise rings no alarm"),
    )

    def __init__(self, settings):
        key = _number_key(settings)
        if settings["low"] > settings["high"]:
            raise ParameterError(
                "filter threshold_alarm: low is %s and high is %s; low must not be above high"
                % (settings["low"], settings["high"])
            )
        self.key = key.number
        self.high = _in_steps(key, settings["high"])
        self.low = _in_steps(key, settings["low"])
        self.alarmed = {}

    def decide(self, attributes, origin, now):
        value = _value(attributes, self.key)
        if value is None:
            return attributes
        alarmed = self.alarmed.get(origin, False)
        changed = value < self.low if alarmed else value > self.high
        if not changed:
            return None
        self.alarmed[origin] = not alarmed
        return attributes


class BlobFusion:
    """Collect ``count`` blobs and pass one message with what the user's function makes of them: [bytes] -> bytes.

    A function that answers None keeps the result to itself.
    """

    parameters = (
        Parameter("of", "PAYLOAD", None, None, "key", "where publish() puts a payload"),
        Parameter("count", 2, 1, 100, "blobs", "the smallest that fuses anything"),
        Parameter("function", "", None, None, "name", "registered with register_filter; it has no sensible default"),
    )

    def __init__(self, settings):
        key = key_of(settings["of"])
        if key.type != BLOB:
            raise ParameterError("filter blob_fusion is of %r; %s is no blob" % (settings["of"], key.name))
        self.key = key.number
        self.count = settings["count"]
        self.fuse = _registered.get(settings["function"])
        if self.fuse is None:
            raise ParameterError(
                "filter blob_fusion fuses with %r, which is not registered; register_filter(name, function) does"
                % settings["function"]
            )
        self.blobs = []

    def decide(self, attributes, origin, now):
        blob = _value(attributes, self.key)
        if blob is None:
            return attributes
        self.blobs.append(blob)
        if len(self.blobs) < self.count:
            return None
        fused, self.blobs = self.fuse(self.blobs), []
        return None if fused is None else _with_value(attributes, self.key, fused)


BUILT_IN = {
    "suppress_unchanged": SuppressUnchanged,
    "running_mean": RunningMean,
    "running_minimum": RunningMinimum,
    "running_maximum": RunningMaximum,
    "neighborhood_average": NeighborhoodAverage,
    "rate_limit": RateLimit,
    "threshold_alarm": ThresholdAlarm,
    "blob_fusion": BlobFusion,
}
