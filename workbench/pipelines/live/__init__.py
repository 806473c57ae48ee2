"""Live readings: a source is captured on disk, and whoever follows the capture gets windows of it.

    stream = wb.pipelines.stream(scenario, out="out/live", pace=10)     or run.stream("out/live")
    windows = wb.pipelines.follow("out/live", every_s=10, late_s=2)     spark=session: the same on Spark
    windows.chart()                                                     a chart that follows
    windows.wait()
    windows.windows()                                                   start_s, end_s, region, key, count, mean, ...

Theory of operation
    source -> bridge -> capture -> followers. A bridge is a thread that writes what a source delivers into a *capture*:
    a folder of segments to which lines are appended. Followers read it from an offset, so they can be as slow as they
    like, be killed, and read it again. What was read and what came of it are written together: no gap, nothing twice.

Late readings
    A reading's event time (``time_s``) is older than its arrival, and readings overtake each other. So each line has
    ``newest_s``, the newest event time of the capture so far. A reading is late if its window ended ``late_s`` or more
    before that. This depends on nothing but the line, so every engine, however it cuts the lines into batches, and
    however often it was killed, finds the same readings late. A late reading is counted in the column ``late`` of the
    window that is newest when it arrives, and in no other column.

Parts
    readings    what a reading is
    capture     the folder: written, read, cut into segments
    sources     what delivers readings: a scenario, a run, a run on motes, an inbox, what a protocol brings; the
                readings in the rows of a trace, and the region of each node
    bridge      from a source into a capture
    windows     windows of a whole table, by a query, and of lines that come one by one
    output      the folder of windows: Parquet files and the state that belongs to them
    following   the handle of who follows, and the engine without Java
    spark       the same by Structured Streaming

Limits
    A capture is written through to the operating system after each chunk, to the disk at the end of a segment: a
    killed process loses nothing that it had captured, a power failure may. One line with an event time far in the
    future makes everything behind it late.
"""
