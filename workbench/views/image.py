"""Pictures in the outputs of notebooks: images that a script replaces by SVG elements.

A notebook that was received from others is not trusted: Jupyter removes SVG elements and scripts from its outputs, and
keeps images. So an output contains the SVG as an image. In a trusted notebook and in an exported page, the script
replaces the image by the SVG element, which has tooltips and follows the theme of the page.
"""

from __future__ import annotations

import base64
import html
from functools import cache
from pathlib import Path


def image_html(svg: str, description: str, width: float, height: float) -> str:
    """Return an <img> element with an SVG, followed by the script that replaces the image by the SVG element.

    svg: the SVG element with a style sheet for its colours, as `Drawing.to_html` returns it.
    description: text for readers that do not see the image.
    width, height: size of the image in px.
    """
    encoded_svg = base64.b64encode(svg.strip().encode()).decode()
    size_attributes = f'width="{width:g}" height="{height:g}" style="max-width:100%;height:auto"'
    alt = html.escape(" ".join(description.split()))
    image = f'<img {size_attributes} alt="{alt}" src="data:image/svg+xml;base64,{encoded_svg}">'
    return f"{image}<script>{_read_script()}</script>"


@cache
def _read_script() -> str:
    return Path(__file__).with_name("image.js").read_text(encoding="utf-8")
