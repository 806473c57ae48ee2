"""PUB-2-SUB+: TinyMQ's predecessor, in which every tree spans all nodes, and every node has a key in each tree.

Theory of operation
    The overlay, the mapping and the routing are TinyMQ's (`tinymq`), except that a node joins the tree of every root.
    So a message is already in its tree wherever it starts, and no distances to other trees are needed. With a single
    root the two protocols are the same. A node keeps a key, a zone and children for each root, and its infos announce
    all of its positions. TinyMQ was made to save this cost.

Limits
    The limits of TinyMQ apply. With ``publish="own"`` an event goes to the tree of the nearest root.

Differs from the original in
    --   the original maps one dimension; here events have as many dimensions as in TinyMQ, with the same mapping, so
         that the two protocols can be compared.
    --   queries are sent to all trees, as in TinyMQ.
    --   keys, repair, leases and notifications are TinyMQ's.

Reference
    D. Tran, C. Pham: A content-guided publish/subscribe mechanism for sensor networks without location information,
    Computer Communications 33(13), 2010.

Its node runs on a mote too (MicroPython's subset of Python).
"""

from workbench.protocols.tinymq import EVALUATIONS, PARAMETERS, TinyMQ
from workbench.protocols.tinymq.node import Pub2SubNode


class Pub2Sub(TinyMQ):
    """The protocol PUB-2-SUB+, with the settings of TinyMQ: ``Pub2Sub(roots=(6, 9), key_bits=8)``."""

    node = Pub2SubNode
    fast = TinyMQ.fast
    presets = EVALUATIONS
    # ``literal`` selects TinyMQ's published algorithms, which PUB-2-SUB+ does not have.
    parameters = tuple([parameter for parameter in PARAMETERS if parameter.name != "literal"])
