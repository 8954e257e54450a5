"""Take webhooks on port 8080, and write a line of JSON for each."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Taker(BaseHTTPRequestHandler):
    """Says yes to all."""

    def do_POST(self) -> None:
        """Take one message."""
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        names = ("webhook-id", "webhook-timestamp", "webhook-signature")
        line = {"headers": {name: self.headers[name] for name in names}, "body": body}
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
        self.send_response_only(204)  # which writes no line of its own to the log, where only what was taken is read
        self.end_headers()


ThreadingHTTPServer(("", 8080), Taker).serve_forever()
