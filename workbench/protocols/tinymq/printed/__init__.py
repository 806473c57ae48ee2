"""TinyMQ with algorithms 3.1 and 3.2 as they are printed, which lose queries and send events in circles.

    wb.TinyMQ(literal=True), wb.PrintedTinyMQ()     the same protocol, and in a scenario file the same text

Theory of operation
    Overlay, keys, mapping, notifications and leases are TinyMQ's. How a query or an event is routed is printed
    (`algorithms.py`); nothing is handed over when keys change, and what comes back to a node is dropped (`node.py`).

Limits
    Shortcuts are part of the printed algorithms: ``shortcuts=False`` is refused. Key spaces have 16 bits at most. There
    is no fast twin.
"""

from workbench.errors import ParameterError
from workbench.protocols.tinymq import TinyMQ
from workbench.protocols.tinymq.printed.algorithms import WIDEST_KEY_SPACE
from workbench.protocols.tinymq.printed.node import PrintedTinyMQNode


class PrintedTinyMQ(TinyMQ):
    """TinyMQ as printed and its settings, which are TinyMQ's with ``literal=True``."""

    node = PrintedTinyMQNode
    why_not_fast = "algorithms 3.1 and 3.2 as printed are there to be watched, in small networks"
    is_printed = True

    @classmethod
    def public_class(cls):
        """In texts it is TinyMQ with ``literal=True``."""
        return TinyMQ

    def __init__(self, **settings):
        settings.setdefault("literal", True)
        TinyMQ.__init__(self, **settings)
        if self.key_bits > WIDEST_KEY_SPACE:
            raise ParameterError(
                "TinyMQ: key_bits is %d; with literal=True, which looks at every string, it must be at most %d"
                % (self.key_bits, WIDEST_KEY_SPACE)
            )
        if not self.shortcuts:
            raise ParameterError(
                "TinyMQ: shortcuts is False and literal True; the printed algorithms have shortcuts, so leave it True"
            )
