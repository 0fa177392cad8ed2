"""What the runner tells a program (see ../README.md), and how a program answers."""

import os
import sys
import time
import traceback
import urllib.request

HOST = os.environ["DRIVER_HOST"]
SERVER_PORT = int(os.environ["DRIVER_SERVER_PORT"])
REMORA_PORT = int(os.environ["DRIVER_REMORA_PORT"])
USER = os.environ["DRIVER_USER"]
PASSWORD = os.environ["DRIVER_PASSWORD"]
SCHEMA = os.environ["DRIVER_SCHEMA"]
TLS = os.environ["DRIVER_TLS"] == "on"
TLS_CA = os.environ.get("DRIVER_TLS_CA")
TLS_WRONG_CA = os.environ.get("DRIVER_TLS_WRONG_CA")
ADMIN = os.environ["DRIVER_ADMIN"]
ACCOUNTS_PASSWORD = os.environ["DRIVER_ACCOUNTS_PASSWORD"]
ACCOUNTS = os.environ["DRIVER_ACCOUNTS"].split()
TABLES = os.environ["DRIVER_TABLES"].split()
PASSED_TABLES = os.environ["DRIVER_PASSED_TABLES"].split()
LARGE_LENGTHS = [int(length) for length in os.environ["DRIVER_LARGE_LENGTHS"].split()]
PORTS = {"direct": SERVER_PORT, "remora": REMORA_PORT}

with open(os.environ["DRIVER_READS"], encoding="utf-8") as file:
    READS = [line.strip() for line in file if line.strip()]

WARM_UP_S = 120
"""How long reads are repeated until memory answers as many of them as it can."""


class NotThere(Exception):
    """The driver, or the run, has no such thing."""


def hits():
    """Statements that Remora has answered from memory."""
    with urllib.request.urlopen(f"http://{ADMIN}/metrics", timeout=10) as page:
        for line in page.read().decode().splitlines():
            if line.startswith("remora_hits_total "):
                return int(float(line.split()[1]))
    raise AssertionError("Remora's metrics have no remora_hits_total")


def hits_since(before, expected):
    """Hits since then, at most as many as expected; they are counted after their answers were sent."""
    for _ in range(10):
        if hits() - before >= expected:
            break
        time.sleep(0.02)
    return min(hits() - before, expected)


def say(*words):
    print(*words, flush=True)


def check(name, function, *arguments):
    """Runs one check and reports it in one line."""
    if sys.argv[2:] and name not in sys.argv[2:]:
        return
    try:
        function(*arguments)
        say("ok", name)
    except NotThere as reason:
        say("none", name, reason)
    except Exception as error:
        if os.environ.get("DRIVER_TRACE"):
            traceback.print_exc()
        say("FAIL", name, type(error).__name__, " ".join(str(error).split())[:600])


def same(what, seen, expected):
    """The two must be equal; the message shows where they begin to differ."""
    if seen == expected:
        return
    seen, expected = repr(seen), repr(expected)
    at = next((i for i, (a, b) in enumerate(zip(seen, expected)) if a != b), min(len(seen), len(expected)))
    start = max(0, at - 40)
    raise AssertionError(f"{what}: through Remora …{seen[start:at + 400]} instead of …{expected[start:at + 400]}")
