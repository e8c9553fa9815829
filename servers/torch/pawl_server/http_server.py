"""HTTP: limits, JSON and files in and out."""
from __future__ import annotations

import base64
import contextlib
import json
import os
import secrets
import shutil
import socket
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Iterator, Optional

from torch import Tensor

from .access import check_access
from .api import Api
from .errors import RequestError, unwritable
from .say import say_fault

Json = dict[str, Any]
PREFIX = "/api/v1/"
FILES = f"{PREFIX}files/"
# How long a silent connection is kept.
IDLE_S = 120.0
# How long to keep reading a rejected body, so that its sender can read the answer.
DRAIN_S = 30.0
PIECE = 2**20
# How long a request may take to arrive: for its headers, and per byte of its body.
HEADER_S = 30.0
SLOWEST = 100_000.0
MAX_CONNECTIONS = 512
# The body of a call that only asks for a result.
MAX_SMALL = 2**16


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

    class Server(_Server):
        address_family = socket.AF_INET6 if ":" in options.host else socket.AF_INET

    Handler.api, Handler.options = api, options
    return Server((options.host, options.port), Handler)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        # When each connection must have sent what it is sending.
        self.deadlines: dict[socket.socket, float] = {}
        # Bytes of bodies that are being read or understood.
        self.reading = 0
        self.lock = threading.Lock()

    def process_request(self, request: Any, client_address: Any) -> None:
        with self.lock:
            full = len(self.deadlines) >= MAX_CONNECTIONS
            if not full:
                self.deadlines[request] = time.monotonic() + IDLE_S + HEADER_S
        if full:
            self.shutdown_request(request)
        else:
            super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self.lock:
            self.deadlines.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Called twice a second: disconnects clients that are too slow."""
        now = time.monotonic()
        with self.lock:
            late = [connection for connection, end in self.deadlines.items() if now > end]
        for connection in late:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def expect(self, connection: socket.socket, seconds: float) -> None:
        """Gives a connection this long for what comes next."""
        with self.lock:
            if connection in self.deadlines:
                self.deadlines[connection] = time.monotonic() + seconds

    @contextlib.contextmanager
    def holding(self, size: int, most: int) -> Iterator[None]:
        """Counts a body as long as it is in memory; refuses it if there are too many."""
        with self.lock:
            if self.reading and self.reading + size > most:
                raise RequestError("the server is reading other requests; try again later", 503)
            self.reading += size
        try:
            yield
        finally:
            with self.lock:
                self.reading -= size

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that disconnects is not a server error."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    api: Api
    options: HttpOptions
    protocol_version = "HTTP/1.1"
    timeout = IDLE_S
    disable_nagle_algorithm = True
    wbufsize = -1

    def handle_one_request(self) -> None:
        self.server.expect(self.connection, IDLE_S + HEADER_S)
        super().handle_one_request()

    def parse_request(self) -> bool:
        parsed = super().parse_request()
        # From here on the server works, and the body has a limit of its own.
        self.server.expect(self.connection, float("inf"))
        return parsed

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
        self.unread = self.headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in self.headers
        try:
            status, result = answer()
        except RequestError as error:
            status, result = error.status, {"error": str(error)}
        except Exception as error:
            if isinstance(error, OSError) and error.filename is None:
                # The client is gone.
                raise
            say_fault("a request", error)
            status, result = 500, {"error": f"the server failed: {type(error).__name__}"}
        self.server.expect(self.connection, float("inf"))
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
        is_health = self.path in ("/healthz", f"{PREFIX}healthz")
        self._check_access(is_health)
        if is_health:
            return 200, {"status": "ok"}
        if self.path == f"{PREFIX}get_server_capabilities":
            return 200, self.api.capabilities
        raise RequestError(f"there is nothing at {self.path[:80]!r}", 404)

    def _post(self) -> tuple[int, Json]:
        self._check_access()
        # Browsers send this type to other sites only if those allow it.
        if self.headers.get_content_type() != "application/json":
            raise RequestError("expected Content-Type: application/json", 415)
        if not self.path.startswith(PREFIX):
            raise RequestError(f"there is nothing at {self.path[:80]!r}; calls are under {PREFIX}", 404)
        operation = self.path[len(PREFIX) :]
        if operation == "retrieve_future":
            # It waits, and holds nothing.
            return self.api.post(operation, self._body(self._length(MAX_SMALL)))
        length = self._length(self.options.max_request_bytes)
        with self.server.holding(length, 2 * self.options.max_request_bytes):
            return self.api.post(operation, self._body(length), length)

    def _put(self) -> tuple[int, Json]:
        self._check_access()
        if not self.path.startswith(FILES):
            raise RequestError(f"there is nothing to write at {self.path[:80]!r}; files are under {FILES}", 404)
        file = self.api.folders.file(self.path[len(FILES) :])
        length = self._length(self.options.max_file_bytes)
        temporary = file.parent / f".{file.name}.{secrets.token_hex(4)}.partial"
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with open(temporary, "xb") as target:
                left = length
                self._expect_body(length)
                while left:
                    piece = self.rfile.read(min(left, PIECE))
                    if not piece:
                        raise RequestError(f"the body ended {left} bytes early")
                    target.write(piece)
                    left -= len(piece)
            os.replace(temporary, file)
        except OSError as error:
            raise RequestError(unwritable(file, error), 507) from error
        finally:
            # If the folder could not be created, there is nothing to remove.
            with contextlib.suppress(NotADirectoryError):
                temporary.unlink(missing_ok=True)
        self.unread = False
        return 200, {"bytes": length}

    def _send_file(self) -> None:
        try:
            self._check_access()
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

    def _check_access(self, keyless: bool = False) -> None:
        check_access(self.headers, self.options.key, keyless)

    def _length(self, most: int) -> int:
        # A proxy may read two lengths in another way, and take the rest of a body for a request.
        lengths = self.headers.get_all("Content-Length", [])
        length = lengths[0] if len(lengths) == 1 and "Transfer-Encoding" not in self.headers else ""
        if not length.isdecimal():
            raise RequestError("expected one Content-Length, and no Transfer-Encoding", 411)
        # Python refuses to read a number of thousands of digits.
        if len(length) > 20 or int(length) > most:
            raise RequestError(f"a body of {length[:20]} bytes; at most {most} are accepted: send less at once", 413)
        return int(length)

    def _expect_body(self, length: int) -> None:
        self.server.expect(self.connection, HEADER_S + length / SLOWEST)

    def _body(self, length: int) -> Json:
        self._expect_body(length)
        data = self.rfile.read(length)
        self.server.expect(self.connection, float("inf"))
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
