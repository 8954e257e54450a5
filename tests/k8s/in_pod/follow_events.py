"""Follow a goal by HTTP until its end, as a browser does: who is torn from a gateway goes on behind the last event, at whichever.

Writes a line of JSON for each stream that was opened, for each event, and for each stream that was torn.
"""

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator

import httpx

PATH = f"/v1/goals/{os.environ['GOAL']}/events"


def write(**fields: object) -> None:
    """Write one line."""
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def events(lines: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Read server-sent events."""
    fields: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(": ")
        if line:
            fields[name] = value
        elif fields:
            if "event" in fields:
                yield fields["event"], int(fields.get("id", 0))
            fields = {}


def follow() -> None:
    """Follow to the end."""
    last = 0
    headers = {"Authorization": f"Bearer {os.environ['KEY']}"}
    while True:
        # Of a client of its own each time, so that each stream is a connection that the Service leads somewhere.
        try:
            with (
                httpx.Client(base_url=os.environ["GATEWAY"], headers=headers, timeout=30, trust_env=False) as http,
                http.stream("GET", PATH, headers={"Last-Event-ID": str(last)} if last else {}) as answer,
            ):
                write(opened=answer.status_code, after=last)
                for kind, seq in events(answer.iter_lines()) if answer.status_code == 200 else ():
                    write(event=kind, seq=seq)
                    if kind == "end":
                        return
                    last = seq
                write(torn="it ended")
        except httpx.TransportError as error:
            write(torn=type(error).__name__)
        time.sleep(0.2)


follow()
