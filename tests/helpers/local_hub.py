"""A hub on this machine: the models are the folders `<owner>/<name>` or `<name>` of a folder."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

COMMIT = "a" * 40


@contextmanager
def hub(root: Path) -> Iterator[str]:
    """Serve a folder's models as the hub does, and yield the address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *words: object) -> None:
            pass

        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path).strip("/")
            model, _, rest = path.removeprefix("api/models/").partition(
                "/tree/" if path.startswith("api/") else "/resolve/"
            )
            folder = root / model.partition("/revision/")[0]
            files = [f for f in sorted(folder.rglob("*")) if f.is_file()]
            if not files:
                self.answer(404, b"{}", {"X-Error-Code": "RepoNotFound"})
            elif not path.startswith("api/"):
                data = (folder / rest.partition("/")[2]).read_bytes()
                self.answer(200, data, {"ETag": f'"{hashlib.sha1(data).hexdigest()}"'})
            elif rest:
                sizes = {f.relative_to(folder).as_posix(): f.stat().st_size for f in files}
                listed = [
                    {"type": "file", "oid": hashlib.sha1(name.encode()).hexdigest()}
                    | {"size": size, "path": name}
                    for name, size in sizes.items()
                ]
                self.answer(200, json.dumps(listed).encode())
            else:
                names = [
                    {"rfilename": f.relative_to(folder).as_posix(), "size": f.stat().st_size}
                    for f in files
                ]
                about = {"id": model, "modelId": model, "sha": COMMIT, "siblings": names}
                self.answer(200, json.dumps(about).encode())

        do_HEAD = do_GET

        def answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in {**(headers or {}), "X-Repo-Commit": COMMIT}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
