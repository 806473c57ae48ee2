"""The player of a run: the data sent to the browser, and the browser code.

    playback                the clock, which slows down while frames are being sent
    counters                totals of a run over time, and counts of each node
    payload                 a run's layers (`views.seeing`) as one buffer of bytes
    dissections             frames with their bytes and fields, for the table of messages
    embed                   the player as self-contained HTML, in notebooks and pages
    living                  a player in which other runs can be shown
    once                    widgets whose script a page loads only once
    browser/                the ES module, which draws on canvases. Its files are joined: payload, paint (marks), map,
                            timeline (with curves and lanes), words (inspector, messages), player. The module is
                            started by boot or wire

The player draws layers (`views.layers`) and contains nothing specific to a protocol.
"""
