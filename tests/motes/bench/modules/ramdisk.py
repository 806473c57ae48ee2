"""A small file system in memory, as that of a board, under MicroPython's port for Unix."""

import os

BLOCK_B = 512


class Memory:
    """A block device in memory."""

    def __init__(self, blocks):
        self.data = bytearray(BLOCK_B * blocks)

    def readblocks(self, number, buffer, offset=0):
        start = number * BLOCK_B + offset
        buffer[:] = self.data[start : start + len(buffer)]

    def writeblocks(self, number, buffer, offset=0):
        start = number * BLOCK_B + offset
        self.data[start : start + len(buffer)] = buffer

    def ioctl(self, operation, argument):
        if operation == 4:
            return len(self.data) // BLOCK_B
        if operation == 5:
            return BLOCK_B
        return 0


def mount(blocks):
    """Make a file system of ``blocks`` blocks, and change to it."""
    device = Memory(blocks)
    os.VfsLfs2.mkfs(device)
    os.mount(device, "/flash")
    os.chdir("/flash")
