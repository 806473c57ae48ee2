"""Exercises of lesson 4: wildcards, a publication that is forwarded in vain, the length of a filter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import workbench as wb

from .exercise import Exercise, Verdict, is_number, is_text
from .figures.topics import routing_steps
from .matching import judge_matches


def subscription(answer: str, wanted: Iterable[str], unwanted: Iterable[str]) -> Verdict:
    """Judge a subscription's topic: it must match all wanted topics and none of the unwanted ones."""
    wb.dps.topics.check_subscription_topic(answer)
    levels = f"{answer!r} has {answer.count('/') + 1} levels"
    return judge_matches(
        wanted,
        unwanted,
        lambda topic: wb.dps.topics.matches(topic, answer),
        lambda topic: f"{levels}, and one of them differs from the same level of {topic!r}",
    )


def in_vain(answer: str, subscribed: str) -> Verdict:
    """Judge a publication's topic: it must have all filter items of the subscription, and still not match it."""
    published, subscription_items = (
        wb.dps.topics.publication_items(answer),
        wb.dps.topics.subscription_items(subscribed),
    )
    missing = [item for item in subscription_items if item not in published]
    if missing:
        return Verdict(False, f"{answer!r} is not forwarded: it lacks the item {missing[0]!r} of {subscribed!r}.")
    if wb.dps.topics.matches(answer, subscribed):
        return Verdict(False, f"{answer!r} is forwarded and wanted: it matches {subscribed!r}.")
    items = ", ".join(map(repr, subscription_items)) or "no items at all"
    return Verdict(
        True, f"It has all items of {subscribed!r} ({items}) and does not match; the subscriber discards it."
    )


def length(answer: Any, topic: str, behind: Sequence[str], lengths: Sequence[int], hashes: int) -> Verdict:
    """Judge a filter length in bits: it must be the shortest with which a topic is not forwarded over a link.

    ``topic``: of the publication. ``behind``: topics of the subscriptions behind the link. ``lengths``: the choices.
    """
    if answer not in lengths:
        return Verdict(False, f"{answer!r:.40} is not one of the lengths {', '.join(map(str, lengths))}.")
    decisions = {bits: routing_steps(topic, list(behind), bits, hashes) for bits in sorted(lengths)}
    if decisions[answer].is_forwarded:
        return Verdict(False, f"With {answer} bits: {decisions[answer].verdict()}")
    shortest = next(bits for bits, decision in decisions.items() if not decision.is_forwarded)
    if shortest != answer:
        return Verdict(False, f"{answer} bits stop it, but a shorter filter does so too.")
    return Verdict(True, f"With {answer} bits: {decisions[answer].verdict()}")


EXERCISES = {
    "04.1": Exercise('the topic of a subscription, such as "house/#"', is_text, subscription),
    "04.2": Exercise('the topic of a publication, such as "a/b"', is_text, in_vain),
    "04.3": Exercise("a number of bits", is_number, length),
}
