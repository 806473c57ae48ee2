"""The player of a run: what the browser gets, and what it does with it.

columns film counters   the trace as arrays; a clock that slows down where frames are in the air; what was counted
parcel                  what is seen of a run (`views.seeing`) as one buffer of columns
dissections             frames with their bytes, for the table of messages
embed                   the player as HTML that stands by itself, in notebooks and pages
living                  a player that stays, and is fed runs; live: a run on motes while it goes on
browser/                the one ES module, on canvases, in parts that are joined: parcel, paint (marks), map, timeline
                        (with curves and lanes), words (inspector, messages), player; boot and wire bring it to life

It draws layers (`views.layers`), and knows no protocol.
"""
