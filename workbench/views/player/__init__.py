"""The player of a run: what is drawn over time, and what the browser does with it.

intervals replay decoding columns   what was where, from when to when, out of the trace
film                                a clock that slows down where frames are in the air
network map timeline packing sizes  the Bokeh layout, and the columns that the browser gets
inspector counters                  what a node knew and had counted
legend skin                         what looks mean; what players of protocols have in common
live                                a run on motes while it goes on
player.js                           picks what is alive at a time and hands it to Bokeh

Limits
    It knows the events of gradients, reinforcements and decoding by their names, whatever protocol has them.
"""
