"""The lab and its panels: compose a scenario, run it and watch it in a notebook, with the mouse.

Theory of operation
    The central value is the scenario. Each panel (`panel.py`) shows a part of the scenario and lets the user change
    that part. After a change the lab makes the next scenario, adds it to a history for undo and redo, saves it to disk,
    and runs it. Forms are generated from the tables of parameters of protocols, radio and topologies (`fields.py`).

    A panel is an ordinary widget with a ``value`` and works alone::

        network = wb.widgets.Network()
        network.value            a networkx graph
        network.observe(print, "value")
"""

from workbench.keywords import answer_for, checked
from workbench.widgets.attributes import Attributes
from workbench.widgets.compare import Compare
from workbench.widgets.filters import Filters
from workbench.widgets.network import Network
from workbench.widgets.protocol import ProtocolForm
from workbench.widgets.radio import Conditions, RadioForm
from workbench.widgets.run_panel import RunPanel
from workbench.widgets.sweep import SweepPanel
from workbench.widgets.workload import Workload

__all__ = [
    "Attributes",
    "Compare",
    "Conditions",
    "Filters",
    "Network",
    "ProtocolForm",
    "RadioForm",
    "RunPanel",
    "SweepPanel",
    "Workload",
]

for _panel in __all__:
    checked(globals()[_panel])
answer_for(__name__)
