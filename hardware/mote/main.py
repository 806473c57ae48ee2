"""The file that a mote starts. ``board`` is the driver of this board: a file of boards/, copied under that name."""

import board
from mote import Mote

board.run(Mote(board))
