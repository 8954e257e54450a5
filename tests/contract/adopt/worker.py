"""A foreign program that exchanges JSON lines: `python worker.py FOLDER`."""

import json
import signal
import sys
from pathlib import Path

from ioa.testing.foreign_agent import FinalAnswer, ForeignAgent, Made, ProgressStep, Spent


def write(**said: object) -> None:
    """Write a line."""
    print(json.dumps(said), flush=True)


signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
order = json.loads(sys.stdin.readline())
for deed in ForeignAgent(Path(sys.argv[1])).play(order["task"], order["task_key"]):
    match deed:
        case ProgressStep(text):
            write(progress=text, fraction=0.5)
        case Spent(tokens, answer_tokens):
            write(spend={"tokens": tokens, "answer_tokens": answer_tokens})
        case Made(name, data):
            Path("made").write_bytes(data)
            write(artifact={"name": name, "path": "made"})
        case FinalAnswer(None):
            print("this is no JSON")
        case FinalAnswer(text):
            write(result=text)
