"""The player as one page that needs neither kernel nor network: its script is in it, and so are all columns."""

import html
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench.errors import ParameterError
from workbench.records import carriers, record_of
from workbench.records.record import to_text
from workbench.sim.run import Run
from workbench.views import caption, rich
from workbench.views.drawing import Drawing

LONGEST_SCENARIO = 20_000

_HEAD = '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'


def save_html(
    run: Any, path: str | Path, extra: Iterable[tuple[str, str, Any]] = (), event: tuple[int, int] | None = None
) -> Path:
    """Write the player, further figures and the metrics as one page; returns its path.

    ``extra``: (title, text, figure) in order, a figure being a Bokeh model or a `Drawing`. ``event``, an (origin,
    sequence), leaves out what is about other events. Raises ParameterError for any other figure or an event that is not
    in the run, ScenarioError if the run kept no trace.
    """
    path = Path(path)
    page = page_html(run, extra, event)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8")
    return path


def page_html(run: Any, extra: Iterable[tuple[str, str, Any]] = (), event: tuple[int, int] | None = None) -> str:
    """The page as text."""
    from workbench.views.player.dissections import told
    from workbench.views.player.embed import SMALL, name_of, part, player_html
    from workbench.views.player.parcel import pack
    from workbench.views.seeing import see

    sections = [(title, text, _checked(title, figure)) for title, text, figure in extra]
    head, drawn = _embedded([figure for _, _, figure in sections])
    head += _records(run, [figure for _, _, figure in sections])
    parcel = pack(see(run, event), told(run))
    parts = [player_html(parcel, name_of(parcel), level=SMALL)]
    parts.append(f"<noscript><p>The player needs JavaScript.</p>{rich.summary_html(run)}</noscript>")
    parts.append(f"<section><h2>Metrics</h2>{_metrics(run)}{_scenario(run)}</section>")
    for (title, text, _), figure in zip(sections, drawn, strict=True):
        said = f"<p>{html.escape(text)}</p>" if text else ""
        parts.append(f"<section><h2>{html.escape(title)}</h2>{said}{figure}</section>")
    parts.append(f"<footer>{html.escape(_footer(run))}</footer>")
    title = f"<title>{html.escape(caption.title(run))}</title><style>{part('page.css')}</style>"
    return f"{_HEAD}{title}{head}</head><body><main>{''.join(parts)}</main></body></html>\n"


def _checked(title: str, figure: Any) -> Any:
    from bokeh.model import Model

    if not isinstance(figure, (Drawing, Model)):
        raise ParameterError(
            f"save_html: the figure of {title!r} is a {type(figure).__name__}; it must be a Bokeh model or a Drawing"
        )
    return figure


def _embedded(figures: list[Any]) -> tuple[str, list[str]]:
    """What the page's head needs for some figures, and the HTML of each: BokehJS comes along if one is Bokeh's."""
    models = [figure for figure in figures if not isinstance(figure, Drawing)]
    if not models:
        return "", [_svg(figure) for figure in figures]
    from bokeh.embed import components
    from bokeh.resources import Resources

    script, divisions = components(models)
    rest = iter(divisions)
    drawn = [_svg(figure) if isinstance(figure, Drawing) else next(rest) for figure in figures]
    return Resources(mode="inline", components=["bokeh"]).render() + script, drawn


def _svg(figure: Drawing) -> str:
    """A figure without its record, which the page has in its head."""
    return replace(figure, record=None).to_svg()


def _records(run: Any, figures: list[Any]) -> str:
    """The records of the run and of what its figures show, each once, as elements for the page's head."""
    made: list[Mapping[str, Any]] = [record_of(run)] if isinstance(run, Run) else []
    made += [figure.record() for figure in figures if isinstance(figure, Drawing) and figure.record]
    return "".join(dict.fromkeys(carriers.script_element(to_text(record)) for record in made))


def _metrics(run: Any) -> str:
    """All metrics as a table."""
    rows = "".join(
        f"<tr><td>{html.escape(name)}</td><td>{rich.write(float(value))}</td></tr>"
        for name, value in run.metrics.items()
    )
    return f'<table class="metrics"><tbody>{rows}</tbody></table>'


def _scenario(run: Any) -> str:
    """The scenario as JSON, folded away; a long one (measured links) is left out."""
    to_json = getattr(run.scenario, "to_json", None)
    text = to_json() if to_json else ""
    if not text or len(text) > LONGEST_SCENARIO:
        return ""
    said = "The scenario: save it as scenario.json and run it again with <code>workbench run scenario.json</code>"
    return f"<details><summary>{said}</summary><pre>{html.escape(text)}</pre></details>"


def _footer(run: Any) -> str:
    from workbench import __version__

    digest = str(getattr(run.scenario, "hash", ""))
    parts = [f"workbench {__version__}", f"{run.engine} engine", f"scenario {digest}" if digest else ""]
    return " · ".join(part for part in parts if part)
