"""A server of MCP over stdin and stdout, as small as the protocol allows: `python mcp_worker.py FOLDER`."""

import base64
import json
import sys
import threading
from pathlib import Path
from typing import Any

from ioa.testing.foreign_agent import FinalAnswer, ForeignAgent, Made, ProgressStep

TOOL = {
    "name": "perform",
    "inputSchema": {"type": "object", "properties": {"task": {"type": "string"}}, "required": ["task"]},
}
ANSWERS: dict[str, object] = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "worker", "version": "1"},
    },
    "tools/list": {"tools": [TOOL]},
}
stopped: dict[object, threading.Event] = {}
writing = threading.Lock()


def tell(**said: object) -> None:
    """Write a message."""
    with writing:
        print(json.dumps({"jsonrpc": "2.0", **said}), flush=True)


def call(number: object, params: dict[str, Any], stop: threading.Event) -> None:
    """Do a task, in a thread."""
    content: list[dict[str, object]] = []
    meta = params.get("_meta", {})
    try:
        for deed in ForeignAgent(Path(sys.argv[1])).play(params["arguments"]["task"], meta["ioa/task_key"], stop.is_set):
            match deed:
                case ProgressStep(text):
                    told = {"progressToken": meta["progressToken"], "progress": 1, "total": 2, "message": text}
                    tell(method="notifications/progress", params=told)
                case Made(name, data):
                    resource = {"uri": f"file:///{name}", "blob": base64.b64encode(data).decode()}
                    content.append({"type": "resource", "resource": resource})
                case FinalAnswer(str(text)):
                    content.append({"type": "text", "text": text})
        tell(id=number, result={"content": content})
    except RuntimeError as error:
        tell(id=number, result={"content": [{"type": "text", "text": str(error)}], "isError": True})


for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "tools/call":
        stopped[asked["id"]] = threading.Event()
        threading.Thread(target=call, args=(asked["id"], asked["params"], stopped[asked["id"]]), daemon=True).start()
    elif asked["method"] == "notifications/cancelled":
        stopped[asked["params"]["requestId"]].set()
    elif "id" in asked:
        answer = ANSWERS.get(asked["method"])
        tell(id=asked["id"], **({"result": answer} if answer else {"error": {"code": -32601, "message": "unknown"}}))
