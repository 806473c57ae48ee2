"""Sentences on why a run delivered little or nothing. No code here depends on the protocol that ran.

Theory of operation
    Each sentence is a fact that the scenario or the rows of the run prove. Some are about the workload: no
    subscription, no publication, a subscription that was not active at the time of a publication, attributes that do
    not match, no path between two nodes, a node that was down. The others are about expected readings that were not
    delivered: one sentence for each cause in their accounts (`analysis/accounts.py`), and one on the radio's losses. A
    protocol adds its own facts in the module that its class names (``explain``), under these names, all of them
    optional:

    sentences(scenario, missing)        sentences that the scenario proves; ``missing``: `analysis.expected.Pairs`
    clause(scenario, account)           the clause about a cause in terms of the protocol, or None for the usual one
    last_step, CARRIERS, HARMLESS       how the accounts follow its messages (`workbench.analysis.accounts`)

Limits
    If several things went wrong, all of them are named, not the one that mattered most.

Cost
    The cost of `workbench.analysis.accounts`.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from workbench.analysis import accounts
from workbench.analysis.expected import Expected, expected
from workbench.analysis.sentences import more, seconds
from workbench.attributes.model import EQ, IS, TOPIC, Attribute, one_way_match
from workbench.attributes.text import parse, to_text
from workbench.columns import find_last, split_rows, take_rows
from workbench.protocols.protocol import Protocol
from workbench.sim import actions, workload
from workbench.sim.metrics.matching import matching_of
from workbench.sim.metrics.workload import Publications, Subscriptions, active_intervals, down_times
from workbench.sim.readings import Readings
from workbench.sim.rows import Columns
from workbench.sim.run import Run

LOW = 0.9  # A delivery ratio below it gets a hint.
_MOST_UNMATCHED = 5  # limit of the unmatched subscriptions explained: each is compared with all publications
_REPORTED_SHARE = 0.05  # Losses of at least this share of the receptions (or frames) are reported.
_VERBS = {actions.SUBSCRIBE: "subscribe to", actions.PUBLISH: "publish"}


class Explanation(str):
    """The reasons why a run delivered little or nothing, as text: a headline, and a line for each sentence."""

    headline: str
    sentences: tuple[str, ...]

    def __new__(cls, headline: str, sentences: Iterable[str]) -> Explanation:
        lines = tuple(sentences)
        text = super().__new__(cls, "\n".join((headline, *(f"- {line}" for line in lines))))
        text.headline, text.sentences = headline, lines
        return text

    __repr__ = str.__str__

    def _repr_html_(self) -> str:
        list_items = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in self.sentences)
        return f"<p>{html.escape(self.headline)}</p>" + (f"<ul>{list_items}</ul>" if list_items else "")


def hint(delivery_ratio: float) -> str:
    """Return a line that recommends ``run.explain()`` if the delivery ratio is low or NaN, else ""."""
    if delivery_ratio >= LOW:
        return ""
    is_number = delivery_ratio == delivery_ratio
    return f"{'Little was' if is_number else 'Nothing was expected to be'} delivered: run.explain() shows why."


def explain(run: Run) -> Explanation:
    """Return the reasons why little or nothing was delivered, each with facts of scenario or trace that prove it."""
    scenario, metrics, trace_columns = run.scenario, run.metrics, Columns(run._rows)
    expectations = expected(scenario, trace_columns)
    subscriptions, publications, samples = expectations.subscriptions, expectations.publications, expectations.samples
    sentences = [
        *_explain_empty_workload(scenario, subscriptions, publications),
        *_explain_late_items(scenario),
        *_explain_missed_actions(scenario, trace_columns),
        *_explain_mismatches(scenario, subscriptions, publications, samples),
        *_explain_times(trace_columns, subscriptions, publications, samples, bool(metrics["expected"])),
        *_explain_missing_paths(expectations),
    ]
    if len(expectations.missing.subscriber):
        sentences += _explain_causes(run, expectations) if run.has_trace else ()
        sentences += _explain_losses(metrics)
        sentences += getattr(accounts.module_of(scenario), "sentences", _explain_nothing)(
            scenario, expectations.missing
        )
    return Explanation(_make_headline(run, metrics, len(sentences)), sentences)


def _explain_nothing(scenario: Any, missing: Any) -> tuple[str, ...]:
    return ()


def _make_headline(run: Any, metrics: Any, count: int) -> str:
    if not metrics["expected"]:
        return "No reading was expected to be delivered" + (":" if count else ".")
    summary_text = (
        f"{metrics['delivered']:,.0f} of {metrics['expected']:,.0f} readings that were expected were delivered"
    )
    if count:
        return f"{summary_text}:"
    if metrics["delivered"] == metrics["expected"]:
        return f"{summary_text}."
    hint_at_more = "" if run.has_trace else '; a run with record="trace" may show more'
    return f"{summary_text}. Neither the scenario nor what was recorded proves why{hint_at_more}."


# Readings that were not delivered

_LOST = {
    "link": "and the link lost it",
    "collision": "and it collided there",
    "half_duplex": "and that node was itself sending",
    "down": "and that node was down",
}


def _explain_causes(run: Any, expectations: Expected) -> Iterator[str]:
    """Yield a sentence for each cause of losses, the most common cause first.

    A sentence describes one reading, the last one lost for this cause, and states how many others were lost for it.
    """
    accounts_by_cause: dict[tuple[str, str], list[accounts.Account]] = {}
    for account in accounts.missing(run, expectations):
        # A detail is a reason, or a number of parts.
        reason = "" if account.detail.isdigit() else account.detail
        accounts_by_cause.setdefault((account.cause, reason), []).append(account)
    for same_reason in sorted(accounts_by_cause.values(), key=len, reverse=True):
        yield f"{sentence(run.scenario, same_reason[-1])[:-1]}{more(len(same_reason))}."


def sentence(scenario: Any, account: accounts.Account) -> str:
    """Return a sentence that states when an expected reading was delivered, or where and why it was lost."""
    publisher, number = account.reading
    reading = f"Reading {number} of node {publisher}, published at {seconds(account.published_us)},"
    if account.delivered_us is not None:
        return f"{reading} was delivered to node {account.subscriber} at {seconds(account.delivered_us)}."
    clause = getattr(accounts.module_of(scenario), "clause", _describe_nothing)(scenario, account)
    return f"{reading} did not reach node {account.subscriber}: {clause or _describe_cause(account)}."


def _describe_nothing(scenario: Any, account: accounts.Account) -> None:
    return None


def _describe_cause(account: accounts.Account) -> str:
    cause, node, neighbor, detail = account.cause, account.node, account.neighbor, account.detail
    subscriber, when = account.subscriber, seconds(account.time_us)
    if cause in ("lost", "down") and neighbor is not None:
        lost = _LOST.get(detail, f"and it was lost ({detail})")
        return f"node {node} had it last; it was sent to node {neighbor} at {when}, {lost}"
    if cause == "disconnected":
        return _describe_cut(account)
    clauses = {
        "down": f"node {node} went down before its frame was out, and gave it up at {when}",
        "out_of_range": f"node {node} had it last and sent it at {when}; no link led to node {neighbor} at that time",
        "saturated": (
            f"node {node} gave up its frame at {when}, as the channel was busy"
            if detail == "channel_busy"
            else f"node {node} had it to send from {when} on, and its radio sent other frames until the run ended"
        ),
        "run_ended": f"node {node} had it to send from {when} on, and the run ended first",
        "chance": f"node {node} had it last and did not forward it, by chance",
        "ttl": f"node {node} had it last and dropped it, as it had reached its limit of hops",
        "filtered": (
            f"a filter of node {node} dropped it"
            if len(account.rows) == 1
            else f"a filter changed it on its way, and node {node} could not use the result"
        ),
        "evicted": f"node {node} had evicted the subscription of node {subscriber}, or a part of the reading",
        "expired": f"node {node}'s entry for the subscription of node {subscriber} had ended at {when} ({detail})",
        "dropped": f"node {node} had it last and dropped it at {when}: {detail}",
        "incomplete": f"node {node} received parts of it, the last at {when}, but never all of them",
        "too_late": f"it arrived at {when}, after the end of the subscription",
        "not_asked": (
            f"by {when} no subscription of node {subscriber} had reached node {node}"
            + ("" if neighbor is None else f" from node {neighbor}")
        ),
        "no_room": f"node {node} had no room for a path to node {subscriber} by {when}",
        "no_base": (
            f"node {node} could not apply the interests of node {neighbor}, as they were changes to earlier interests "
            "that had not arrived"
        ),
        "no_link": f"node {node} had it last, at {when}, and no links in use led on to node {subscriber}",
        "no_way_on": f"node {node} had it last, at {when}, and its only path led back to node {neighbor}",
        "no_place": f"node {node}, which had it at {when}, had no position in a tree",
        "not_matched": f"no subscription of node {subscriber} was stored at node {node} when it arrived, at {when}",
        "not_forwarded": f"node {node} had it last, at {when}, and did not forward it",
        "not_proven": "the rows of the trace do not prove why",
    }
    return clauses.get(cause, cause)


def _describe_cut(account: accounts.Account) -> str:
    start_node, goal, from_us = account.reading.publisher, account.subscriber, account.published_us
    where_cut = (
        ""
        if account.neighbor is None
        else f": the network was cut between node {account.node} and node {account.neighbor}"
    )
    if account.detail == "from the subscriber":
        return (
            f"until {seconds(account.time_us)} no message of node {goal} could reach the nodes that had it{where_cut}"
        )
    no_path = f"no path of working nodes led from node {start_node} to node {goal}"
    return f"from {seconds(from_us)} on {no_path}{where_cut}"


# Subscriptions, publications, and their times


def _explain_empty_workload(scenario: Any, subscriptions: Subscriptions, publications: Publications) -> Iterator[str]:
    item_types = {type(item) for item in scenario.workload}
    if workload.Subscribe not in item_types and not len(subscriptions.node):
        yield "The workload has no subscriptions."
    if workload.Publish not in item_types and not len(publications.node):
        yield "The workload has no publications."
    begun_items = [i for i in scenario.workload if isinstance(i, workload.Publish) and i.start_s < scenario.duration_s]
    if (
        begun_items
        and not len(publications.node)
        and not any(action.kind == actions.PUBLISH for action in _expand_workload(scenario))
    ):
        item = begun_items[0]
        if isinstance(item.what, Readings):
            why_empty = "no reading has a time between start_s and the end"
        elif item.stagger:
            why_empty = "with stagger, the first time is after the end"
        else:
            why_empty = "stop_s equals start_s"
        yield f"Nothing is published: {why_empty} ({_describe_contents(item)}){more(len(begun_items))}."


def _expand_workload(scenario: Any) -> list[actions.Action]:
    nodes, duration_us = tuple(sorted(scenario.topology)), round(scenario.duration_s * 1e6)
    return workload.expand(scenario.workload, nodes, duration_us, scenario.seed)


def _describe_contents(item: Any) -> str:
    if isinstance(item.what, str):
        return item.what
    return "readings that were measured" if isinstance(item.what, Readings) else "readings of a sensor field"


def _explain_late_items(scenario: Any) -> Iterator[str]:
    for cls, noun in ((workload.Subscribe, "A subscription"), (workload.Publish, "A publication")):
        late_items = [i for i in scenario.workload if isinstance(i, cls) and i.start_s >= scenario.duration_s]
        if late_items:
            end_clause = f"the run ends at {scenario.duration_s:g} s"
            contents = _describe_contents(late_items[0])
            yield f"{noun} ({contents}) starts at {late_items[0].start_s:g} s, and {end_clause}{more(len(late_items))}."


def _explain_missed_actions(scenario: Any, rows: Columns) -> Iterator[str]:
    outages_by_node = down_times(rows)
    if not outages_by_node:
        return
    actions = _expand_workload(scenario)
    for action_kind, verb in _VERBS.items():
        missed_actions = [
            action
            for action in actions
            if action.kind == action_kind
            and any(
                failed_us <= action.time_us < recovered_us
                for failed_us, recovered_us in outages_by_node.get(action.node, ())
            )
        ]
        if missed_actions:
            action = missed_actions[0]
            yield (
                f"Node {action.node} was down at {seconds(action.time_us)}, when it was to {verb} "
                f"{_describe_contents(action.item)}{more(len(missed_actions))}."
            )


def _explain_times(
    rows: Columns,
    subscriptions: Subscriptions,
    publications: Publications,
    samples: list[np.ndarray],
    is_any_expected: bool,
) -> Iterator[str]:
    """Yield sentences on subscriptions that were not active when matching publications were made.

    Such publications were made before or after the subscription, or while the subscriber's node was down.

    ``samples[i][j]``: how many samples of a publication with text j match a subscription with text i.
    ``is_any_expected``: whether the run had expected readings. If so, subscriptions with deliveries are left out,
    because publications that were made before a subscription can reach it if they are retained.
    """
    is_delivered = (
        find_last((subscriptions.node, subscriptions.number), tuple(rows.columns("delivered", "node", "value"))) >= 0
    )
    is_delivered &= is_any_expected
    subscription_intervals = active_intervals(subscriptions, rows)
    by_kind: dict[str, list[str]] = {"late": [], "early": [], "between": [], "down": []}
    for sample_counts, subscriptions_of_text in zip(
        samples, split_rows(subscriptions.text, len(subscriptions.texts)), strict=True
    ):
        matching_times_us = publications.time_us[sample_counts[publications.text] > 0]
        undelivered = subscriptions_of_text[~is_delivered[subscriptions_of_text]]
        for subscription_index in undelivered.tolist() if len(matching_times_us) else ():
            own_intervals = slice(
                *np.searchsorted(
                    subscription_intervals.subscription, (subscription_index, subscription_index + 1)
                ).tolist()
            )
            up = np.searchsorted(
                matching_times_us,
                (subscription_intervals.first_us[own_intervals], subscription_intervals.last_us[own_intervals]),
            )
            reason_kind, sentence = _compare_times(
                subscriptions, subscription_index, matching_times_us, int((up[1] - up[0]).sum())
            )
            if reason_kind:
                by_kind[reason_kind].append(sentence)
    yield from (f"{same_reason[0]}{more(len(same_reason))}." for same_reason in by_kind.values() if same_reason)


def _compare_times(subscriptions: Subscriptions, index: int, times_us: np.ndarray, up_count: int) -> tuple[str, str]:
    """Return (kind, sentence) on why a subscription missed matching publications; ("", "") if it missed none.

    ``index``: the subscription's index. ``times_us``: when the matching publications were made, ascending.
    ``up_count``: how many of them were made while the subscription was active and its node was up. Kinds:

    late      the subscription began after the last publication
    early     the subscription ended before the first publication
    between   the subscription began and ended between two publications
    down      the subscriber's node was down when some publications were made
    """
    node, subscription_text = subscriptions.node[index], subscriptions.texts[subscriptions.text[index]]
    first_us, last_us = int(subscriptions.first_us[index]), int(subscriptions.last_us[index])
    first_index, end_index = np.searchsorted(times_us, (first_us, last_us)).tolist()
    subject_clause = f"Node {node} subscribed to {subscription_text}"
    if first_index == len(times_us):
        last_time = seconds(times_us[-1])
        return (
            "late",
            f"{subject_clause} at {seconds(first_us)}, after the last publication that matches, at {last_time}",
        )
    if end_index == 0:
        first_time = seconds(times_us[0])
        end_clause = f"Node {node}'s subscription to {subscription_text} ended at {seconds(last_us)}"
        return "early", f"{end_clause}, before the first publication that matches, at {first_time}"
    if first_index == end_index:
        period_text = f"from {seconds(first_us)} to {seconds(last_us)}"
        return "between", f"{subject_clause} {period_text}, when nothing that matches was published"
    active_count = end_index - first_index
    if up_count < active_count:
        missed_count = f"{active_count - up_count:,} of the {active_count:,} publications that match"
        return "down", f"Node {node}, which subscribed to {subscription_text}, was down when {missed_count} were made"
    return "", ""


# Attributes that do not match


def _explain_mismatches(
    scenario: Any, subscriptions: Subscriptions, publications: Publications, samples: list[np.ndarray]
) -> Iterator[str]:
    if not len(publications.node):
        return
    unmatched_texts = [
        subscription
        for subscription, sample_counts in zip(subscriptions.texts, samples, strict=True)
        if not sample_counts.any()
    ]
    for subscription in unmatched_texts[:_MOST_UNMATCHED]:
        yield f"No publication matches {subscription}: {mismatch(scenario.protocol, subscription, publications.texts)}."
    if len(unmatched_texts) > _MOST_UNMATCHED:
        yield f"Nor does any publication match {len(unmatched_texts) - _MOST_UNMATCHED:,} other subscriptions."


def mismatch(protocol: Protocol, subscription: str, texts: list[str]) -> str:
    """Return a clause on why none of the publications ``texts`` matches a subscription.

    The clause names an attribute of the subscription that no publication satisfies, or else a constraint of a
    publication that the subscription does not meet. In all other cases, each attribute is satisfied by some
    publication, but no publication satisfies all of them, and the clause states this.
    """
    matching_rule = matching_of(protocol)
    data_texts = [_describe_data(text) for text in texts] if protocol.allows_constrained_data else texts
    for attribute in parse(subscription):
        if attribute.operator != IS and not any(
            matching_rule.is_match(to_text((attribute,)), text) for text in data_texts
        ):
            return _explain_unmet_attribute(protocol, attribute, texts)
    if protocol.allows_constrained_data:
        unmet_constraints = [_find_unmet_constraint(subscription, text) for text in texts]
        if all(unmet_constraints):
            return f"the subscription has no IS attribute that meets {unmet_constraints[0]} of a publication"
    return "each of its attributes is met, but never all of them by one publication"


def _describe_data(publication: str) -> str:
    """Return the text of a publication without its constraints: only the attributes with the operator IS."""
    return to_text([attribute for attribute in parse(publication) if attribute.operator == IS])


def _find_unmet_constraint(subscription: str, publication: str) -> str:
    """Return the text of a publication's first constraint that no IS attribute of the subscription meets, or ""."""
    attributes = parse(subscription)
    for attribute in parse(publication):
        if not one_way_match((attribute,), attributes):
            return to_text((attribute,))
    return ""


def _explain_unmet_attribute(protocol: Protocol, attribute: Attribute, texts: list[str]) -> str:
    shown_attribute = to_text((attribute,))
    published_attributes = [
        candidate
        for text in texts
        for candidate in parse(text)
        if candidate.key == attribute.key and candidate.operator == IS
    ]
    if not published_attributes:
        return f"no publication has the key of {shown_attribute}"
    if (
        attribute.key == TOPIC
        and attribute.operator == EQ
        and _is_pattern(attribute.value)
        and _compares_bytes(protocol)
    ):
        protocol_name = type(protocol).public_class().__name__
        return (
            f"{shown_attribute} is a pattern, and {protocol_name} does not support patterns: "
            "it compares topics byte by byte"
        )
    if isinstance(attribute.value, int):
        lowest, highest = (to_text((choose_end(published_attributes, key=_get_value),)) for choose_end in (min, max))
        range_text = lowest if lowest == highest else f"from {lowest} to {highest}"
        return f"{shown_attribute} fails; published: {range_text}"
    published_values = {attribute.value for attribute in published_attributes}
    return f"{shown_attribute} fails; published: {to_text((published_attributes[0],))}{more(len(published_values))}"


def _get_value(attribute: Attribute) -> Any:
    return attribute.value


def _is_pattern(topic: bytes) -> bool:
    return b"+" in topic or b"#" in topic


def _compares_bytes(protocol: Protocol) -> bool:
    return type(protocol).matching_samples is Protocol.matching_samples


# Paths and losses


def _explain_missing_paths(expectations: Expected) -> Iterator[str]:
    subscriptions, cut_off = expectations.subscriptions, take_rows(expectations.pairs, expectations.pairs.hops < 0)
    if len(cut_off.publisher):
        node_pairs = {*zip(cut_off.publisher.tolist(), cut_off.subscriber.tolist(), strict=True)}
        yield (
            f"No path leads from node {cut_off.publisher[0]}, which publishes, to node {cut_off.subscriber[0]}, which "
            f"subscribes to {subscriptions.texts[subscriptions.text[cut_off.subscription[0]]]}{more(len(node_pairs))}; "
            f"publications of node {cut_off.publisher[0]} are not expected there."
        )


def _explain_losses(metrics: Any) -> Iterator[str]:
    """Yield sentences on the share of receptions that failed and of frames that were given up.

    ``metrics``: the metrics of the run. A share below 5 % is not reported.
    """
    if not metrics["transmissions"]:
        yield "No frame was sent."
    loss_count, reception_count = metrics["lost"], metrics["receptions"]
    possible_count = loss_count + reception_count
    if loss_count and loss_count >= _REPORTED_SHARE * possible_count:
        reasons = _list_reasons(metrics, "lost_")
        yield f"{loss_count / possible_count:.0%} of {possible_count:,.0f} receptions failed: {reasons}."
    sent_count = metrics["transmissions"]
    given_up = sum(metrics[name] for name in metrics.index if name.startswith("given_up_"))
    if given_up and given_up >= _REPORTED_SHARE * (given_up + sent_count):
        reasons = _list_reasons(metrics, "given_up_")
        yield f"{given_up:,.0f} of {given_up + sent_count:,.0f} frames were given up before they were sent: {reasons}."


def _list_reasons(metrics: Any, prefix: str) -> str:
    counts = {name.removeprefix(prefix): metrics[name] for name in metrics.index if name.startswith(prefix)}
    return ", ".join(f"{counts[name]:,.0f} {name}" for name in sorted(counts, key=lambda name: -counts[name]))
