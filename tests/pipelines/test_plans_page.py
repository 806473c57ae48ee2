"""The examples of docs/PLANS.md are executed, in order, as one program."""

import re

import pytest

import workbench as wb
from tests.repository import REPOSITORY

PAGE = (REPOSITORY / "docs" / "PLANS.md").read_text(encoding="utf-8")


def test_the_examples_of_the_page_run():
    pytest.importorskip("optuna", reason="wb.plans.search needs optuna")
    pytest.importorskip("SALib", reason="wb.plans.sensitivity needs SALib")
    names = {}
    examples = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(examples) == 10
    for example in examples:
        exec(compile(example, example.strip().splitlines()[0], "exec"), names)


def test_the_page_names_every_plan():
    plans = {"grid", "points", "zipped", "seeds", "paired_seeds", "random", "latin_hypercube", "sobol"}
    chosen_by_results = {"adaptive", "sensitivity", "search"}
    assert plans | chosen_by_results <= set(re.findall(r"`(\w+)`", PAGE.replace("(", "`"))) & set(wb.plans.__all__)
