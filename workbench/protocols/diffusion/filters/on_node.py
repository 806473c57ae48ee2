"""The filters at work on one node.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.attributes.model import Attribute, check, check_publication, one_way_match
from workbench.attributes.text import parse
from workbench.errors import AttributeFormatError, ParameterError
from workbench.protocols.contract import NOBODY
from workbench.protocols.diffusion.events import Filtered
from workbench.protocols.diffusion.filters.built_in import BUILT_IN, registered
from workbench.protocols.parameter import check_parameter

# What a filter answers.
PASS = "pass"
REPLACE = "replace"
DROP = "drop"


class PlainFilter:
    """A filter as a mote is told of it: the plain values of a `Filter`, which the host has checked."""

    def __init__(self, values):
        self.at = values["at"]
        self._values = values

    def instance(self):
        """A fresh filter for one node, with a state of its own."""
        values = self._values
        return on_node(values["name"], values["key"], values["match"], values["messages"], values["settings"])


def on_node(name, key, match, messages, settings):
    """A fresh filter for one node; ParameterError for an unknown name or a wrong setting."""
    return FilterOnNode(key, parse(match), messages, _make_decider(name, settings), name)


class FiltersOnNode:
    """The filters that one node carries, in ascending order of key."""

    def __init__(self, node, filters):
        self.node = node
        self._filters = [one.instance() for one in filters if one.at is None or node.address in one.at]
        self._filters.sort(key=lambda one: one.key)

    def __len__(self):
        return len(self._filters)

    def answer(self, messages, parts, origin, sequence, now):
        """The attributes of a message after all filters that want it, or None if nothing is left of it.

        ``parts``: an interest's attributes, or those of each reading in a data message. A filter is about readings: of
        an aggregate it sees one at a time.
        """
        left = ()
        for part in parts:
            left += self._answer_one(messages, part, origin, sequence, now)
        return left or None

    def _answer_one(self, messages, attributes, origin, sequence, now):
        for one in self._filters:
            if not one.wants(messages, attributes):
                continue
            before = attributes
            answer, attributes = one.decide(before, origin, now)
            self.tell(one, answer, origin, sequence, now, before, attributes)
            if answer == DROP:
                return ()
        return attributes

    def tell(self, one, answer, origin, sequence, now, before, after):
        """Report what a filter made of a message; whoever watches a node (`catalogue.watch`) stands in for this."""
        if answer != PASS:
            self.node.events.append(Filtered(NOBODY, one.messages, origin, sequence, one.key, answer))


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
            answer = self._attributes_of(answer)
        return (PASS, attributes) if answer == attributes else (REPLACE, answer)

    def _attributes_of(self, answer):
        """Return a filter's answer as attributes; AttributeFormatError if they are not valid."""
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


def _make_decider(name, settings):
    """A function (attributes, origin, now) -> attributes or None for one node."""
    kind = BUILT_IN.get(name) or registered.get(name)
    if kind is None:
        from workbench.suggestion import meant  # Not before: a mote has no room for it.

        hint = meant(name, sorted(BUILT_IN) + sorted(registered))
        raise ParameterError(
            "no filter is registered as %r%s; register it with register_filter(%r, function) first, or use one of %s"
            % (name, hint, name, ", ".join(sorted(BUILT_IN)))
        )
    if name in BUILT_IN:
        return kind(complete_settings(name, kind.parameters, settings)).decide
    if hasattr(kind, "decide"):
        return kind(**settings).decide
    if settings:
        raise ParameterError("filter %s is a plain function and takes no setting %s" % (name, sorted(settings)[0]))
    return lambda attributes, origin, now: kind(attributes)


def complete_settings(name, parameters, settings):
    """Return all settings of a built-in filter, with defaults; ParameterError for an unknown or a wrong one."""
    complete = {}
    for parameter in parameters:
        value = settings.get(parameter.name, parameter.default)
        complete[parameter.name] = check_parameter("filter " + name, parameter, value)
    for given in settings:
        if given not in complete:
            from workbench.suggestion import meant  # Not before: a mote has no room for it.

            known = [parameter.name for parameter in parameters]
            raise ParameterError(
                "filter %s has no setting %r%s; it has: %s"
                % (name, given, meant(given, known + ["key", "match", "at", "messages"]), ", ".join(known))
            )
    return complete
