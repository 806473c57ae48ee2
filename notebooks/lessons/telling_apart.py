"""An answer that has to match some publications and not others."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .exercise import Verdict


def tells_apart(
    wanted: Iterable[str], unwanted: Iterable[str], matches: Callable[[str], bool], why_not: Callable[[str], str]
) -> Verdict:
    """Whether all ``wanted`` publications match and no ``unwanted`` one does; ``why_not`` says why one does not."""
    for one in wanted:
        if not matches(one):
            return Verdict(False, f"It does not match {one!r}: {why_not(one)}.")
    for one in unwanted:
        if matches(one):
            return Verdict(False, f"It matches {one!r} as well, which nobody asked for.")
    return Verdict(True, "It matches what is wanted, and nothing else.")
