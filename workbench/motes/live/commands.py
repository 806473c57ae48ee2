"""How a live run sends commands to its motes: without waiting, and without an error that could end the run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

from workbench.errors import EncodeError, LinkError
from workbench.motes import messages
from workbench.motes.crew import Crew
from workbench.motes.line import Answer
from workbench.motes.live.recorder import Notes


class Commands:
    """Commands to a crew's motes. A command to a mote that is lost is lost: its reading thread reports the mote.

    ``inbox`` receives answers as it receives what motes report, as (node, kind, value), for the conductor to read.
    """

    def __init__(self, crew: Crew, notes: Notes, inbox: SimpleQueue) -> None:
        self.crew, self.notes, self.inbox = crew, notes, inbox

    def post(self, node: int, kind: int, *fields: Any, **more: Any) -> None:
        """Send a command to a node's mote, as `Mote.post`; one that no frame can carry is noted as refused."""
        with suppress(LinkError):
            try:
                self.crew.motes[node].post(kind, *fields, **more)
            except EncodeError as error:
                self.notes.add(node, "refused", f"the host link cannot carry it: {error}")

    def hold(self, node: int, now: int) -> None:
        """Hold a mote's clock, so that nothing new begins on it."""
        self.post(node, messages.SET_TIME, now, messages.HELD)

    def release(self, node: int, now: int) -> None:
        """Let a mote's clock go on, and ask for it: what was known of it is forgotten."""
        mote = self.crew.motes[node]
        mote.clock.forget()
        self.post(node, messages.SET_TIME, now, messages.RUNNING)
        with suppress(LinkError):
            mote.ask_clock()

    def answered(self, node: int, kind: str, value: Any) -> None:
        """Hand an answer to the conductor; reading threads call this."""
        self.inbox.put((node, kind, value))

    def refusals(self, node: int) -> Callable[[Answer | LinkError], None]:
        """A ``then`` for `post` that hands on why the mote refused."""

        def note(answer: Answer | LinkError) -> None:
            if isinstance(answer, LinkError):
                self.answered(node, "refused", str(answer))

        return note
