"""Links that contain a scenario: ``#s=`` and the scenario, compressed with zlib and written as base64url (RFC 4648).

to_fragment(scenario)     the part of a link after #, which contains the scenario
from_fragment(fragment)   the scenario that a link contains
"""

from __future__ import annotations

import base64
import binascii
import zlib
from urllib.parse import parse_qs

from workbench.errors import DataError
from workbench.sim.scenario import Scenario

LONGEST = 8_000  # characters; programs that pass links on cut longer ones
_LARGEST_B = 4_000_000  # of a scenario; a few characters could expand to gigabytes


def to_fragment(scenario: Scenario) -> str:
    """Return the fragment of a link to a scenario: "s=...".

    Raises DataError if the fragment would be longer than `LONGEST` characters. This happens if the scenario stores its
    network as a table of radio links.
    """
    packed = zlib.compress(scenario.to_json(indent=None).encode(), 9)
    fragment = "s=" + base64.urlsafe_b64encode(packed).decode().rstrip("=")
    if len(fragment) > LONGEST:
        raise DataError(
            f"the link to this scenario would have {len(fragment):,} characters, and a link has at most {LONGEST:,}; "
            "save the scenario as a file instead"
        )
    return fragment


def from_fragment(fragment: str) -> Scenario:
    """Return the scenario in a link or in its fragment.

    Raises DataError if the scenario is missing or damaged, and ScenarioError if it is invalid.
    """
    packed_texts = parse_qs(fragment.rpartition("#")[2][: 2 * LONGEST]).get("s")
    if not packed_texts:
        raise DataError(
            "the link contains no scenario (no s= after the #); copy it from the button link in the lab's tab Take away"
        )
    text = packed_texts[0]
    try:
        packed = base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
        unpacker = zlib.decompressobj()
        document = unpacker.decompress(packed, _LARGEST_B)
    except (binascii.Error, ValueError, zlib.error):
        document = b""
    if not document or not unpacker.eof:
        raise DataError("the scenario in the link is damaged or incomplete; copy the whole link again")
    return Scenario.from_json(document.decode(errors="replace"))
