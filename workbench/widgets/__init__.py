"""The lab and its parts: compose a scenario, run it, watch it, with the mouse, in a notebook.

Theory of operation
    One value is in the middle: the scenario. Each part (`part.py`) shows something of it and offers changes; the lab
    makes the next scenario of what is offered, keeps the list of them for undo and redo, writes it to disk, and runs
    it. Forms are made from the tables of parameters that protocols, radio and topologies have (`fields.py`).

    A part is an ordinary widget with a ``value``, and stands alone::

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

for _part in __all__:
    checked(globals()[_part])
answer_for(__name__)
