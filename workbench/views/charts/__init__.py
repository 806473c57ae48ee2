"""Charts: pictures for papers, which come alive in a notebook.

    description   series of points, and the frame of a chart with its ranges and ticks
    static        functions that return a `Chart`: a `Drawing` that also contains its series
    figure        the same chart as a Bokeh figure
    living        the connection that puts the Bokeh figure in the place of the picture, while a kernel runs

A notebook shows the picture first, and keeps it in its file. If a kernel runs, `living` sends the series to the page,
where Bokeh draws them inside the frame of the picture: titles, legends and notes stay as they are, so nothing jumps.
"""
