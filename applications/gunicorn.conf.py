"""How gunicorn serves the applications that are written in Python."""

import ctypes
import os
import signal

bind = os.environ["APP_LISTEN"]
workers = int(os.environ["APP_WORKERS"])
control_socket_disable = True
PR_SET_PDEATHSIG = 1


def post_fork(server, worker):
    # A worker would notice only after seconds that its master was killed.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
