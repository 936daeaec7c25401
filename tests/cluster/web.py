"""The web server of a run: files, and git repositories by git's own http-backend.

usage: python web.py FOLDER ADDRESS PORT
"""

import os
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer


class Handler(SimpleHTTPRequestHandler):
    """Answers /git/ by git, everything else from the folder."""

    def do_GET(self) -> None:
        """A file, or what git says."""
        if self.path.startswith("/git/"):
            self._git()
        else:
            super().do_GET()

    def do_POST(self) -> None:
        """What git says; nothing else takes a POST."""
        if self.path.startswith("/git/"):
            self._git()
        else:
            self.send_error(405)

    def _git(self) -> None:
        path, _, query = self.path.removeprefix("/git").partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        env = {
            **os.environ,
            "GIT_PROJECT_ROOT": os.path.join(self.directory, "git"),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_ADDR": self.client_address[0],
        }
        done = subprocess.run(
            ["git", "http-backend"], input=body, env=env, stdout=subprocess.PIPE, check=False
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().splitlines() if ": " in line)
        self.send_response(int(fields.pop("Status", "200").split()[0]))
        for name, value in {**fields, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


def main() -> None:
    """Serve until killed."""
    folder, address, port = sys.argv[1:]
    handler = partial(Handler, directory=folder)
    ThreadingHTTPServer((address, int(port)), handler).serve_forever()


if __name__ == "__main__":
    main()
