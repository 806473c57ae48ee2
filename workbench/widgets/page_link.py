"""The lab and the address of its page: a link opens a scenario at a moment, and a button makes such a link.

The link ends with ``#s=`` and the scenario (`records.link`), ``t=`` and the displayed time, ``layers=`` and the visible
layers. Files that the user drops on the lab arrive here too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import traitlets

from workbench.errors import WorkbenchError
from workbench.records.link import from_fragment, to_fragment
from workbench.sim.scenario import Scenario
from workbench.views import caption
from workbench.views.player.embed import browser_file
from workbench.views.player.once import LoadedOnce
from workbench.widgets.style_sheet import read_script


class PageLink(LoadedOnce):
    """A widget that opens the scenario in the page's address, and shows links to scenarios.

    open_scenario: a function that is called with the scenario in the page's address.
    open_file: a function that is called with the name and the content of a file that the user drops on the lab.
    show_error: a function that is called with a sentence if the address is invalid.
    """

    script = traitlets.Unicode(browser_file("elements.js") + read_script("page_link.js")).tag(sync=True)

    def __init__(
        self,
        open_scenario: Callable[[Scenario], Any],
        open_file: Callable[[str, bytes], Any],
        show_error: Callable[[str], Any],
    ) -> None:
        super().__init__()
        self._open_scenario, self._open_file, self._show_error = open_scenario, open_file, show_error
        self.on_msg(self._process_message)

    def offer(self, scenario: Scenario) -> None:
        """Show a link to a scenario, at the displayed moment. Raises DataError if the link would be too long."""
        self.send({"link": to_fragment(scenario)})

    def _process_message(self, _: Any, message: dict[str, Any], buffers: Sequence[Any]) -> None:
        if "dropped" in message and buffers:
            self._open_file(str(message["dropped"]), bytes(buffers[0]))
        elif "opened" in message:
            fragment = str(message["opened"])
            try:
                scenario = from_fragment(fragment)
            except WorkbenchError as error:
                self._show_error(f"the link in the address of this page cannot be opened: {error}")
                return
            self._open_scenario(scenario)
            self.send({"subject": caption.subject(scenario), "fragment": fragment})
