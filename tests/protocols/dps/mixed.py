"""A mesh of this project's nodes and of C nodes, which are our nodes with the mesh ids and id rules of C nodes.

A C node's mesh id is random to the last byte and has no mark. It is forwarded unchanged and compared as a whole."""

from contextlib import contextmanager

from workbench.protocols.dps import DPS, mesh_ids, node, rules
from workbench.protocols.dps.node import DPSNode

_NO_MARK = -1  # a mark that no id has
_CALLS = ("start", "receive", "wake", "link", "unlink", "link_quality", "subscribe", "unsubscribe", "publish")


@contextmanager
def plain_ids():
    """Compare complete ids, without hops or mark, until the end of the block."""
    patched = [(rules, "MARK", _NO_MARK), (node, "add_mark", lambda mesh_id: mesh_id)]
    before = [(module, name, getattr(module, name)) for module, name, _ in patched]
    try:
        for module, name, value in patched:
            setattr(module, name, value)
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


class PlainMeshIds(mesh_ids.MeshIds):
    """The mesh ids of a node that adds no mark to its own ids."""

    def choose_lower_id(self, random):
        self.own = min(self._lowest_seen, self.own) - random.bits() - 1
        self.note_seen(self.own)


class PlainNode(DPSNode):
    """A node that adds no mark to its mesh ids."""

    def __init__(self, address, settings, random):
        DPSNode.__init__(self, address, settings, random)
        links = self.links
        links.mesh_ids = links._sender._mesh_ids = PlainMeshIds(links.remotes)


def _plain(name):
    def call(self, *arguments, **keywords):
        with plain_ids():
            return getattr(DPSNode, name)(self, *arguments, **keywords)

    return call


for _name in _CALLS:
    setattr(PlainNode, _name, _plain(_name))


class MixedDPS(DPS):
    """DPS in which some nodes are C nodes: those in the set `plain` of the class or of a subclass."""

    plain = frozenset()

    def make_node(self, address, random):
        return (PlainNode if address in self.plain else DPSNode)(address, self, random)


def mixed(plain):
    """Return a protocol with these C nodes."""
    return type("MixedDPS", (MixedDPS,), {"plain": frozenset(plain)})()
