"""The layers of gossip, which are those of flooding."""

from workbench.protocols.flooding.views.layers import layers

__all__ = ["layers"]
