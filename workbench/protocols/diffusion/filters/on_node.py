"""The filters that one node carries, and their decisions about messages.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.attributes.model import IS, Attribute, check, check_publication, one_way_match
from workbench.attributes.text import parse
from workbench.errors import AttributeFormatError, ParameterError
from workbench.protocols.contract import NOBODY
from workbench.protocols.diffusion.events import Filtered
from workbench.protocols.diffusion.filters.built_in import BUILT_IN, registered
from workbench.protocols.diffusion.wire import Data
from workbench.protocols.parameter import check_parameter

# A filter's decisions.
PASS = "pass"
REPLACE = "replace"
DROP = "drop"


class PlainFilter:
    """A filter on a mote, made of the dictionary that `Filter.on_a_mote` returns on the host."""

    def __init__(self, values):
        self.at = values["at"]
        self._values = values

    def instance(self):
        """Return a new FilterOnNode for one node, with its own state."""
        values = self._values
        return on_node(values["name"], values["key"], values["match"], values["messages"], values["settings"])


def on_node(name, key, match, messages, settings):
    """Return a new FilterOnNode for one node. Raises ParameterError for an unknown name or an invalid setting.

    ``name``: a built-in or registered filter. ``key``: its position among the node's filters, 200 to 250. ``match``:
    text of the attributes that select messages. ``messages``: "data" or "interest". ``settings``: {name: value} of the
    filter's own parameters.
    """
    return FilterOnNode(key, parse(match), messages, _make_filter(name, settings), name)


class FiltersOnNode:
    """The filters that one node carries, in ascending order of key."""

    def __init__(self, node, filters):
        self.node = node
        self._filters = [filter_.instance() for filter_ in filters if filter_.at is None or node.address in filter_.at]
        self._filters.sort(key=lambda filter_: filter_.key)
        for filter_ in self._filters:
            filter_.matching = node.matching
        self._dropped = []  # (filter, attributes) of the parts of a message that filters have dropped

    def __len__(self):
        return len(self._filters)

    @property
    def next_wake(self):
        """The earliest time (µs) at which a filter will send samples made from dropped messages, or None."""
        times = [filter_.emits_at_us() for filter_ in self._filters]
        times = [time for time in times if time is not None]
        return min(times) if times else None

    def wake(self, now):
        """Let each filter that is due send the samples that it has made from dropped messages."""
        for index in range(len(self._filters)):
            time_us = self._filters[index].emits_at_us()
            if time_us is not None and time_us <= now:
                self._emit(index, now)

    def _emit(self, index, now):
        """Send the samples that the filter at ``index`` emits now, in place of the data message that it dropped last.

        The message keeps its origin, sequence number and ttl. The filters after ``index`` process the samples first.
        """
        filter_ = self._filters[index]
        samples = filter_.emit(now)
        if filter_.held is None or not samples:
            return
        origin, sequence, previous_hop, ttl, held_attributes = filter_.held
        attributes = ()
        for sample in samples:
            attributes += self._filter_attributes("data", sample, origin, sequence, now, index + 1)
        self.report(filter_, REPLACE, origin, sequence, now, held_attributes, attributes)
        if attributes:
            data = Data(sequence, origin, previous_hop, ttl, len(samples) > 1, (), attributes)
            self.node.send_held(data, now)

    def apply(self, messages, parts, origin, sequence, now):
        """Return a message's attributes after all matching filters, or None if the filters drop the message.

        ``messages``: "interest" or "data"; ``parts``: a list with the attributes of the interest, or of each reading in
        the data message. Filters process the readings of an aggregate one at a time.
        """
        filtered_attributes = ()
        self._dropped = []
        for part in parts:
            filtered_attributes += self._filter_attributes(messages, part, origin, sequence, now)
        seen_record = None if filtered_attributes else self.node.seen_data.get((origin, sequence))
        if messages == "data" and seen_record is not None:
            for filter_, attributes in self._dropped:
                filter_.held = (origin, sequence, seen_record.previous_hop, seen_record.ttl, attributes)
        return filtered_attributes or None

    def _filter_attributes(self, messages, attributes, origin, sequence, now, first_filter=0):
        """Apply the matching filters to one reading or interest; return its new attributes, or () if a filter drops it.

        ``messages``: "interest" or "data"; ``first_filter``: index of the first filter to apply.
        """
        for filter_ in self._filters[first_filter:]:
            if not filter_.wants(messages, attributes):
                continue
            old_attributes = attributes
            decision, attributes = filter_.decide(old_attributes, origin, now)
            self.report(filter_, decision, origin, sequence, now, old_attributes, attributes)
            if decision == DROP:
                self._dropped.append((filter_, old_attributes))
                return ()
        return attributes

    def report(self, filter_, decision, origin, sequence, now, before, after):
        """Report a filter's decision to replace or drop a message as an event.

        `catalogue.watch` replaces this method to observe all decisions.
        """
        if decision != PASS:
            self.node.events.append(Filtered(NOBODY, filter_.messages, origin, sequence, filter_.key, decision))


class FilterOnNode:
    """A filter on one node, with its state there.

    matching  the node's rule of matching: "any", "strict" or "two-way". Data that the filter returns may contain
              constraints, such as TEMP GE 20, only if the rule is "two-way"
    held      the last data message whose readings were all dropped, at least one of them by this filter; None without
              such a message. It is stored as (origin, sequence, previous hop, ttl, attributes of the last reading that
              this filter dropped). Samples that the filter emits later are sent in place of this message
    """

    def __init__(self, key, attributes, messages, filter_, name=""):
        self.key = key
        self.attributes = attributes
        self.messages = messages
        self.name = name
        self.matching = "any"
        self.held = None
        self._filter = filter_

    def wants(self, messages, attributes):
        """Return whether the filter processes a message with these attributes; ``messages``: "data" or "interest".

        The IS attributes of data have to meet the constraints of the filter; constraints in the data are ignored. An
        interest has to contain the keys of all the filter's attributes.
        """
        if messages != self.messages:
            return False
        if messages == "interest":
            # An interest contains constraints instead of values, so only its keys are compared.
            interest_keys = [attribute.key for attribute in attributes]
            return all([attribute.key in interest_keys for attribute in self.attributes])
        return one_way_match(self.attributes, attributes)

    def decide(self, attributes, origin, now):
        """Return (decision, attributes): PASS or DROP with the given attributes, or REPLACE with new ones.

        Raises ParameterError if the user's code fails, and AttributeFormatError if the result of the code is not valid.
        """
        try:
            result = self._filter.decide(attributes, origin, now)
        except Exception as error:
            raise ParameterError("filter %s failed with %s: %s" % (self.name, type(error).__name__, error)) from error
        if result is None:
            return DROP, attributes
        if result != attributes:
            result = self._to_attributes(result)
        return (PASS, attributes) if result == attributes else (REPLACE, result)

    def emits_at_us(self):
        """Return the time (µs) at which the filter will send samples made from dropped messages, or None."""
        return getattr(self._filter, "emits_at_us", None)

    def emit(self, now):
        """Return the samples that the filter emits: a list of tuples of Attribute; [] for none.

        Raises ParameterError if the user's code fails, or if the time of its next emission, ``emits_at_us``, is still
        at or before ``now`` afterwards. Raises AttributeFormatError if the result of the code is not valid.
        """
        try:
            result = self._filter.emit(now)
        except Exception as error:
            raise ParameterError("filter %s failed with %s: %s" % (self.name, type(error).__name__, error)) from error
        due_us = self.emits_at_us()
        if due_us is not None and due_us <= now:
            raise ParameterError(
                "filter %s: emits_at_us is %r after emit(now=%d); emit must set it to a time later than now, or to None"
                % (self.name, due_us, now)
            )
        if not result:
            return []
        is_single = isinstance(result[0][0], int)
        samples = [self._to_attributes(sample) for sample in ([result] if is_single else result)]
        keys = [sample[0].key for sample in samples]
        if len(samples) > 1 and (
            len(set(keys)) > 1
            or any([[attribute.key for attribute in sample].count(keys[0]) > 1 for sample in samples])
            or any([attribute.operator != IS for sample in samples for attribute in sample])
        ):
            raise AttributeFormatError(
                "filter %s emitted several samples; all must begin with the same key, contain this key once, and have "
                "no constraints" % self.name
            )
        return samples

    def _to_attributes(self, result):
        """Convert the result of the filter's code to a tuple of Attribute.

        Raises AttributeFormatError if the result is not valid.
        """
        try:
            attributes = tuple([Attribute(*attribute) for attribute in result])
        except TypeError:
            raise AttributeFormatError(
                "filter %s returned %r; it must return a sequence of attributes, or None to drop the message"
                % (self.name, result)
            ) from None
        try:
            if self.messages == "data":
                check_publication(attributes, self.matching == "two-way")
            else:
                for attribute in attributes:
                    check(attribute)
        except AttributeFormatError as error:
            raise AttributeFormatError("filter %s returned invalid attributes: %s" % (self.name, error)) from None
        return attributes


class _Function:
    """A filter made of a user's plain function, with the method ``decide``."""

    def __init__(self, function):
        self._function = function

    def decide(self, attributes, origin, now):
        return self._function(attributes)


def _make_filter(name, settings):
    """Return a new filter for one node, an object with ``decide(attributes, origin, now)``.

    ``name``: a built-in or registered filter. Raises ParameterError for an unknown name or an invalid setting.
    """
    filter_class = BUILT_IN.get(name) or registered.get(name)
    if filter_class is None:
        from workbench.suggestion import meant  # only here: a mote has no memory for it

        hint = meant(name, sorted(BUILT_IN) + sorted(registered))
        raise ParameterError(
            "no filter is registered as %r%s; register it with register_filter(%r, function) first, or use one of %s"
            % (name, hint, name, ", ".join(sorted(BUILT_IN)))
        )
    if name in BUILT_IN:
        return filter_class(complete_settings(name, filter_class.parameters, settings))
    if hasattr(filter_class, "decide"):
        return filter_class(**settings)
    if settings:
        raise ParameterError(
            "filter %s is a plain function, which has no settings; remove the setting %s, or register a class"
            % (name, sorted(settings)[0])
        )
    return _Function(filter_class)


def complete_settings(name, parameters, settings):
    """Return {name: value} of all settings of a built-in filter; a setting that is missing gets its default.

    Raises ParameterError for an unknown setting or an invalid value.
    """
    value_by_name = {}
    for parameter in parameters:
        value = settings.get(parameter.name, parameter.default)
        value_by_name[parameter.name] = check_parameter("filter " + name, parameter, value)
    for setting in settings:
        if setting not in value_by_name:
            from workbench.suggestion import meant  # only here: a mote has no memory for it

            setting_names = [parameter.name for parameter in parameters]
            raise ParameterError(
                "filter %s has no setting %r%s; it has: %s"
                % (
                    name,
                    setting,
                    meant(setting, setting_names + ["key", "match", "at", "messages"]),
                    ", ".join(setting_names),
                )
            )
    return value_by_name
