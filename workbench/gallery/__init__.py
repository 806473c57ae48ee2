"""A gallery of models: scenarios that each answer one question, ready to open in the lab.

    wb.gallery.names()                          ("interest", "detour", ...)
    wb.gallery.model("detour").scenario         a scenario like any other
    wb.lab(wb.gallery.model("detour").scenario)

Each model is a JSON file in this folder, numbered in the order of presentation. The lab shows all models with pictures.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from workbench.errors import ScenarioError
from workbench.protocols.protocol import Protocol
from workbench.sim.file_format import protocol_from_dict
from workbench.sim.scenario import Scenario
from workbench.suggestion import meant


class Model(NamedTuple):
    """A scenario of the gallery.

    title       a few words for its button
    question    the question that the scenario answers
    scenario    the scenario, with the protocol that the question is about
    beside      a second protocol to run on the same workload, for comparison; or None
    """

    title: str
    question: str
    scenario: Scenario
    beside: Protocol | None


@cache
def _find_files() -> dict[str, str]:
    """Return {name of a model: name of its file}, in the order of presentation."""
    paths = sorted(path.name for path in files(__package__).iterdir() if path.name.endswith(".json"))
    return {path.removesuffix(".json").partition("-")[2]: path for path in paths}


def names() -> tuple[str, ...]:
    """Return the names of the models, as `model` accepts them, in the order of presentation."""
    return tuple(_find_files())


@cache
def model(name: str) -> Model:
    """Return the model with this name. Raises ScenarioError for an unknown name."""
    if name not in _find_files():
        raise ScenarioError(
            f"the gallery has no model {name!r:.60}{meant(name, names())}; its models are {', '.join(names())}"
        )
    model_document = json.loads((files(__package__) / _find_files()[name]).read_text(encoding="utf-8"))
    beside = None if model_document["beside"] is None else protocol_from_dict(model_document["beside"])
    return Model(
        model_document["title"],
        model_document["question"],
        Scenario.from_json(json.dumps(model_document["scenario"])),
        beside,
    )
