"""The life of one link of a DPS node, as a table: the state, what comes, the state after it, and what is done.

How to read it
    ``TABLE[state][what comes]`` is an `Entry`: the state after it, the actions in their order, and why. The state
    changes first, then the actions are done. "Never" stands where something cannot come in a state, with the reason.

    `links.py` finds out what has come, looks it up here and does the actions; the fast twin reads the same table
    (`fast/links.py`). docs/images/dps-links.svg is drawn from it (`views/automaton.py`).

How a link is muted
    LOOP comes with a message that carries the flag MUTE, or a mesh id of the owner of the lowest on this side of its
    link, which shows that its sender is joined elsewhere (`rules.loop_shown`). ``TABLE[ACTIVE][LOOP]`` leads to MUTED:
    the node forgets what it told the neighbor, and tells it no interests and sends it no publications from then on. Its
    acknowledgement of that message carries the flag MUTE, by which the other end mutes too. QUIET asks a muted link
    again now and then (NO_LOOP ends the muting), and NEEDED takes it into use when an active link has ended.

How every link ends
    In each state a message is outstanding, which is answered or LOST, or QUIET comes and sends one. So whoever has
    gone is forgotten, and what it asked for, be its link muted or half made.

This file is written in MicroPython's subset of Python.
"""

from collections import namedtuple

# States of a link. The numbers are those of `LinkSet` in a trace.
GONE, LINKING, ACTIVE, MUTED, UNMUTING, UNLINKING = range(6)
STATE_NAMES = ("gone", "linking", "active", "muted", "unmuting", "unlinking")
STATE_MEANINGS = (
    "there is no link",
    "asked for; no answer yet",
    "carries interests and publications",
    "closes a loop: carries neither",
    "taken into use again; no answer yet",
    "its end is told; no answer yet",
)

# What comes.
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
) = range(15)
INPUT_NAMES = (
    "asked",
    "end",
    "end waits",
    "begun",
    "restarted",
    "unmuted",
    "loop",
    "no loop",
    "answered",
    "unlinked",
    "changed",
    "quiet",
    "overdue",
    "lost",
    "needed",
)
INPUT_MEANINGS = (
    "the application, or the topology, asks for the link",
    "the application ends it, and no answer is outstanding",
    "the application ends it, while an answer is outstanding",
    "a neighbor tells its interests as for the first time: it is new, has given the link up, or has restarted",
    "a neighbor acknowledges what it was told as if it were the first, or tells a change of what is not here any more",
    "a neighbor takes a muted link into use again (flag UNMUTE)",
    "a message shows a loop, or that the link is muted at the other end (flag MUTE)",
    "the answer to what a muted link asked shows no loop any more",
    "what was told last is acknowledged",
    "a neighbor ends the link (flag UNLINK)",
    "what is asked for behind the other links may have changed",
    "the link was silent for link_loss_s, or is muted and was silent for about as long, or for recheck_s",
    "a message is not answered: it is time to repeat it",
    "a message is not answered, however often it was repeated",
    "an active link has ended, and this one is to take its place",
)
# What comes of no importance to a link, as `rules.loop_shown` and `rules.after_tick` say it.
NOTHING = -1

# What is done.
(
    TELL,
    TELL_CHANGES,
    TELL_IN_FULL,
    TELL_NOTHING,
    REPEAT,
    SAY_END,
    END_LATER,
    KEEP,
    ANSWER_IN_FULL,
    TELL_AGAINST_NOTHING,
    FORGET_SENT,
    FORGET_TOLD,
    FORGET_HEARD,
    FORGET_MUTED,
    FORGET_REVISION,
    FORGET_MESH_ID,
    STOP_WAITING,
    SETTLE,
    NEW_MESH_ID,
    SEND_RETAINED,
    NOTE_REVISION,
    REMOVE,
    REPLACE,
    ASK_LATER,
    UPDATE,
    UPDATE_LATER,
) = range(26)
ACTION_NAMES = (
    "tell",
    "tell changes",
    "tell in full",
    "tell nothing",
    "repeat",
    "say end",
    "end later",
    "keep",
    "answer in full",
    "tell against nothing",
    "forget sent",
    "forget told",
    "forget heard",
    "forget muted",
    "forget revision",
    "forget mesh id",
    "stop waiting",
    "settle",
    "new mesh id",
    "send retained",
    "note revision",
    "remove",
    "replace",
    "ask later",
    "update",
    "update later",
)
ACTION_MEANINGS = (
    "send the interests, as a change of what was sent last",
    "the same if they have changed; while an answer is outstanding, note that they may have",
    "send all interests, as if none had been sent",
    "send that nothing is asked for here, and the rest later: this asks only whether there is still a loop",
    "send again what was not answered",
    "send that the link ends",
    "end the link as soon as no answer is outstanding",
    "do not end the link after all",
    "the acknowledgement of this message brings all interests",
    "what is sent is a change of nothing, unless the neighbor was told something before it was given up",
    "the neighbor has nothing of what was sent: the next is sent in full",
    "forget what was sent; from now on it is told against nothing",
    "the interests of the neighbor are not asked for any more",
    "the same, unless the settings say count_muted",
    "any revision of the neighbor's is new",
    "any mesh id of the neighbor's is new",
    "no answer is outstanding any more",
    "the same, and the time to the next sign of life begins",
    "take a mesh id below all that were seen, so that the loop that was there is not seen again",
    "send what is retained and may meet the neighbor's interests",
    "note the last revision, so that what the neighbor is told next does not look old",
    "take the link out of the node's links, with the interests behind it",
    "take a muted link in its place, if there is one: NEEDED comes to that",
    "say that the link has ended; one that is wanted is asked for later",
    "tell all other neighbors at once what has changed",
    "tell all other neighbors after update_s what has changed",
)

Entry = namedtuple("Entry", ("state", "does", "why"))


def _never(why):
    return Entry(None, (), why)


_TOLD_ANEW = (FORGET_REVISION, FORGET_MESH_ID, FORGET_HEARD, FORGET_SENT, STOP_WAITING)
_UNMUTED_HERE = (FORGET_HEARD, FORGET_SENT, STOP_WAITING)
_MUTED_NOW = (FORGET_TOLD, FORGET_MUTED, SETTLE)
_TOLD_AGAIN = (FORGET_REVISION, FORGET_MESH_ID, FORGET_HEARD, STOP_WAITING, TELL_IN_FULL)
_TAKEN_INTO_USE = (NEW_MESH_ID, FORGET_HEARD, STOP_WAITING, TELL_IN_FULL)
_ENDED = (REMOVE, ASK_LATER, UPDATE)
_GIVEN_UP = (NOTE_REVISION, REMOVE, ASK_LATER, UPDATE_LATER)

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

TABLE = {
    GONE: {
        ASKED: Entry(LINKING, (TELL_IN_FULL,), "the first message brings all interests"),
        END: _NO_LINK,
        END_WAITS: _NO_LINK,
        BEGUN: Entry(ACTIVE, (TELL_AGAINST_NOTHING, ANSWER_IN_FULL), "a neighbor asks for a link, and has one"),
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
        ASKED: Entry(LINKING, (KEEP,), _KEPT),
        END: _WAITING,
        END_WAITS: Entry(LINKING, (END_LATER,), _OUTSTANDING),
        BEGUN: Entry(ACTIVE, _TOLD_ANEW + (ANSWER_IN_FULL,), _ANEW),
        RESTARTED: _NOT_ACTIVE,
        UNMUTED: Entry(ACTIVE, _UNMUTED_HERE + (ANSWER_IN_FULL,), "both sides begin anew"),
        LOOP: Entry(MUTED, _MUTED_NOW, "the neighbor is joined elsewhere: the new link would close a loop"),
        NO_LOOP: _NOT_MUTED,
        ANSWERED: Entry(ACTIVE, (SETTLE, SEND_RETAINED), "the neighbor has our interests, and we may have its"),
        UNLINKED: Entry(GONE, _ENDED, _DEAF),
        CHANGED: Entry(LINKING, (TELL_CHANGES,), "a change says nothing to who may not have what it changes"),
        QUIET: _SILENT,
        OVERDUE: Entry(LINKING, (REPEAT,), "it may be lost, or its answer"),
        LOST: Entry(GONE, _GIVEN_UP, _DEAF),
        NEEDED: _NOT_NEEDED,
    },
    ACTIVE: {
        ASKED: Entry(ACTIVE, (KEEP,), _KEPT),
        END: Entry(UNLINKING, (SAY_END, REPLACE), "it ends when the neighbor answers; a muted link takes its place"),
        END_WAITS: Entry(ACTIVE, (END_LATER,), _OUTSTANDING),
        BEGUN: Entry(ACTIVE, _TOLD_ANEW + (ANSWER_IN_FULL,), _ANEW),
        RESTARTED: Entry(ACTIVE, _TOLD_AGAIN, "one side takes a change for all interests, or for none"),
        UNMUTED: Entry(ACTIVE, _UNMUTED_HERE + (ANSWER_IN_FULL,), "it was muted at the other end only"),
        LOOP: Entry(MUTED, _MUTED_NOW, "interests and publications would go round: the link over which it shows waits"),
        NO_LOOP: _NOT_MUTED,
        ANSWERED: Entry(ACTIVE, (SETTLE,), "the next change may be told"),
        UNLINKED: Entry(GONE, (REMOVE, REPLACE, ASK_LATER, UPDATE), _DEAF),
        CHANGED: Entry(ACTIVE, (TELL_CHANGES,), "the neighbor is told what is asked for behind it"),
        QUIET: Entry(ACTIVE, (TELL,), "a sign of life, which wants its answer"),
        OVERDUE: Entry(ACTIVE, (REPEAT,), "it may be lost, or its answer"),
        LOST: Entry(GONE, (NOTE_REVISION, REMOVE, NEW_MESH_ID, REPLACE, ASK_LATER, UPDATE_LATER), _DEAF_AND_OLD),
        NEEDED: _NOT_NEEDED,
    },
    MUTED: {
        ASKED: Entry(MUTED, (KEEP,), _KEPT),
        END: Entry(UNLINKING, (SAY_END,), "it ends when the neighbor answers"),
        END_WAITS: Entry(MUTED, (END_LATER,), _OUTSTANDING),
        BEGUN: Entry(ACTIVE, _TOLD_ANEW + (ANSWER_IN_FULL,), "the neighbor asks again, and there is no loop any more"),
        RESTARTED: _NOT_ACTIVE,
        UNMUTED: Entry(UNMUTING, _TAKEN_INTO_USE + (ANSWER_IN_FULL,), "the neighbor needs it, and both sides tell all"),
        LOOP: Entry(MUTED, _MUTED_NOW, "the answer shows that there is still a loop"),
        NO_LOOP: Entry(ACTIVE, (FORGET_HEARD,), "the ids that showed a loop were late, or the loop has been cut"),
        ANSWERED: Entry(MUTED, (SETTLE,), "it waits until it is asked again"),
        UNLINKED: Entry(GONE, _ENDED, _DEAF),
        CHANGED: Entry(MUTED, (), "a muted link is told nothing"),
        QUIET: Entry(MUTED, (FORGET_HEARD, FORGET_REVISION, TELL_NOTHING), "is there still a loop, and a neighbor?"),
        OVERDUE: Entry(MUTED, (REPEAT,), "it may be lost, or its answer"),
        LOST: Entry(GONE, _GIVEN_UP, _DEAF),
        NEEDED: Entry(UNMUTING, (FORGET_REVISION,) + _TAKEN_INTO_USE, "the mesh may be in parts; this link joins them"),
    },
    UNMUTING: {
        ASKED: Entry(UNMUTING, (KEEP,), _KEPT),
        END: _WAITING,
        END_WAITS: Entry(UNMUTING, (END_LATER,), _OUTSTANDING),
        BEGUN: Entry(ACTIVE, _TOLD_ANEW + (ANSWER_IN_FULL,), _ANEW),
        RESTARTED: _NOT_ACTIVE,
        UNMUTED: Entry(UNMUTING, (), "both sides need it, or this is the neighbor's answer in kind"),
        LOOP: Entry(UNMUTING, (), "ids on their way are from before"),
        NO_LOOP: _NOT_MUTED,
        ANSWERED: Entry(ACTIVE, (SETTLE, SEND_RETAINED), "the neighbor has our interests"),
        UNLINKED: Entry(GONE, _ENDED, _DEAF),
        CHANGED: Entry(UNMUTING, (TELL_CHANGES,), "a change says nothing to who may not have what it changes"),
        QUIET: _SILENT,
        OVERDUE: Entry(UNMUTING, (REPEAT,), "it may be lost, or its answer"),
        LOST: Entry(GONE, _GIVEN_UP, _DEAF),
        NEEDED: _NOT_NEEDED,
    },
    UNLINKING: {
        ASKED: Entry(UNLINKING, (KEEP,), "it ends all the same: that has been told"),
        END: _SILENT,
        END_WAITS: Entry(UNLINKING, (), "it ends already"),
        BEGUN: Entry(ACTIVE, _TOLD_ANEW + (END_LATER, ANSWER_IN_FULL), "the neighbor has restarted: it is told again"),
        RESTARTED: _NOT_ACTIVE,
        UNMUTED: Entry(
            ACTIVE, _UNMUTED_HERE + (END_LATER, ANSWER_IN_FULL), "the neighbor begins anew: it is told again"
        ),
        LOOP: Entry(UNLINKING, (), "it ends anyway"),
        NO_LOOP: _NOT_MUTED,
        ANSWERED: Entry(GONE, _ENDED, "the neighbor has heard of the end"),
        UNLINKED: Entry(GONE, _ENDED, "both sides have ended it"),
        CHANGED: Entry(UNLINKING, (), "it ends anyway"),
        QUIET: _SILENT,
        OVERDUE: Entry(UNLINKING, (SAY_END,), "it may be lost, or its answer"),
        LOST: Entry(GONE, _GIVEN_UP, "the neighbor has gone itself"),
        NEEDED: _NOT_NEEDED,
    },
}
