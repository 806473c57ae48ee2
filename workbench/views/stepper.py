"""Drawings in a row, with a slider: for a class, and for pages without the player."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.errors import ParameterError
from workbench.views.drawing import Drawing


class Stepper:
    """Drawings to step through with a slider. Without a kernel (an exported page, a viewer) it is the last of them.

    ``description``: what the slider goes through. All drawings get the size of the largest, so that nothing jumps.
    """

    def __init__(self, drawings: Sequence[Drawing], names: Sequence[str], description: str) -> None:
        if not drawings or len(drawings) != len(names):
            raise ParameterError(f"a Stepper of {len(drawings)} drawings with {len(names)} names; as many, from 1 on")
        self.drawings = tuple(drawings)
        self.names = tuple(names)
        self.description = description
        width, height = max(one.width for one in drawings), max(one.height for one in drawings)
        for one in self.drawings:
            one.width, one.height = width, height

    def widget(self) -> Any:
        """The slider with the drawing below it, as one ipywidget."""
        import ipywidgets

        picture = ipywidgets.HTML(self.drawings[0].to_svg())
        slider = ipywidgets.SelectionSlider(
            options=list(zip(self.names, range(len(self.names)), strict=True)), description=self.description, value=0
        )
        slider.observe(lambda change: setattr(picture, "value", self.drawings[change["new"]].to_svg()), "value")
        return ipywidgets.VBox([slider, picture])

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        still, size = self.drawings[-1]._repr_mimebundle_()
        return {**still, **self.widget()._repr_mimebundle_(include=None, exclude=None)}, size
