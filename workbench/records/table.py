"""The record of a sweep's rows, for a chart that is drawn of them.

Besides what every record has, it has

    scenario, scenario_hash     the scenario that the sweep is over; of several sweeps the first one's
    design                      in words what was varied
    measure                     "module:name" of the function that measures besides; only if there is one
    rows, rows_digest           how many rows there are, and the digest of all of them
    results                     for each row 12 hex digits of its scenario's hash and its metrics; null for a failure
    drawn                       the columns that the chart shows, a value for each row
    points                      each row's whole scenario (`points_of`)

Of more than `MOST_POINTS` rows only their number and the digest of all are kept: the sweep's folder has their
scenarios.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

from workbench.records.record import plain_metrics, sealed, surroundings
from workbench.sim.file_format import protocol_from_dict

if TYPE_CHECKING:
    from workbench.sweeps.plan import Plan
    from workbench.sweeps.work import Row

MOST_POINTS = 10_000
Drawn = TypeVar("Drawn", bound=Any)  # a `Drawing`; views are right of here


def record_of_table(
    rows: Iterable[Row], plan: Plan, drawn: Iterable[str] = (), others: Iterable[tuple[Iterable[Row], Plan]] = ()
) -> dict[str, Any]:
    """The record of a sweep's rows, which are in the order of its plan. ``drawn``: the metrics that the chart shows.

    ``others``: rows of more sweeps with the same measure and their plans, for a chart of several.
    """
    from workbench.sweeps import user_code

    parts = [(list(some), of) for some, of in ((rows, plan), *others)]
    rows = [row for some, _ in parts for row in some]
    results = [digest_of(row.scenario, row.metrics) if row.error is None else None for row in rows]
    content = {
        "of": "sweep",
        "scenario": json.loads(plan.scenario.to_json()),
        "scenario_hash": plan.scenario.hash,
        "design": "; ".join(dict.fromkeys(of.design.text() for _, of in parts)),
        **({} if plan.measure is None else {"measure": user_code.name_of(plan.measure)}),
        "rows": len(rows),
        "rows_digest": hashlib.sha256(json.dumps(results).encode()).hexdigest()[:16],
    }
    protocols = [of.scenario.protocol for _, of in parts]
    if len(rows) <= MOST_POINTS:
        points = points_of([_document(row, of) for some, of in parts for row in some])
        metrics = [plain_metrics(row.metrics) for row in rows]
        content["drawn"] = {name: [one.get(name) for one in metrics] for name in drawn}
        content["results"] = results
        content["points"] = points
        protocols += [protocol_from_dict(one) for one in points["values"].get("protocol", ()) if one is not None]
    return sealed({**content, **surroundings(protocols)})


def _document(row: Row, plan: Plan) -> str:
    if row.error is not None:
        return ""
    # Rows that were found in a folder leave their scenarios there.
    return row.document or plan.scenario_of(row.number).to_json(indent=None)


def carrying(
    drawing: Drawn, rows: Sequence[Row], plan: Plan, *drawn: str, others: Sequence[tuple[Sequence[Row], Plan]] = ()
) -> Drawn:
    """The drawing of a sweep's chart, which from now on carries the record of its rows, and of other sweeps' rows."""
    drawing.record = cache(partial(record_of_table, rows, plan, drawn, others))
    return drawing


def digest_of(scenario: str, metrics: Mapping[str, float]) -> str:
    """12 hex digits of a scenario's hash and the metrics of its run."""
    text = json.dumps([scenario, plain_metrics(metrics)], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def points_of(documents: Sequence[str]) -> dict[str, Any]:
    """Scenarios that have most in common as {"values": {field: its different values}, "places": {field: which one}}.

    ``places`` has a number for each scenario, and only the fields that differ. None stands for a field that a scenario
    does not have; all fields of a document that is "" are None.
    """
    parsed = [json.loads(document) if document else {} for document in documents]
    names = sorted({name for one in parsed for name in one})
    values, places = {}, {}
    for name in names:
        known: dict[str, int] = {}
        texts = [json.dumps(one.get(name), sort_keys=True) for one in parsed]
        found = [known.setdefault(text, len(known)) for text in texts]
        values[name] = [json.loads(text) for text in known]
        if len(known) > 1:
            places[name] = found
    return {"values": values, "places": places}


def documents(points: Mapping[str, Any], number: int) -> Iterator[dict[str, Any] | None]:
    """The scenarios of `points_of`, as many as there were; None for one that there was not."""
    values, places = points["values"], points["places"]
    for which in range(number):
        chosen = {name: some[places[name][which] if name in places else 0] for name, some in values.items()}
        document = {name: value for name, value in chosen.items() if value is not None}
        yield document or None
