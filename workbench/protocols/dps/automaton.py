"""State machine of one DPS link, as a table: a state and an input give the next state and the actions.

How to read it
    ``TABLE[state][input]`` is an `Entry`. The state changes first, then the actions are done in their order. "Never"
    stands where an input cannot come in a state, with the reason.

    `links.py` names the input, looks it up here and does the actions: the label of an action is the name of a method
    there. The fast twin reads the same table (`fast/links.py`), and docs/images/dps-links.svg is drawn from it
    (`views/automaton.py`).

How a link is muted
    The input LOOP is a message with the flag MUTE, or a message whose mesh id has the same owner as the lowest mesh id
    on this side of the link. Such an id reached both ends by another path, so the link closes a loop
    (`rules.loop_shown`). ``TABLE[ACTIVE][LOOP]`` leads to MUTED: the node forgets which interests it sent, and sends no
    interests and no publications from then on. Its acknowledgement of that message carries the flag MUTE, by which the
    other end mutes too. QUIET asks a muted link
    again now and then (NO_LOOP ends the muting), and NEEDED takes it into use when an active link has ended.

How every link ends
    In each state either a message is outstanding, which is answered or LOST, or QUIET sends one. So a neighbor that
    has gone is removed with its interests, even if its link is muted or not yet complete.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Self


class _Code(IntEnum):
    """A number with a label and a meaning, declared as ``NAME = "meaning"``; numbers count from 0."""

    meaning: str

    def __new__(cls, meaning: str) -> Self:
        member = int.__new__(cls, len(cls.__members__))
        member._value_ = len(cls.__members__)
        member.meaning = meaning
        return member

    @cached_property
    def label(self) -> str:
        """The name in small letters, as events and drawings show it."""
        return self.name.lower().replace("_", " ")


class State(_Code):
    """State of a link. The numbers and labels are those of `LinkSet` in a trace."""

    GONE = "there is no link"
    LINKING = "asked for; no answer yet"
    ACTIVE = "carries interests and publications"
    MUTED = "closes a loop: carries neither"
    UNMUTING = "taken into use again; no answer yet"
    UNLINKING = "its end is told; no answer yet"


class Input(_Code):
    """Input of a link: a message, a time, a request of the application."""

    ASKED = "the application, or the topology, asks for the link"
    END = "the application ends it, and no answer is outstanding"
    END_WAITS = "the application ends it, while an answer is outstanding"
    BEGUN = "a neighbor tells its interests as for the first time: it is new, has given the link up, or has restarted"
    RESTARTED = (
        "a neighbor acknowledges what it was told as if it were the first, or tells a change of what is not here any "
        "more"
    )
    UNMUTED = "a neighbor takes a muted link into use again (flag UNMUTE)"
    LOOP = "a message shows a loop, or that the link is muted at the other end (flag MUTE)"
    NO_LOOP = "the answer to what a muted link asked shows no loop any more"
    ANSWERED = "what was told last is acknowledged"
    UNLINKED = "a neighbor ends the link (flag UNLINK)"
    CHANGED = "what is asked for behind the other links may have changed"
    QUIET = "the link was silent for link_loss_s, or is muted and was silent for about as long, or for recheck_s"
    OVERDUE = "a message is not answered: it is time to repeat it"
    LOST = "a message is not answered, however often it was repeated"
    NEEDED = "an active link has ended, and this one is to take its place"


class Action(_Code):
    """Step of a node for a link: the method of `Links` with this name, behind an underscore."""

    TELL = "send the interests, as a change of what was sent last"
    TELL_CHANGES = "the same if they have changed; while an answer is outstanding, note that they may have"
    TELL_IN_FULL = "send all interests, as if none had been sent"
    TELL_NOTHING = (
        "send that nothing is asked for here, and the rest later: this asks only whether there is still a loop"
    )
    REPEAT = "send again what was not answered"
    SAY_END = "send that the link ends"
    END_LATER = "end the link as soon as no answer is outstanding"
    KEEP = "do not end the link after all"
    ANSWER_IN_FULL = "the acknowledgement of this message brings all interests"
    TELL_AGAINST_NOTHING = (
        "what is sent is a change of nothing, unless the neighbor was told something before it was given up"
    )
    FORGET_SENT = "the neighbor has nothing of what was sent: the next is sent in full"
    FORGET_TOLD = "forget what was sent; from now on it is told against nothing"
    FORGET_HEARD = "the interests of the neighbor are not asked for any more"
    FORGET_MUTED = "the same, unless the settings say count_muted"
    FORGET_REVISION = "any revision of the neighbor's is new"
    FORGET_MESH_ID = "any mesh id of the neighbor's is new"
    STOP_WAITING = "no answer is outstanding any more"
    SETTLE = "the same, and the time to the next sign of life begins"
    NEW_MESH_ID = "take a mesh id below all that were seen, so that the loop that was there is not seen again"
    SEND_RETAINED = "send what is retained and may meet the neighbor's interests"
    NOTE_REVISION = "note the last revision, so that what the neighbor is told next does not look old"
    REMOVE = "take the link out of the node's links, with the interests behind it"
    REPLACE = "take a muted link in its place, if there is one: NEEDED comes to that"
    ASK_LATER = "say that the link has ended; one that is wanted is asked for later"
    UPDATE = "tell all other neighbors at once what has changed"
    UPDATE_LATER = "tell all other neighbors after update_s what has changed"


# Names of their own: on Python 3.11 to look up State.ACTIVE takes five times as long as to compare it.
GONE, LINKING, ACTIVE, MUTED, UNMUTING, UNLINKING = State
(
    ASKED,
    END,
    END_WAITS,
    BEGUN,
    RESTARTED,
    UNMUTED,
    LOOP,
    NO_LOOP,
    ANSWERED,
    UNLINKED,
    CHANGED,
    QUIET,
    OVERDUE,
    LOST,
    NEEDED,
) = Input
# No input: a message or a tick that does not concern the state of a link (`rules.loop_shown`, `rules.after_tick`).
NOTHING = -1


@dataclass(frozen=True, slots=True)
class Entry:
    """The state after an input, the actions in their order, and why. Without a state the input never comes."""

    state: State | None
    does: tuple[Action, ...]
    why: str


def _to(state: State, actions: str, why: str) -> Entry:
    """Return an entry with the actions of these labels."""
    names = actions.upper().replace(" ", "_").split(",_") if actions else ()
    return Entry(state, tuple(Action[name] for name in names), why)


def _never(why: str) -> Entry:
    return Entry(None, (), why)


_TOLD_ANEW = "forget revision, forget mesh id, forget heard, forget sent, stop waiting"
_UNMUTED_HERE = "forget heard, forget sent, stop waiting"
_MUTED_NOW = "forget told, forget muted, settle"
_TOLD_AGAIN = "forget revision, forget mesh id, forget heard, stop waiting, tell in full"
_TAKEN_INTO_USE = "new mesh id, forget heard, stop waiting, tell in full"
_ENDED = "remove, ask later, update"
_GIVEN_UP = "note revision, remove, ask later, update later"

_NO_LINK = _never("there is no link that it could be about")
_KEPT = "there is a link; it is not ended after all"
_NOT_MUTED = _never("only a muted link is asked whether there is a loop")
_NOT_NEEDED = _never("only muted links take another's place")
_NOT_ACTIVE = _never("only over an active link it makes a difference: else what is told is told in full")
_WAITING = _never("its first message is answered before")
_OUTSTANDING = "first comes the answer that is outstanding"
_SILENT = _never("it waits for an answer, which is repeated or overdue before")
_ANEW = "the neighbor has nothing of ours: it is told everything, and what it told before is void"
_DEAF = "the neighbor has gone; its interests are not asked for any more"
_DEAF_AND_OLD = "the same; its mesh id may go round a loop, which an id below that one shows"

TABLE: dict[State, dict[Input, Entry]] = {
    GONE: {
        ASKED: _to(LINKING, "tell in full", "the first message brings all interests"),
        END: _NO_LINK,
        END_WAITS: _NO_LINK,
        BEGUN: _to(ACTIVE, "tell against nothing, answer in full", "a neighbor asks for a link, and has one"),
        RESTARTED: _NO_LINK,
        UNMUTED: _never("what comes without a link is BEGUN first"),
        LOOP: _never("what comes without a link is BEGUN first"),
        NO_LOOP: _NO_LINK,
        ANSWERED: _never("the answer is dropped: unknown"),
        UNLINKED: _never("the message is dropped: unknown"),
        CHANGED: _NO_LINK,
        QUIET: _NO_LINK,
        OVERDUE: _NO_LINK,
        LOST: _NO_LINK,
        NEEDED: _NO_LINK,
    },
    LINKING: {
        ASKED: _to(LINKING, "keep", _KEPT),
        END: _WAITING,
        END_WAITS: _to(LINKING, "end later", _OUTSTANDING),
        BEGUN: _to(ACTIVE, _TOLD_ANEW + ", answer in full", _ANEW),
        RESTARTED: _NOT_ACTIVE,
        UNMUTED: _to(ACTIVE, _UNMUTED_HERE + ", answer in full", "both sides begin anew"),
        LOOP: _to(MUTED, _MUTED_NOW, "the neighbor is joined elsewhere: the new link would close a loop"),
        NO_LOOP: _NOT_MUTED,
        ANSWERED: _to(ACTIVE, "settle, send retained", "the neighbor has our interests, and we may have its"),
        UNLINKED: _to(GONE, _ENDED, _DEAF),
        CHANGED: _to(LINKING, "tell changes", "a change says nothing to who may not have what it changes"),
        QUIET: _SILENT,
        OVERDUE: _to(LINKING, "repeat", "it may be lost, or its answer"),
        LOST: _to(GONE, _GIVEN_UP, _DEAF),
        NEEDED: _NOT_NEEDED,
    },
    ACTIVE: {
        ASKED: _to(ACTIVE, "keep", _KEPT),
        END: _to(UNLINKING, "say end, replace", "it ends when the neighbor answers; a muted link takes its place"),
        END_WAITS: _to(ACTIVE, "end later", _OUTSTANDING),
        BEGUN: _to(ACTIVE, _TOLD_ANEW + ", answer in full", _ANEW),
        RESTARTED: _to(ACTIVE, _TOLD_AGAIN, "one side takes a change for all interests, or for none"),
        UNMUTED: _to(ACTIVE, _UNMUTED_HERE + ", answer in full", "it was muted at the other end only"),
        LOOP: _to(MUTED, _MUTED_NOW, "interests and publications would go round: the link over which it shows waits"),
        NO_LOOP: _NOT_MUTED,
        ANSWERED: _to(ACTIVE, "settle", "the next change may be told"),
        UNLINKED: _to(GONE, "remove, replace, ask later, update", _DEAF),
        CHANGED: _to(ACTIVE, "tell changes", "the neighbor is told what is asked for behind it"),
        QUIET: _to(ACTIVE, "tell", "a sign of life, which wants its answer"),
        OVERDUE: _to(ACTIVE, "repeat", "it may be lost, or its answer"),
        LOST: _to(GONE, "note revision, remove, new mesh id, replace, ask later, update later", _DEAF_AND_OLD),
        NEEDED: _NOT_NEEDED,
    },
    MUTED: {
        ASKED: _to(MUTED, "keep", _KEPT),
        END: _to(UNLINKING, "say end", "it ends when the neighbor answers"),
        END_WAITS: _to(MUTED, "end later", _OUTSTANDING),
        BEGUN: _to(ACTIVE, _TOLD_ANEW + ", answer in full", "the neighbor asks again, and there is no loop any more"),
        RESTARTED: _NOT_ACTIVE,
        UNMUTED: _to(UNMUTING, _TAKEN_INTO_USE + ", answer in full", "the neighbor needs it, and both sides tell all"),
        LOOP: _to(MUTED, _MUTED_NOW, "the answer shows that there is still a loop"),
        NO_LOOP: _to(ACTIVE, "forget heard", "the ids that showed a loop were late, or the loop has been cut"),
        ANSWERED: _to(MUTED, "settle", "it waits until it is asked again"),
        UNLINKED: _to(GONE, _ENDED, _DEAF),
        CHANGED: _to(MUTED, "", "a muted link is told nothing"),
        QUIET: _to(MUTED, "forget heard, forget revision, tell nothing", "is there still a loop, and a neighbor?"),
        OVERDUE: _to(MUTED, "repeat", "it may be lost, or its answer"),
        LOST: _to(GONE, _GIVEN_UP, _DEAF),
        NEEDED: _to(UNMUTING, "forget revision, " + _TAKEN_INTO_USE, "the mesh may be in parts; this link joins them"),
    },
    UNMUTING: {
        ASKED: _to(UNMUTING, "keep", _KEPT),
        END: _WAITING,
        END_WAITS: _to(UNMUTING, "end later", _OUTSTANDING),
        BEGUN: _to(ACTIVE, _TOLD_ANEW + ", answer in full", _ANEW),
        RESTARTED: _NOT_ACTIVE,
        UNMUTED: _to(UNMUTING, "", "both sides need it, or this is the neighbor's answer in kind"),
        LOOP: _to(UNMUTING, "", "ids on their way are from before"),
        NO_LOOP: _NOT_MUTED,
        ANSWERED: _to(ACTIVE, "settle, send retained", "the neighbor has our interests"),
        UNLINKED: _to(GONE, _ENDED, _DEAF),
        CHANGED: _to(UNMUTING, "tell changes", "a change says nothing to who may not have what it changes"),
        QUIET: _SILENT,
        OVERDUE: _to(UNMUTING, "repeat", "it may be lost, or its answer"),
        LOST: _to(GONE, _GIVEN_UP, _DEAF),
        NEEDED: _NOT_NEEDED,
    },
    UNLINKING: {
        ASKED: _to(UNLINKING, "keep", "it ends all the same: that has been told"),
        END: _SILENT,
        END_WAITS: _to(UNLINKING, "", "it ends already"),
        BEGUN: _to(ACTIVE, _TOLD_ANEW + ", end later, answer in full", "the neighbor has restarted: it is told again"),
        RESTARTED: _NOT_ACTIVE,
        UNMUTED: _to(
            ACTIVE, _UNMUTED_HERE + ", end later, answer in full", "the neighbor begins anew: it is told again"
        ),
        LOOP: _to(UNLINKING, "", "it ends anyway"),
        NO_LOOP: _NOT_MUTED,
        ANSWERED: _to(GONE, _ENDED, "the neighbor has heard of the end"),
        UNLINKED: _to(GONE, _ENDED, "both sides have ended it"),
        CHANGED: _to(UNLINKING, "", "it ends anyway"),
        QUIET: _SILENT,
        OVERDUE: _to(UNLINKING, "say end", "it may be lost, or its answer"),
        LOST: _to(GONE, _GIVEN_UP, "the neighbor has gone itself"),
        NEEDED: _NOT_NEEDED,
    },
}
