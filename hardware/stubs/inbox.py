"""The inbox: datagrams that replay.py appends, and that the radio stubs of this folder return as received.

The modules in this folder take the place of a board's modules while the board's program is measured (board_memory.py).
They do nothing, except that they reserve the buffers that the board's modules reserve in MicroPython's heap.
"""

datagrams = []
