"""The player as one page that needs neither kernel nor network: BokehJS is in it, and so are all columns."""

import base64
import html
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from workbench.errors import ParameterError
from workbench.views import caption, palette, rich
from workbench.views.drawing import Drawing

LONGEST_SCENARIO = 20_000

_STYLE = f"""
main {{ display: block; font: 14px/1.45 system-ui, 'DejaVu Sans', sans-serif; color: {palette.TEXT};
  margin: 20px auto; max-width: 1000px; padding: 0 10px; }}
h2 {{ font-size: 18px; margin: 30px 0 6px; }}
details {{ margin-top: 10px; font-size: 13px; }}
p {{ max-width: 44em; }}
/* One table that flows into columns: rows, not cells, are its boxes. */
.metrics, .metrics tbody {{ display: block; }}
.metrics tbody {{ columns: 3; column-gap: 40px; font-size: 13px; font-variant-numeric: tabular-nums; }}
.metrics tr {{ display: flex; justify-content: space-between; break-inside: avoid;
  border-bottom: 1px solid {palette.GRID}; }}
pre {{ font-size: 12px; overflow-x: auto; background: #F5F7F9; padding: 10px; }}
footer {{ color: {palette.FAINT_TEXT}; font-size: 12px; margin-top: 34px; }}
"""
_TEMPLATE = """
{% block preamble %}<style>{{ style }}</style>{% endblock %}
{% block contents %}
<main>
{{ embed(roots[0]) }}
<noscript>{{ picture }}<p>The player needs JavaScript; this is the end of the run.</p></noscript>
<section><h2>Metrics</h2>{{ metrics }}{{ scenario }}</section>
{% for section in sections %}
<section><h2>{{ section.title }}</h2>
{% if section.text %}<p>{{ section.text }}</p>{% endif %}
{% if section.root is none %}{{ section.drawing }}{% else %}{{ embed(roots[section.root]) }}{% endif %}</section>
{% endfor %}
<footer>{{ footer }}</footer>
</main>
{% endblock %}
"""


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
    from bokeh.embed import file_html
    from bokeh.resources import Resources

    from workbench.views.player.network import network_figure

    roots = [network_figure(run, event)]
    sections = [_section(title, text, figure, roots) for title, text, figure in extra]
    picture = base64.b64encode(rich.picture_png(run, 1) or b"").decode("ascii")
    values = {
        "style": _STYLE,
        "sections": sections,
        "picture": f'<img alt="The network at the end of the run" src="data:image/png;base64,{picture}">',
        "metrics": _metrics(run),
        "scenario": _scenario(run),
        "footer": html.escape(_footer(run)),
    }
    # Inline resources; Bokeh leaves out the components that no model of the page needs.
    return file_html(roots, Resources(mode="inline"), caption.title(run), template=_TEMPLATE, template_variables=values)


def _section(title: str, text: str, figure: Any, roots: list[Any]) -> dict[str, Any]:
    from bokeh.model import Model

    section: dict[str, Any] = {"title": html.escape(title), "text": html.escape(text), "root": None}
    if isinstance(figure, Drawing):
        section["drawing"] = figure.to_svg()
    elif isinstance(figure, Model):
        section["root"] = len(roots)
        roots.append(figure)
    else:
        raise ParameterError(
            f"save_html: the figure of {title!r} is a {type(figure).__name__}; it must be a Bokeh model or a Drawing"
        )
    return section


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
