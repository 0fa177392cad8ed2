"""python main.py DRIVER [CHECK…]: the checks of one Python driver; see ../README.md."""

import sys

import adapters
from checks import Checks

if __name__ == "__main__":
    Checks(adapters.DRIVERS[sys.argv[1]]()).run()
