"""The record of a sweep: data stored in a chart's file, from which the sweep's runs can be repeated.

Besides the fields of every record (`workbench.records`), such a record has

    scenario, scenario_hash     base scenario of the sweep, or of the first sweep if the chart has several
    design                      the varied parameters in words
    measure                     "module:name" of the sweep's own measure function, if it has one
    rows, rows_digest           number of rows, and a digest of all of them
    results                     a list with the digest of each row's scenario and metrics (`digest_of`); null for a
                                row that failed
    drawn                       the metrics that the chart shows: name -> a value for each row
    points                      each row's whole scenario (`points_of`)

With more than `MOST_POINTS` rows, the record has no results, drawn and points: the sweep's folder has them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

from workbench.records.record import add_digest, plain_metrics, surroundings
from workbench.sim.file_format import protocol_from_dict

if TYPE_CHECKING:
    from workbench.sweeps.plan import Plan
    from workbench.sweeps.work import Row

MOST_POINTS = 10_000
MOST_RECENT = 8  # sweeps whose points are kept for further charts
_recent_points: dict[tuple[str | None, ...], dict[str, Any]] = {}
Drawn = TypeVar("Drawn", bound=Any)  # a `Drawing`; this package must not import views


def record_of_table(
    rows: Iterable[Row], plan: Plan, drawn: Iterable[str] = (), others: Iterable[tuple[Iterable[Row], Plan]] = ()
) -> dict[str, Any]:
    """Return the record of a sweep for a chart, from which the sweep's runs can be repeated.

    ``rows`` are the sweep's results, ``plan`` has its scenarios in the same order. ``drawn`` names the metrics that the
    chart shows. ``others`` are (rows, plan) of further sweeps in the chart, with the same measure function.
    """
    from workbench.sweeps import user_code

    sweeps = [(list(sweep_rows), sweep_plan) for sweep_rows, sweep_plan in ((rows, plan), *others)]
    rows = [result_row for sweep_rows, _ in sweeps for result_row in sweep_rows]
    row_digests = _digests_of(rows)
    record_fields = {
        "of": "sweep",
        "scenario": json.loads(plan.scenario.to_json()),
        "scenario_hash": plan.scenario.hash,
        "design": "; ".join(dict.fromkeys(sweep_plan.design.text() for _, sweep_plan in sweeps)),
        **({} if plan.measure is None else {"measure": user_code.name_of(plan.measure)}),
        "rows": len(rows),
        "rows_digest": digest_of_rows(rows),
    }
    protocols = [sweep_plan.scenario.protocol for _, sweep_plan in sweeps]
    if len(rows) <= MOST_POINTS:
        stored_points = _points_of_rows(tuple(row_digests), sweeps)
        metrics = [plain_metrics(result_row.metrics) for result_row in rows]
        record_fields["drawn"] = {name: [values.get(name) for values in metrics] for name in drawn}
        record_fields["results"] = row_digests
        record_fields["points"] = stored_points
        protocols += [
            protocol_from_dict(values) for values in stored_points["values"].get("protocol", ()) if values is not None
        ]
    return add_digest({**record_fields, **surroundings(protocols)})


def _points_of_rows(digests: tuple[str | None, ...], sweeps: Sequence[tuple[list[Row], Plan]]) -> dict[str, Any]:
    """Return the scenarios of all rows of ``sweeps``, in the form of `points_of`.

    ``digests``: the digest of each row, None for a failed row, which has no scenario. Equal digests mean equal
    scenarios, so recent results are cached by ``digests``: charts of the same rows share them.
    """
    if digests not in _recent_points:
        documents_of_rows = [_get_document(row, plan) for sweep_rows, plan in sweeps for row in sweep_rows]
        while len(_recent_points) >= MOST_RECENT:
            del _recent_points[next(iter(_recent_points))]
        _recent_points[digests] = points_of(documents_of_rows)
    return _recent_points[digests]


def _get_document(row: Row, plan: Plan) -> str:
    if row.error is not None:
        return ""
    # Rows read from a folder do not load their scenarios.
    return row.document or plan.scenario_of(row.number).to_json(indent=None)


def attach_record(
    drawing: Drawn, rows: Sequence[Row], plan: Plan, *drawn: str, others: Sequence[tuple[Sequence[Row], Plan]] = ()
) -> Drawn:
    """Attach the record of a sweep, from which its runs can be repeated, to the drawing of a chart; return the drawing.

    ``rows`` are the sweep's results, ``plan`` has its scenarios in the same order. ``drawn`` names the metrics that the
    chart shows. ``others`` are (rows, plan) of further sweeps in the chart. The record is computed when first needed.
    """
    drawing.record = cache(partial(record_of_table, rows, plan, drawn, others))
    return drawing


def digest_of_rows(rows: Iterable[Row]) -> str:
    """Return a digest (16 hex digits) of a sweep's rows, with their scenarios and metrics, in their order."""
    return hashlib.sha256(json.dumps(_digests_of(rows)).encode()).hexdigest()[:16]


def _digests_of(rows: Iterable[Row]) -> list[str | None]:
    return [digest_of(row.scenario, row.metrics) if row.error is None else None for row in rows]


def digest_of(scenario: str, metrics: Mapping[str, float]) -> str:
    """Return a digest (12 hex digits) of a scenario's hash, ``scenario``, and the ``metrics`` of its run."""
    text = json.dumps([scenario, plain_metrics(metrics)], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def points_of(documents: Sequence[str]) -> dict[str, Any]:
    """Return scenarios, given as JSON texts, as a dictionary that stores each different value of a field once.

    ``["values"][field]`` lists the different values of a field. ``["places"][field][i]`` is the index of scenario i's
    value in that list; fields that are equal in all scenarios are left out there. None stands for a missing field. A
    document may be "" (an invalid scenario), and then all its fields are None. Example: seeds 1, 2, 1 are stored as
    {"values": {"seed": [1, 2]}, "places": {"seed": [0, 1, 0]}}.
    """
    scenarios = [json.loads(document) if document else {} for document in documents]
    field_names = sorted({name for scenario in scenarios for name in scenario})
    values, value_indices = {}, {}
    for name in field_names:
        index_of: dict[str, int] = {}
        value_texts = [json.dumps(scenario.get(name), sort_keys=True) for scenario in scenarios]
        scenario_indices = [index_of.setdefault(text, len(index_of)) for text in value_texts]
        values[name] = [json.loads(text) for text in index_of]
        if len(index_of) > 1:
            value_indices[name] = scenario_indices
    return {"values": values, "places": value_indices}


def documents(points: Mapping[str, Any], number: int) -> Iterator[dict[str, Any] | None]:
    """Yield the first ``number`` scenarios that `points_of` has stored in ``points``, as dicts.

    Yields None for an empty document, which stands for an invalid scenario.
    """
    values, value_indices = points["values"], points["places"]
    for index in range(number):
        fields = {
            name: field_values[value_indices[name][index] if name in value_indices else 0]
            for name, field_values in values.items()
        }
        document = {name: value for name, value in fields.items() if value is not None}
        yield document or None
