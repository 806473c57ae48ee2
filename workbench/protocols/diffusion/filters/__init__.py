"""Filters: code inside the network that sees messages on their way and passes, replaces or drops them.

Theory of operation
    A filter has a key (200-250), attributes that say which messages it wants, and a function. On every node that
    carries it, each matching message is handed to it in ascending order of key (A22). It owns the message and answers
    PASS, REPLACE (with other attributes) or DROP; after PASS and REPLACE the next filter gets its turn.

    A scenario is a value and holds no code, so a filter is named: a built-in one, or a function that was registered
    under a name. A user's filter is a plain function ``attributes -> attributes or None`` (None drops); a class with
    ``decide(attributes, origin, now)`` may keep a state of its own per node.

    ``value.py``       `Filter`, which a scenario holds, and how users register theirs
    ``on_node.py``     the filters at work on one node
    ``built_in.py``    the built-in filters (`BUILT_IN`), and the table of those that users have registered
    ``catalogue.py``   all of them as forms need them, and what they do while somebody watches

Differs from the original in
    Filters were compiled in through filters.h; here they are registered by name before the run.
    A22 The original forwards "a copy" to the filter yet lets it drop the message: the filter owns the message.

The files of this folder run on a mote too, but for `value.py`, `catalogue.py` and this one.
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
