"""The web site of an invented country, on this machine. `python country_server.py --help` lists the options."""

from __future__ import annotations

from argparse import ArgumentParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

from country import Country, make_country


def create_site(country: Country, port: int = 0) -> ThreadingHTTPServer:
    """Create a server of the pages on this machine; `serve_forever` runs it."""
    files = {path: ("text/html; charset=utf-8", page) for path, page in country.pages.items()}
    files["/carts.csv"] = ("text/csv", country.carts)

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(*files.get(self.path, ("", "There is no such page.")))

        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self._answer("text/html; charset=utf-8", country.registered(form.get("town", [""])[0]))

        def _answer(self, media_type: str, text: str) -> None:
            data = text.encode()
            self.send_response(200 if media_type else 404)
            self.send_header("Content-Type", media_type or "text/plain")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
            """Log nothing."""

    return ThreadingHTTPServer(("127.0.0.1", port), Site)


if __name__ == "__main__":
    options = ArgumentParser(description="Write a country into a folder, and serve its pages until Ctrl-C.")
    options.add_argument("folder", type=Path)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--port", type=int, default=8300)
    given = options.parse_args()
    made = make_country(given.seed)
    made.write(given.folder)
    with create_site(made, given.port) as site:
        print(f"http://127.0.0.1:{given.port}/")
        site.serve_forever()
