"""Charts: pictures for papers, which are interactive in a notebook with a kernel.

    description   series of points, and the plot area of a chart with its ranges and ticks
    static        functions that return a `Chart`: a `Drawing` that also contains its series
    figure        the same chart as a Bokeh figure
    living        the connection that replaces plot areas of the picture by Bokeh figures, while a kernel runs

A notebook shows the picture first, and keeps it in its file. If a kernel runs, `living` sends the series to the page,
where Bokeh draws the plot area; titles, legends and notes stay as they are, so nothing moves.
"""
