"""The SVGs in images of HTML, as the outputs of notebooks contain them."""

import base64
import re

_IMAGE = re.compile(r'<img [^>]*src="data:image/svg\+xml;base64,([^"]*)"[^>]*/?><script>.*?</script>', re.DOTALL)


def with_svgs(html):
    """Return HTML in which each image is replaced by its SVG, as the script after the image replaces it."""
    return _IMAGE.sub(lambda match: base64.b64decode(match[1]).decode(), html)
