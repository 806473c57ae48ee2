"""Claims: statements that a notebook checks, each with its verdict, value, interval and the data behind it.

    wb.claim("gossip sends twice the bytes of coding", 1.8 < ratio < 2.2, value=ratio, of=table)
    wb.claims()

A claim displays itself, so it is the last value of a cell, or an argument of ``display``. All claims of a Python
process are kept in the order in which they were made. ``workbench publish`` writes those of a notebook into
claims.json, and ``workbench publish --check`` compares them with those of another execution (`differences_of`).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from workbench.errors import ParameterError
from workbench.keywords import checked
from workbench.records.table import digest_of_rows
from workbench.sim.run import Run

if TYPE_CHECKING:
    import pandas as pd

VERDICTS = {True: "reproduced", False: "not reproduced", None: "open"}
MARKS = {"reproduced": "✓", "not reproduced": "✗", "open": "?"}
# Values may differ in the last digits between versions of numpy or scipy.
TOLERANCE = 1e-9
DIGITS = "%.9g"  # of numbers in a table whose digest is computed

_claims: dict[str, Claim] = {}


@dataclass(frozen=True)
class Claim:
    """A checked claim; `claim` describes the fields. ``evidence``: hashes of the runs, sweeps and tables behind it."""

    text: str
    verdict: str
    value: float | str | None = None
    interval: tuple[float, float] | None = None
    unit: str = ""
    published: str = ""
    figure: str = ""
    evidence: tuple[Mapping[str, Any], ...] = ()
    is_repeatable: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Return the claim as values of strict JSON, in the form of claims.json."""
        return {
            "claim": self.text,
            "verdict": self.verdict,
            "value": self.value,
            "interval": None if self.interval is None else list(self.interval),
            "unit": self.unit,
            "published": self.published,
            "figure": self.figure,
            "evidence": [dict(item) for item in self.evidence],
            "is_repeatable": self.is_repeatable,
        }

    @property
    def result(self) -> str:
        """The value with its unit and interval as text; "" without a value."""
        return format_result(self.value, self.unit, self.interval)

    def __str__(self) -> str:
        parts = [self.text]
        parts += [f"here {self.result}"] if self.result else []
        parts += [f"published: {self.published}"] if self.published else []
        parts += [self.figure] if self.figure else []
        return f"{MARKS[self.verdict]} {self.verdict}: {'; '.join(parts)}"

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<p><strong>{MARKS[self.verdict]} {self.verdict}</strong>{escape(str(self).partition(':')[2])}</p>"


def format_result(value: float | str | None, unit: str, interval: Sequence[float] | None) -> str:
    """Return a value with its unit and interval as text; "" without a value."""
    if value is None:
        return ""
    number = value if isinstance(value, str) else f"{value:.4g}"
    ends = "" if interval is None else f" [{interval[0]:.4g}, {interval[1]:.4g}]"
    return f"{number}{unit and ' '}{unit}{ends}"


class Claims(Sequence[Claim]):
    """A sequence of claims, which displays itself as a table in a notebook."""

    def __init__(self, claims: Sequence[Claim]) -> None:
        self._claims = tuple(claims)

    def __getitem__(self, index: Any) -> Any:
        return self._claims[index]

    def __len__(self) -> int:
        return len(self._claims)

    def to_pandas(self) -> pd.DataFrame:
        """Return a table with a row for each claim and the fields of claims.json as columns."""
        import pandas as pd

        return pd.DataFrame([claim.to_dict() for claim in self])

    def __repr__(self) -> str:
        return "\n".join(map(str, self)) or "no claims; wb.claim(text, holds) adds one"

    def _repr_html_(self) -> str:
        if not self._claims:
            return f"<p>{escape(repr(self))}</p>"
        header = "".join(
            f"<th style='text-align:left'>{name}</th>" for name in ("claim", "verdict", "here", "published", "figure")
        )
        rows = "".join(
            "<tr>"
            + "".join(
                f'<td style="text-align:left">{escape(cell)}</td>'
                for cell in (
                    claim.text,
                    f"{MARKS[claim.verdict]}\N{NO-BREAK SPACE}{claim.verdict}",
                    claim.result,
                    claim.published,
                    claim.figure,
                )
            )
            + "</tr>"
            for claim in self
        )
        return f"<table><thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table>"


@checked
def claim(
    text: str,
    holds: bool | None,
    *,
    value: float | str | None = None,
    interval: tuple[float, float] | None = None,
    unit: str = "",
    published: str = "",
    figure: str = "",
    of: Any = None,
    is_repeatable: bool = True,
) -> Claim:
    """Record a claim with its verdict, and return it; as the last value of a notebook's cell, it is displayed.

    text            the claim, as a sentence
    holds           True: reproduced; False: not reproduced; None: open, the data do not decide
    value           the number (or the word) that was obtained here
    interval        (low, high), the ends of the interval around the value, such as its confidence interval
    unit            unit of the value, such as "ms"
    published       the text or number that the examined publication gives for the claim
    figure          the figure or table of the publication that shows it, such as "Figure 4"
    of              the data behind the claim: a run, the table of a sweep, a DataFrame, or a list or mapping of these.
                    Their hashes are stored
    is_repeatable   False if the value depends on the machine or on the time, so that only the verdict is compared

    A claim with the text of an earlier claim replaces it. Raises ParameterError for an invalid value.
    """
    if not isinstance(text, str) or not text.strip():
        raise ParameterError(f"claim: text is {text!r}; it must be a sentence")
    if not isinstance(value, str) and value is not None:
        value = _parse_number("value", value)
    if interval is not None:
        low, high = (_parse_number("interval", end) for end in _parse_interval(interval))
        if low > high:
            raise ParameterError(f"claim: interval is ({low:g}, {high:g}); its low end comes first")
        interval = low, high
    made = Claim(
        text.strip(),
        VERDICTS[_parse_verdict(holds)],
        value,
        interval,
        str(unit),
        str(published),
        str(figure),
        evidence_of(of),
        bool(is_repeatable),
    )
    _claims.pop(made.text, None)
    _claims[made.text] = made
    return made


@checked
def claims() -> Claims:
    """Return all claims that were made in this process, in their order; a notebook displays them as a table."""
    return Claims(tuple(_claims.values()))


def _parse_verdict(holds: Any) -> bool | None:
    if holds is None or isinstance(holds, bool):
        return holds
    try:
        is_true = bool(holds.item())  # a number of numpy
    except (AttributeError, ValueError):
        raise ParameterError(f"claim: holds is {holds!r}; it must be True, False or None (open)") from None
    return is_true


def _parse_number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ParameterError(f"claim: {name} is {value!r}; it must consist of numbers") from None
    if not math.isfinite(number):
        raise ParameterError(f"claim: {name} is {number}; it must be finite, so leave it out and state holds=None")
    return number


def _parse_interval(interval: Any) -> tuple[Any, Any]:
    try:
        low, high = interval
    except (TypeError, ValueError):
        raise ParameterError(f"claim: interval is {interval!r}; it must be (low, high)") from None
    return low, high


# Evidence


def evidence_of(data: Any) -> tuple[dict[str, Any], ...]:
    """Return the hashes of runs, sweeps and tables as dictionaries; `claim` lists the accepted kinds of ``data``.

    "of" is "run", "sweep" or "table". A run has "scenario_hash" and, if it has a trace, "trace_hash". A sweep has
    "rows" and "rows_digest", as in the record of a sweep's chart. A table has "rows" and "digest".
    """
    return tuple(_describe_evidence(data))


def _describe_evidence(data: Any) -> Iterator[dict[str, Any]]:
    import pandas as pd

    from workbench.sweeps.table import SweepTable

    if data is None:
        return
    if isinstance(data, Run):
        yield {"of": "run", "scenario_hash": data.scenario.hash} | (
            {"trace_hash": data.trace_hash} if data.has_trace else {}
        )
    elif isinstance(data, SweepTable):
        yield {"of": "sweep", "rows": len(data.rows), "rows_digest": digest_of_rows(data.rows)}
    elif isinstance(data, (pd.DataFrame, pd.Series)):
        content = data.to_csv(float_format=DIGITS).encode()
        yield {"of": "table", "rows": len(data), "digest": hashlib.sha256(content).hexdigest()[:16]}
    elif isinstance(data, Mapping):
        for item in data.values():
            yield from _describe_evidence(item)
    elif isinstance(data, (list, tuple)):
        if data and all(isinstance(item, SweepTable) for item in data):
            rows = [row for item in data for row in item.rows]
            yield {"of": "sweep", "rows": len(rows), "rows_digest": digest_of_rows(rows)}
            return
        for item in data:
            yield from _describe_evidence(item)
    else:
        raise ParameterError(
            f"claim: `of` is a {type(data).__name__}; it must be a run, the table of a sweep, a DataFrame, or a list "
            "or mapping of these"
        )


# Comparison


def differences_of(recorded: Sequence[Mapping[str, Any]], current: Sequence[Mapping[str, Any]]) -> list[str]:
    """Compare the claims of two executions, as `Claim.to_dict` returns them; return a sentence for each difference.

    Numbers may differ by a share of `TOLERANCE`. Of a claim that is not repeatable, only the verdict is compared.
    """
    here = {str(item.get("claim")): item for item in current}
    sentences = []
    for was in recorded:
        text = str(was.get("claim"))
        now = here.pop(text, None)
        if now is None:
            sentences.append(f"the recorded claim {text!r} is missing here")
            continue
        for name in ("verdict", "value", "interval", "evidence"):
            if name != "verdict" and not was.get("is_repeatable", True):
                break
            if not _is_equal(was.get(name), now.get(name)):
                sentences.append(
                    f"{text!r}: {name} was {_format_value(was.get(name))}, here {_format_value(now.get(name))}"
                )
                break
    return sentences + [f"the claim {text!r} is missing in the record" for text in here]


def _is_equal(was: Any, now: Any) -> bool:
    if isinstance(was, float | int) and isinstance(now, float | int) and not isinstance(was, bool):
        return math.isclose(was, now, rel_tol=TOLERANCE, abs_tol=TOLERANCE**2)
    if isinstance(was, list) and isinstance(now, list):
        return len(was) == len(now) and all(map(_is_equal, was, now))
    return bool(was == now)


def _format_value(value: Any) -> str:
    if isinstance(value, list):
        if value and isinstance(value[0], Mapping):
            return ", ".join(_format_evidence(item) for item in value)
        return f"[{', '.join(map(_format_value, value))}]"
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _format_evidence(item: Mapping[str, Any]) -> str:
    digest = next((str(item[name]) for name in ("trace_hash", "rows_digest", "digest") if name in item), "")
    return f"{item.get('of')} {digest[:16] or str(item.get('scenario_hash'))[:16]}"
