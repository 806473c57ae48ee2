"""The names of the fields of a dissector module, from which Wireshark's filters are made.

The names come from the module's table of fields, MESSAGES (`workbench.protocols.field_tables`). A module without such a
table lists the names in FIELD_NAMES.
"""

from __future__ import annotations

import re
from types import ModuleType

from workbench.protocols.dissection import COMMON_FIELDS
from workbench.protocols.field_tables import labels


def names_in(module: ModuleType) -> dict[str, tuple[str, str]]:
    """Return {name: (abbreviation, kind)} of a dissector module's fields and of the fields common to all protocols.

    The kind is "number", "octets" or "text". A group is a text, and so are fields of different kinds with the same
    name.
    """
    kinds = labels(getattr(module, "MESSAGES", {}))
    for name, kind in COMMON_FIELDS.items():
        kinds.setdefault(name, set()).add(kind)
    for name in getattr(module, "FIELD_NAMES", ()):
        kinds.setdefault(name, set()).add("text")
    return {name: (abbreviation(name), min(kinds[name]) if len(kinds[name]) == 1 else "text") for name in kinds}


def abbreviation(name: str) -> str:
    """Return a field's name in the form that filters use: "hops to live" becomes hops_to_live.

    The result is in lower case, without apostrophes. It has ``_`` in place of other characters than letters and digits.
    """
    return re.sub(r"\W+", "_", name.replace("'", "").lower()).strip("_")
