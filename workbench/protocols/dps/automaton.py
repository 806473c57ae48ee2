"""State machine of one DPS link, as a table: a state and an input give the next state and the actions.

How to read it
    ``TABLE[state][input]`` is an `Entry`. The state changes first, then the actions are done in their order. An entry
    whose next state is None marks an input that cannot occur in this state; its reason explains why.

    `links.py` determines the input, looks the entry up and does the actions. Each action is a private method there,
    named after the action. The fast engine reads the same table (`fast/links.py`), and docs/images/dps-links.svg is
    drawn from it (`views/automaton.py`).

How a link is muted
    Two kinds of messages give the input LOOP. One has the flag MUTE. The other has a mesh id whose owner, the node that
    created it, has also created the lowest mesh id on this side of the link. So both ends are connected to the owner by
    another path, and the link closes a loop (`rules.classify_loop`). ``TABLE[ACTIVE][LOOP]`` leads to MUTED: the node
    forgets which interests it sent, and from then on sends neither interests nor publications. Its acknowledgement of
    that message carries the flag MUTE, so the other end mutes the link too. After some time without messages, the input
    QUIET rechecks a muted link; if the loop is gone, the input NO_LOOP ends the muting. The input NEEDED unmutes a link
    when an active link has ended.

How every link ends
    In each state, either a message is outstanding, or the input QUIET sends a message after a time. The message is
    answered, or the input LOST ends the link. So a dead neighbor is removed with its interests, even if its link is
    muted or not yet complete.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Self


class _Code(IntEnum):
    """Base class of State, Input and Action: enumerations with numbers from 0, and a ``meaning`` for each member."""

    meaning: str

    def __new__(cls, meaning: str) -> Self:
        member = int.__new__(cls, len(cls.__members__))
        member._value_ = len(cls.__members__)
        member.meaning = meaning
        return member

    @cached_property
    def label(self) -> str:
        """The member's name in lower case, with spaces, for events and drawings."""
        return self.name.lower().replace("_", " ")


class State(_Code):
    """State of a link. The event `LinkSet` reports each change, with the number and the label of the new state."""

    GONE = "the link does not exist"
    LINKING = "requested; no answer yet"
    ACTIVE = "carries interests and publications"
    MUTED = "closes a loop: carries neither"
    UNMUTING = "unmuting is requested; no answer yet"
    UNLINKING = "its end is announced; no answer yet"


class Input(_Code):
    """Input of a link's state machine: a message, a timeout, or a request of the application."""

    ASKED = "the application, or the choice of neighbors, requests the link"
    END = "the application ends it, and no answer is outstanding"
    END_WAITS = "the application ends it, while an answer is outstanding"
    BEGUN = "a neighbor sends its interests as for the first time: it is new, gave the link up, or restarted"
    RESTARTED = (
        "a neighbor acknowledges a message as if it were the first, or sends a change of interests that are not known "
        "here"
    )
    UNMUTED = "a neighbor unmutes the link (flag UNMUTE)"
    LOOP = "a message shows a loop, or that the link is muted at the other end (flag MUTE)"
    NO_LOOP = "the answer to a recheck of a muted link shows no loop any more"
    ANSWERED = "the last message is acknowledged"
    UNLINKED = "a neighbor ends the link (flag UNLINK)"
    CHANGED = "the interests behind the other links may have changed"
    QUIET = "the link was silent for link_loss_s; a muted link for about as long, or for recheck_s"
    OVERDUE = "a message is unanswered: it is time to repeat it"
    LOST = "a message is unanswered after the last retry"
    NEEDED = "an active link has ended, and this muted link is to replace it"


class Action(_Code):
    """Action of a link's state machine; `Links` has a method for each action, such as `_send_all` for SEND_ALL."""

    SEND_CHANGE = "send the interests, as a change of those sent last"
    SEND_IF_CHANGED = "send the change, if there is one; while an answer is outstanding, note that there may be one"
    SEND_ALL = "send all interests, as if none had been sent"
    SEND_PROBE = "send empty interests, and the real ones later: this checks only whether there is still a loop"
    REPEAT = "send the unanswered message again"
    SEND_UNLINK = "send that the link ends"
    END_LATER = "end the link as soon as no answer is outstanding"
    CANCEL_END = "do not end the link after all"
    ANSWER_IN_FULL = "the acknowledgement of this message carries all interests"
    START_FROM_EMPTY = "send the next interests as a change of empty ones, unless the neighbor was given up before"
    FORGET_SENT = "the neighbor lost the interests that were sent: the next are sent in full"
    FORGET_OUTBOUND = "forget the interests that were sent; the next are a change of empty ones"
    FORGET_INBOUND = "drop the neighbor's interests"
    FORGET_MUTED = "drop the neighbor's interests, unless count_muted is set"
    FORGET_REVISION = "accept any revision of the neighbor as new"
    FORGET_MESH_ID = "treat any mesh id of the neighbor as new"
    STOP_WAITING = "no answer is outstanding any more"
    SETTLE = "no answer is outstanding any more, and the time to the next keep-alive starts"
    NEW_MESH_ID = "take a mesh id below all seen ones, so that the former loop is not detected again"
    SEND_RETAINED = "send the retained publications that may match the neighbor's interests"
    NOTE_REVISION = "note the last revision, so that the next message to the neighbor does not look old"
    REMOVE = "remove the link, with the interests behind it"
    REPLACE = "unmute a muted link in its place, if there is one, by the input NEEDED"
    REPORT_END = "report that the link has ended; a wanted link is requested again later"
    UPDATE = "send changed interests to all other neighbors at once"
    UPDATE_LATER = "send changed interests to all other neighbors after update_s"


# Module-level names: on Python 3.11 the look-up of State.ACTIVE takes five times as long as a comparison with it.
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
# Instead of an input: a message or a tick does not change the link (`rules.classify_loop`, `rules.tick_input`).
NOTHING = -1


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the table for one state and input: the next state, the actions in order, and the reason for both.

    If ``state``, the next state, is None, the input cannot occur."""

    state: State | None
    actions: tuple[Action, ...]
    reason: str


def _entry(state: State, actions: str, reason: str) -> Entry:
    """Return an entry of the table.

    ``state``: the next state; ``actions``: labels of the actions, separated by commas; ``reason``: a text that explains
    this entry to readers of the table."""
    action_names = actions.upper().replace(" ", "_").split(",_") if actions else ()
    return Entry(state, tuple(Action[name] for name in action_names), reason)


def _impossible_entry(reason: str) -> Entry:
    return Entry(None, (), reason)


_START_AGAIN = "forget revision, forget mesh id, forget inbound, forget sent, stop waiting"
_UNMUTE_HERE = "forget inbound, forget sent, stop waiting"
_MUTE_HERE = "forget outbound, forget muted, settle"
_RESEND = "forget revision, forget mesh id, forget inbound, stop waiting, send all"
_UNMUTE_BOTH = "new mesh id, forget inbound, stop waiting, send all"
_END_LINK = "remove, report end, update"
_GIVE_UP = "note revision, remove, report end, update later"

_NO_LINK = _impossible_entry("without a link this input does not exist")
_END_CANCELED = "the link exists; it is not ended after all"
_NOT_MUTED = _impossible_entry("only muted links are rechecked for a loop")
_NOT_NEEDED = _impossible_entry("only muted links replace another link")
_NOT_ACTIVE = _impossible_entry(
    "a restart matters only over an active link; in other states all interests are sent anyway"
)
_FIRST_OUTSTANDING = _impossible_entry("the first message of this state is unanswered, so the input is END_WAITS")
_OUTSTANDING = "the outstanding answer comes first"
_OUTSTANDING_HERE = _impossible_entry("a message is outstanding, and is repeated before that")
_BOTH_START_AGAIN = "the neighbor lost all state: all is sent to it, and its former interests are void"
_NEIGHBOR_GONE = "the neighbor is gone, and its interests are dropped"
_NEIGHBOR_GONE_NEW_ID = "the neighbor is gone; a lower mesh id shows whether its id circulates in a loop"

TABLE: dict[State, dict[Input, Entry]] = {
    GONE: {
        ASKED: _entry(LINKING, "send all", "the first message carries all interests"),
        END: _NO_LINK,
        END_WAITS: _NO_LINK,
        BEGUN: _entry(ACTIVE, "start from empty, answer in full", "a neighbor requests a link, and gets it"),
        RESTARTED: _NO_LINK,
        UNMUTED: _impossible_entry("without a link, the input is BEGUN first"),
        LOOP: _impossible_entry("without a link, the input is BEGUN first"),
        NO_LOOP: _NO_LINK,
        ANSWERED: _impossible_entry("the answer is dropped: unknown"),
        UNLINKED: _impossible_entry("the message is dropped: unknown"),
        CHANGED: _NO_LINK,
        QUIET: _NO_LINK,
        OVERDUE: _NO_LINK,
        LOST: _NO_LINK,
        NEEDED: _NO_LINK,
    },
    LINKING: {
        ASKED: _entry(LINKING, "cancel end", _END_CANCELED),
        END: _FIRST_OUTSTANDING,
        END_WAITS: _entry(LINKING, "end later", _OUTSTANDING),
        BEGUN: _entry(ACTIVE, _START_AGAIN + ", answer in full", _BOTH_START_AGAIN),
        RESTARTED: _NOT_ACTIVE,
        UNMUTED: _entry(ACTIVE, _UNMUTE_HERE + ", answer in full", "both sides start again"),
        LOOP: _entry(MUTED, _MUTE_HERE, "another path connects the neighbor: the new link would close a loop"),
        NO_LOOP: _NOT_MUTED,
        ANSWERED: _entry(ACTIVE, "settle, send retained", "the neighbor has this node's interests, and sent its own"),
        UNLINKED: _entry(GONE, _END_LINK, _NEIGHBOR_GONE),
        CHANGED: _entry(LINKING, "send if changed", "a change is useless to a neighbor without the interests before"),
        QUIET: _OUTSTANDING_HERE,
        OVERDUE: _entry(LINKING, "repeat", "the message or its answer may be lost"),
        LOST: _entry(GONE, _GIVE_UP, _NEIGHBOR_GONE),
        NEEDED: _NOT_NEEDED,
    },
    ACTIVE: {
        ASKED: _entry(ACTIVE, "cancel end", _END_CANCELED),
        END: _entry(UNLINKING, "send unlink, replace", "it ends when the neighbor answers; a muted link replaces it"),
        END_WAITS: _entry(ACTIVE, "end later", _OUTSTANDING),
        BEGUN: _entry(ACTIVE, _START_AGAIN + ", answer in full", _BOTH_START_AGAIN),
        RESTARTED: _entry(ACTIVE, _RESEND, "one side took a change for all interests, or for empty ones"),
        UNMUTED: _entry(ACTIVE, _UNMUTE_HERE + ", answer in full", "it was muted only at the other end"),
        LOOP: _entry(MUTED, _MUTE_HERE, "interests and publications would circulate: this link is muted"),
        NO_LOOP: _NOT_MUTED,
        ANSWERED: _entry(ACTIVE, "settle", "the next change may be sent"),
        UNLINKED: _entry(GONE, "remove, replace, report end, update", _NEIGHBOR_GONE),
        CHANGED: _entry(ACTIVE, "send if changed", "the neighbor gets the interests behind the other links"),
        QUIET: _entry(ACTIVE, "send change", "a keep-alive, which must be answered"),
        OVERDUE: _entry(ACTIVE, "repeat", "the message or its answer may be lost"),
        LOST: _entry(
            GONE, "note revision, remove, new mesh id, replace, report end, update later", _NEIGHBOR_GONE_NEW_ID
        ),
        NEEDED: _NOT_NEEDED,
    },
    MUTED: {
        ASKED: _entry(MUTED, "cancel end", _END_CANCELED),
        END: _entry(UNLINKING, "send unlink", "it ends when the neighbor answers"),
        END_WAITS: _entry(MUTED, "end later", _OUTSTANDING),
        BEGUN: _entry(
            ACTIVE, _START_AGAIN + ", answer in full", "the neighbor requests the link again: the loop is gone"
        ),
        RESTARTED: _NOT_ACTIVE,
        UNMUTED: _entry(UNMUTING, _UNMUTE_BOTH + ", answer in full", "the neighbor needs it, and both sides send all"),
        LOOP: _entry(MUTED, _MUTE_HERE, "the answer shows that there is still a loop"),
        NO_LOOP: _entry(ACTIVE, "forget inbound", "the ids that showed a loop were late, or the loop is cut"),
        ANSWERED: _entry(MUTED, "settle", "it waits for the next recheck"),
        UNLINKED: _entry(GONE, _END_LINK, _NEIGHBOR_GONE),
        CHANGED: _entry(MUTED, "", "a muted link carries no interests"),
        QUIET: _entry(
            MUTED, "forget inbound, forget revision, send probe", "it is rechecked: loop or neighbor may be gone"
        ),
        OVERDUE: _entry(MUTED, "repeat", "the message or its answer may be lost"),
        LOST: _entry(GONE, _GIVE_UP, _NEIGHBOR_GONE),
        NEEDED: _entry(
            UNMUTING, "forget revision, " + _UNMUTE_BOTH, "the mesh may be in parts, which this link connects"
        ),
    },
    UNMUTING: {
        ASKED: _entry(UNMUTING, "cancel end", _END_CANCELED),
        END: _FIRST_OUTSTANDING,
        END_WAITS: _entry(UNMUTING, "end later", _OUTSTANDING),
        BEGUN: _entry(ACTIVE, _START_AGAIN + ", answer in full", _BOTH_START_AGAIN),
        RESTARTED: _NOT_ACTIVE,
        UNMUTED: _entry(UNMUTING, "", "both sides need the link, or this is the neighbor's answer"),
        LOOP: _entry(UNMUTING, "", "these ids were sent before the change"),
        NO_LOOP: _NOT_MUTED,
        ANSWERED: _entry(ACTIVE, "settle, send retained", "the neighbor has this node's interests"),
        UNLINKED: _entry(GONE, _END_LINK, _NEIGHBOR_GONE),
        CHANGED: _entry(UNMUTING, "send if changed", "a change is useless to a neighbor without the interests before"),
        QUIET: _OUTSTANDING_HERE,
        OVERDUE: _entry(UNMUTING, "repeat", "the message or its answer may be lost"),
        LOST: _entry(GONE, _GIVE_UP, _NEIGHBOR_GONE),
        NEEDED: _NOT_NEEDED,
    },
    UNLINKING: {
        ASKED: _entry(UNLINKING, "cancel end", "it ends all the same: the neighbor has been notified"),
        END: _OUTSTANDING_HERE,
        END_WAITS: _entry(UNLINKING, "", "it is ending already"),
        BEGUN: _entry(
            ACTIVE, _START_AGAIN + ", end later, answer in full", "the neighbor restarted; the end is repeated"
        ),
        RESTARTED: _NOT_ACTIVE,
        UNMUTED: _entry(
            ACTIVE, _UNMUTE_HERE + ", end later, answer in full", "the neighbor starts again; the end is repeated"
        ),
        LOOP: _entry(UNLINKING, "", "it ends anyway"),
        NO_LOOP: _NOT_MUTED,
        ANSWERED: _entry(GONE, _END_LINK, "the neighbor has confirmed the end"),
        UNLINKED: _entry(GONE, _END_LINK, "both sides have ended it"),
        CHANGED: _entry(UNLINKING, "", "it ends anyway"),
        QUIET: _OUTSTANDING_HERE,
        OVERDUE: _entry(UNLINKING, "send unlink", "the message or its answer may be lost"),
        LOST: _entry(GONE, _GIVE_UP, "the neighbor is gone"),
        NEEDED: _NOT_NEEDED,
    },
}
