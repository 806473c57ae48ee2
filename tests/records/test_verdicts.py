"""Claims: verdicts, values, the hashes of their data, and the comparison of two executions."""

import json

import numpy as np
import pytest

import workbench as wb
from workbench.records import verdicts

SCENARIO = wb.Scenario(
    wb.topology.line(3),
    wb.Flooding(),
    [wb.publish(at=0, what="TEMP IS 26", start_s=1)],
    wb.Radio(loss="none"),
    duration_s=3,
)


@pytest.fixture(autouse=True)
def no_claims(monkeypatch):
    """Begin each test without claims."""
    monkeypatch.setattr(verdicts, "_claims", {})


def documents(*claims):
    """Return claims as they are after writing and reading claims.json."""
    return json.loads(json.dumps([claim.to_dict() for claim in claims]))


@pytest.mark.parametrize(
    ("holds", "verdict"),
    [(True, "reproduced"), (False, "not reproduced"), (None, "open"), (np.bool_(True), "reproduced")],
)
def test_the_verdict_of_a_claim_follows_from_whether_it_holds(holds, verdict):
    assert wb.claim("x", holds).verdict == verdict


def test_a_claim_is_displayed_with_its_value_interval_and_published_text():
    claim = wb.claim(
        "half the bytes", True, value=0.4812345, interval=(0.47, 0.49), published="<half>", figure="Figure 5"
    )
    assert str(claim) == "✓ reproduced: half the bytes; here 0.4812 [0.47, 0.49]; published: <half>; Figure 5"
    assert "published: &lt;half&gt;" in claim._repr_html_()
    assert "&lt;half&gt;" in wb.claims()._repr_html_()


def test_claims_keep_their_order_and_a_later_claim_replaces_one_with_the_same_text():
    for text, value in (("a", 1), ("b", 2), ("a", 3)):
        wb.claim(text, True, value=value)
    assert [(claim.text, claim.value) for claim in wb.claims()] == [("b", 2), ("a", 3)]
    assert list(wb.claims().to_pandas()["claim"]) == ["b", "a"]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: wb.claim("", True), "text is ''; it must be a sentence"),
        (lambda: wb.claim("x", "yes"), "holds is 'yes'; it must be True, False or None"),
        (lambda: wb.claim("x", True, value="?", interval=(2, 1)), "its low end comes first"),
        (lambda: wb.claim("x", True, interval=3), "interval is 3; it must be (low, high)"),
        (lambda: wb.claim("x", True, value=float("nan")), "value is nan; it must be finite"),
        (lambda: wb.claim("x", True, of=3), "`of` is a int; it must be a run"),
        (lambda: wb.claim("x", True, valu=3), "valu"),
    ],
)
def test_an_invalid_claim_is_refused_with_a_sentence(call, sentence):
    with pytest.raises(wb.ParameterError) as refusal:
        call()
    assert sentence in str(refusal.value)
    assert not wb.claims()


def test_the_evidence_of_a_run_a_sweep_and_a_table_are_hashes_of_their_results():
    run = SCENARIO.run()
    sweep = wb.Sweep(SCENARIO, {"seed": range(2)}).run(runner=wb.LocalRunner(), progress=False)
    frame = sweep.to_pandas()[["seed", "transmissions"]]
    evidence = wb.claim("x", True, of={"run": run, "others": [sweep, frame]}).evidence
    assert [item["of"] for item in evidence] == ["run", "sweep", "table"]
    assert evidence[0]["trace_hash"] == run.trace_hash
    record = sweep.plot("seed", "transmissions").record()
    assert evidence[1]["rows_digest"] == record["rows_digest"]
    assert verdicts.evidence_of(frame + 1)[0]["digest"] != evidence[2]["digest"]


def test_equal_claims_have_no_differences_and_last_digits_do_not_count():
    was = documents(wb.claim("x", True, value=0.1, interval=(0, 1), of=SCENARIO.run()))
    here = documents(wb.claim("x", True, value=0.1 * (1 + 1e-12), interval=(0, 1), of=SCENARIO.run()))
    assert verdicts.differences_of(was, here) == []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"value": 0.2}, "'x': value was 0.1, here 0.2"),
        ({"holds": False}, "'x': verdict was reproduced, here not reproduced"),
        ({"interval": (0, 2)}, "'x': interval was [0, 1], here [0, 2]"),
        ({"of": SCENARIO.replace(seed=9)}, "'x': evidence was run"),
        ({"text": "y"}, "the recorded claim 'x' is missing here"),
    ],
)
def test_each_difference_of_a_claim_is_a_sentence(change, sentence):
    was = {"text": "x", "holds": True, "value": 0.1, "interval": (0, 1), "of": SCENARIO}
    made = []
    for fields in (was, was | change):
        fields = fields | {"of": fields["of"].run()}
        made.append(documents(wb.claim(fields.pop("text"), fields.pop("holds"), **fields)))
    differences = verdicts.differences_of(*made)
    assert differences[0].startswith(sentence) and len(differences) == (2 if "text" in change else 1)


def test_only_the_verdict_of_a_claim_that_is_not_repeatable_is_compared():
    was = documents(wb.claim("x", True, value=1.0, is_repeatable=False))
    assert verdicts.differences_of(was, documents(wb.claim("x", True, value=2.0, is_repeatable=False))) == []
    assert len(verdicts.differences_of(was, documents(wb.claim("x", False, value=1.0, is_repeatable=False)))) == 1
