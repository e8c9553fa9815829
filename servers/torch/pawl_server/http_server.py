"""HTTP: authentication, limits, JSON and files in and out."""
from __future__ import annotations

import base64
import contextlib
import hmac
import json
import os
import secrets
import shutil
import socket
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Optional

from torch import Tensor

from .api import Api
from .errors import RequestError

Json = dict[str, Any]
PREFIX = "/api/v1/"
FILES = f"{PREFIX}files/"
# How long a silent connection is kept.
IDLE_S = 120.0
# How long to keep reading a rejected body, so that its sender can read the answer.
DRAIN_S = 30.0
PIECE = 2**20


@dataclass(frozen=True)
class HttpOptions:
    host: str
    port: int
    # The key that every call must send, if there is one.
    key: Optional[str]
    max_request_bytes: int
    max_file_bytes: int


def create_http_server(api: Api, options: HttpOptions) -> ThreadingHTTPServer:
    """A server that answers with `api`; `serve_forever` runs it."""

    class Handler(_Handler):
        pass

    Handler.api, Handler.options = api, options
    return _Server((options.host, options.port), Handler)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that disconnects is not a server error."""


class _Handler(BaseHTTPRequestHandler):
    api: Api
    options: HttpOptions
    protocol_version = "HTTP/1.1"
    timeout = IDLE_S
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_GET(self) -> None:
        if self.path.startswith(FILES):
            self._send_file()
        else:
            self._reply(self._get)

    def do_POST(self) -> None:
        self._reply(self._post)

    def do_PUT(self) -> None:
        self._reply(self._put)

    def log_message(self, format: str, *arguments: object) -> None:
        """Logs nothing: requests contain prompts and keys."""

    def _reply(self, answer: Callable[[], tuple[int, Json]]) -> None:
        # Set if the body is left unread: then the connection cannot be reused.
        self.unread = self.headers.get("Content-Length", "0") != "0"
        try:
            status, result = answer()
        except RequestError as error:
            status, result = error.status, {"error": str(error)}
        self.close_connection = self.close_connection or self.unread
        binary = self.headers.get("X-Pawl-Binary") == "1"
        data = json.dumps(result, default=lambda value: encode(value, binary)).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()
        if self.unread:
            self._drain()

    def _drain(self) -> None:
        """Reads and discards the rest of a rejected body: closing the connection while the client
        sends would lose the answer.
        """
        self.connection.shutdown(socket.SHUT_WR)
        end = time.monotonic() + DRAIN_S
        while (left := end - time.monotonic()) > 0:
            self.connection.settimeout(left)
            if not self.rfile.read1(PIECE):
                break

    def _get(self) -> tuple[int, Json]:
        if self.path in ("/healthz", f"{PREFIX}healthz"):
            return 200, {"status": "ok"}
        self._check_key()
        if self.path == f"{PREFIX}get_server_capabilities":
            return 200, self.api.capabilities
        raise RequestError(f"there is nothing at {self.path[:80]!r}", 404)

    def _post(self) -> tuple[int, Json]:
        self._check_key()
        # Browsers send this type only if a server allows it, so a web page cannot reach a local
        # server.
        if self.headers.get_content_type() != "application/json":
            raise RequestError("expected Content-Type: application/json", 415)
        body = self._body()
        if not self.path.startswith(PREFIX):
            raise RequestError(f"there is nothing at {self.path[:80]!r}; calls are under {PREFIX}")
        return self.api.post(self.path[len(PREFIX) :], body)

    def _put(self) -> tuple[int, Json]:
        self._check_key()
        if not self.path.startswith(FILES):
            raise RequestError(f"there is nothing to write at {self.path[:80]!r}; files are under {FILES}")
        file = self.api.folders.file(self.path[len(FILES) :])
        length = self._length(self.options.max_file_bytes)
        temporary = file.parent / f".{file.name}.{secrets.token_hex(4)}.partial"
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with open(temporary, "xb") as target:
                left = length
                while left:
                    piece = self.rfile.read(min(left, PIECE))
                    if not piece:
                        raise RequestError(f"the body ended {left} bytes early")
                    target.write(piece)
                    left -= len(piece)
            os.replace(temporary, file)
        except OSError as error:
            raise RequestError(f"{file.name} could not be stored: {error.strerror or error}", 507) from error
        finally:
            # If the folder could not be created, there is nothing to remove.
            with contextlib.suppress(NotADirectoryError):
                temporary.unlink(missing_ok=True)
        self.unread = False
        return 200, {"bytes": length}

    def _send_file(self) -> None:
        try:
            self._check_key()
            file = self.api.folders.file(self.path[len(FILES) :])
            source = open(file, "rb")
        except (RequestError, OSError) as error:
            found = error if isinstance(error, RequestError) else RequestError("there is no such file", 404)
            self._reply(lambda: (found.status, {"error": str(found)}))
            return
        with source:
            self.send_response(200)
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(os.fstat(source.fileno()).st_size))
            self.end_headers()
            shutil.copyfileobj(source, self.wfile, PIECE)

    def _check_key(self) -> None:
        if self.options.key is None:
            return
        given = self.headers.get("X-API-Key") or self.headers.get("Authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(), self.options.key.encode()):
            raise RequestError("the key is missing or wrong; set PAWL_API_KEY to the server's", 401)

    def _length(self, most: int) -> int:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            raise RequestError("expected a Content-Length", 411)
        if int(length) > most:
            raise RequestError(f"a body of {length} bytes; at most {most} are accepted: send less at once", 413)
        return int(length)

    def _body(self) -> Json:
        data = self.rfile.read(self._length(self.options.max_request_bytes))
        self.unread = False
        try:
            body = json.loads(data, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise RequestError(f"the body is not JSON, or not accepted here: {str(error)[:200]}") from error
        if not isinstance(body, dict):
            raise RequestError("expected a JSON object")
        return body


def encode(value: object, binary: bool) -> Json:
    """A tensor as JSON."""
    if not isinstance(value, Tensor):
        raise TypeError(f"cannot be sent as JSON: {type(value).__name__}")
    dtype = str(value.dtype).removeprefix("torch.")
    shape = list(value.shape)
    if binary:
        data = base64.b64encode(value.contiguous().numpy().tobytes()).decode()
        return {"base64": data, "dtype": dtype, "shape": shape}
    return {"data": value.tolist(), "dtype": dtype, "shape": shape}


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")
