"""Filters: functions on nodes that pass, replace or drop the messages that the nodes forward.

Theory of operation
    A filter has a key (200-250), attributes that select messages, and a function. A node that carries filters passes
    each matching message to them in ascending order of key (A22). A filter decides PASS, REPLACE (with other
    attributes) or DROP; after PASS and REPLACE the next filter gets the message.

    A scenario contains no code, so it refers to a filter by name: a built-in filter or a registered function. A user's
    filter is a plain function ``attributes -> attributes or None`` (None drops the message), or a class with
    ``decide(attributes, origin, now)``, which may have its own state on each node.

    ``value.py``       `Filter`, which a scenario contains, and the registration of users' filters
    ``on_node.py``     the filters that one node carries, and their decisions
    ``built_in.py``    the built-in filters (`BUILT_IN`), and the table of registered ones
    ``catalogue.py``   descriptions of all filters for forms, and a hook that observes their decisions

Differs from the original in
    The original compiles filters in through filters.h; here they are registered by name before the run.
    A22 The original passes "a copy" of a message to a filter, yet the filter may drop the message. Here a filter gets
    the message itself.

The files of this folder run on a mote too, except `value.py`, `catalogue.py` and this one.
"""

from workbench.protocols.diffusion.filters.built_in import BUILT_IN
from workbench.protocols.diffusion.filters.built_in import registered as _registered
from workbench.protocols.diffusion.filters.on_node import FilterOnNode, complete_settings
from workbench.protocols.diffusion.filters.value import Filter, register_filter, registered_filters

__all__ = [
    "BUILT_IN",
    "Filter",
    "FilterOnNode",
    "_registered",
    "complete_settings",
    "register_filter",
    "registered_filters",
]
