"""Live readings: a source is captured on disk, and followers of the capture compute windows of it.

    stream = wb.pipelines.stream(scenario, out="out/live", pace=10)     or run.stream("out/live")
    windows = wb.pipelines.follow("out/live", every_s=10, late_s=2)     spark=session: the same on Spark
    windows.plot()                                                      a chart that is updated
    windows.wait()
    windows.windows()                                                   start_s, end_s, region, key, count, mean, ...
    windows.late                                                        number of late readings in these windows

Theory of operation
    source -> bridge -> capture -> followers. A bridge is a thread that writes the readings of a source into a
    *capture*: a folder of segments to which lines are appended. A follower reads the capture at its own speed. It
    stores its offset together with its results. So a follower that was killed continues from there, and no reading is
    skipped or counted twice.

Late readings
    A reading's event time (``time_s``) is older than its arrival, and readings overtake each other. So each line has
    ``newest_s``, the newest event time of the capture so far. A reading is late if its window ended at ``newest_s`` -
    ``late_s`` or earlier. Lateness depends on nothing but the line, so every follower finds the same readings late,
    however it cuts the lines into batches and however often it was killed. A late reading is counted only in the column
    ``late`` of the window that contains ``newest_s``.

Parts
    readings    the fields of a reading
    capture     the folder: writing, reading, segments
    sources     sources of readings: a scenario, a run, a run on motes, an inbox, a subscription; the readings in the
                rows of a trace, and the region of each node
    bridge      the thread that writes a source's readings into a capture
    windows     computing windows: of a whole table by a query, and of lines that arrive one by one
    output      the folder of windows: Parquet files and the follower's state
    following   followers, and the computation of windows in this process, without Spark
    spark       the engine on Spark, by Structured Streaming
    connect     the engine with Spark Connect: workers compute windows of pieces, this process merges them

Limits
    Each chunk of readings is written to the operating system at once, and a segment is flushed to disk at its end. So a
    killed process loses no captured reading, but a power failure may lose some. One line with an event time far in the
    future makes all later lines late.
"""
