"""The panel of the workload, and the forms of its items.

panel           Workload, the list of items with the form of the selected item
form            the form of an item of any kind; content, movement, measured and numbers are its controls
table           the fields of each kind: units, ranges of sliders, reasons
new_items       defaults of new items, from the network and the duration in scenario_context
items, texts    copies of items at other nodes or times; an item as one line of text
overlay         paths and jammers on the map of the network
"""

from workbench.widgets.workload.panel import Workload
from workbench.widgets.workload.texts import line_of

__all__ = ["Workload", "line_of"]
