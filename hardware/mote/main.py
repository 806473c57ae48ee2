"""What a mote starts with. ``board`` is the driver of the board at hand: a file of boards/, under that name."""

import board
from mote import Mote

board.run(Mote(board))
