"""PUB-2-SUB+: TinyMQ's ancestor, in which every tree spans all nodes, and every node has a key in each of them.

Theory of operation
    The overlay, the mapping and the routing are TinyMQ's (`tinymq`), but that a node joins the tree of every root. So a
    message is in its tree wherever it starts, and no distances lead from one to another; with a single root the two
    are one and the same. A node keeps a key, a zone and children for each root, and tells all of its places in its
    infos: the cost that TinyMQ was made to save.

Limits
    Those of TinyMQ. With ``publish="own"`` an event goes to the tree of the nearest root.

Differs from the original in
    --   the original maps one dimension; here events have as many as in TinyMQ, by the same mapping, so that the two
         can be compared.
    --   queries are sent to all trees, as in TinyMQ.
    --   keys, repair, leases and notifications are TinyMQ's.

Reference
    D. Tran, C. Pham: A content-guided publish/subscribe mechanism for sensor networks without location information,
    Computer Communications 33(13), 2010.

Its node runs on a mote too.
"""

from workbench.protocols.tinymq import EVALUATIONS, PARAMETERS, TinyMQ
from workbench.protocols.tinymq.node import Pub2SubNode


class Pub2Sub(TinyMQ):
    """PUB-2-SUB+ and its settings, which are TinyMQ's: ``Pub2Sub(roots=(6, 9), key_bits=8)``."""

    node = Pub2SubNode
    fast = TinyMQ.fast
    presets = EVALUATIONS
    # The published algorithms are TinyMQ's.
    parameters = tuple([parameter for parameter in PARAMETERS if parameter.name != "literal"])
