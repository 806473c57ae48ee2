"""The file that a mote executes at its start.

The module ``board`` is this board's driver, a copy of a file of boards/.
"""

import board
from mote import Mote

board.run(Mote(board))
