"""The export of a run as one HTML page with the player.

The page contains the script and all data, so it needs neither a kernel nor a network connection.
"""

import html
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench.errors import ParameterError
from workbench.locations import local_path
from workbench.records import carriers, record_of
from workbench.records.record import to_text
from workbench.sim.run import Run
from workbench.views import caption, rich
from workbench.views.drawing import Drawing

LONGEST_SCENARIO = 20_000

HEAD = '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'


def save_html(
    run: Any, path: str | Path, extra: Iterable[tuple[str, str, Any]] = (), event: tuple[int, int] | None = None
) -> Path:
    """Write a page with the player, further figures and the metrics of a run, and return its path.

    ``extra``: a (title, text, figure) for each further section; a figure is a Bokeh model or a `Drawing`. ``event``:
    show only this event, given as (origin, sequence); None: all events. Raises ParameterError for any other kind of
    figure or an event that the run does not have, ScenarioError if the run has no trace.
    """
    path = local_path(path, "path")
    page = page_html(run, extra, event)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8")
    return path


def page_html(run: Any, extra: Iterable[tuple[str, str, Any]] = (), event: tuple[int, int] | None = None) -> str:
    """Return an HTML page with the player, further figures and the metrics of a run.

    ``extra``: a (title, text, figure) for each further section. ``event``: show only this event, given as (origin,
    sequence); None: all events.
    """
    from workbench.views.player.dissections import dissect_first
    from workbench.views.player.embed import SMALL, browser_file, name_of, player_html
    from workbench.views.player.payload import pack
    from workbench.views.seeing import see

    sections = [(title, text, _check_figure(title, figure)) for title, text, figure in extra]
    head_html, figures_html = _embed_figures([figure for _, _, figure in sections])
    head_html += _record_elements(run, [figure for _, _, figure in sections])
    payload = pack(see(run, event), dissect_first(run))
    # The address of the page gives the moment and the layers: #t=12.5&layers=links,gradients
    player = player_html(payload, name_of(payload), level=SMALL).replace("<div data-", "<div data-linked data-", 1)
    page_parts = [player]
    page_parts.append(f"<noscript><p>The player needs JavaScript.</p>{rich.summary_html(run)}</noscript>")
    page_parts.append(f"<section><h2>Metrics</h2>{_metrics_html(run)}{_scenario_html(run)}</section>")
    for (title, text, _), figure in zip(sections, figures_html, strict=True):
        paragraph = f"<p>{html.escape(text)}</p>" if text else ""
        page_parts.append(f"<section><h2>{html.escape(title)}</h2>{paragraph}{figure}</section>")
    page_parts.append(f"<footer>{html.escape(_footer_text(run))}</footer>")
    title_text = html.escape(caption.title(run))
    title = f"<title>{title_text}</title><style>{browser_file('page.css')}</style>"
    return (
        f"{HEAD}{title}{head_html}</head><body><main><h1>{title_text}</h1>{''.join(page_parts)}</main></body></html>\n"
    )


def _check_figure(title: str, figure: Any) -> Any:
    from bokeh.model import Model

    if not isinstance(figure, (Drawing, Model)):
        raise ParameterError(
            f"save_html: the figure of {title!r} is a {type(figure).__name__}; it must be a Bokeh model or a Drawing"
        )
    return figure


def _embed_figures(figures: list[Any]) -> tuple[str, list[str]]:
    """Return (HTML for the page's head, a list with the HTML of each figure).

    ``figures``: Bokeh models and `Drawing` objects. The head contains BokehJS if a figure is a Bokeh model.
    """
    models = [figure for figure in figures if not isinstance(figure, Drawing)]
    if not models:
        return "", [_svg_without_record(figure) for figure in figures]
    from bokeh.embed import components
    from bokeh.resources import Resources

    script, divisions = components(models)
    remaining_divisions = iter(divisions)
    figures_html = [
        _svg_without_record(figure) if isinstance(figure, Drawing) else next(remaining_divisions) for figure in figures
    ]
    return Resources(mode="inline", components=["bokeh"]).render() + script, figures_html


def _svg_without_record(figure: Drawing) -> str:
    """Return a figure as SVG without the record of how to reproduce it, which the page's head already contains."""
    return replace(figure, record=None).to_svg()


def _record_elements(run: Any, figures: list[Any]) -> str:
    """Return HTML elements for the page's head with the records of the run and of the figures.

    A record (`workbench.records`) states how to reproduce a result. Equal records appear once.
    """
    records: list[Mapping[str, Any]] = [record_of(run)] if isinstance(run, Run) else []
    records += [figure.record() for figure in figures if isinstance(figure, Drawing) and figure.record]
    return "".join(dict.fromkeys(carriers.script_element(to_text(record)) for record in records))


def _metrics_html(run: Any) -> str:
    rows = "".join(
        f"<tr><td>{html.escape(name)}</td><td>{rich.write(float(value))}</td></tr>"
        for name, value in run.metrics.items()
    )
    return f'<table class="metrics"><tbody>{rows}</tbody></table>'


def _scenario_html(run: Any) -> str:
    """Return the scenario as JSON in a collapsed section of the page.

    Return "" if the JSON is longer than `LONGEST_SCENARIO` characters, for example because it lists measured links.
    """
    to_json = getattr(run.scenario, "to_json", None)
    json_text = to_json() if to_json else ""
    if not json_text or len(json_text) > LONGEST_SCENARIO:
        return ""
    summary = "The scenario: save it as scenario.json and run it again with <code>workbench run scenario.json</code>"
    return f"<details><summary>{summary}</summary><pre>{html.escape(json_text)}</pre></details>"


def _footer_text(run: Any) -> str:
    from workbench import __version__

    digest = str(getattr(run.scenario, "hash", ""))
    facts = [f"workbench {__version__}", f"{run.engine} engine", f"scenario {digest}" if digest else ""]
    return " · ".join(fact for fact in facts if fact)
