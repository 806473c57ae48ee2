"""Which event a number on the host link stands for, for a host: the contract's, the protocol's and the mote's own."""

from __future__ import annotations

from typing import Any

from workbench.motes import messages


def event_types(own: tuple[Any, ...]) -> dict[int, Any]:
    """Number on the link -> event, of the contract and of a protocol whose nodes have ``own`` as EVENTS."""
    return dict(enumerate(messages.EVENTS)) | dict(enumerate(own, messages.FIRST_OF_PROTOCOL))


def event_names(own: tuple[Any, ...]) -> dict[int, str]:
    """Number on the link -> name in the trace, the mote's own events included."""
    from workbench.sim.trace import event_name

    names = {number: event_name(cls) for number, cls in event_types(own).items()}
    return names | dict(enumerate(messages.OWN_EVENTS, messages.FIRST_OWN_EVENT))
