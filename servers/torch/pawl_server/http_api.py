"""The HTTP side: authentication, limits, JSON in and out. Work is queued here and done elsewhere."""
from __future__ import annotations

import base64
import hmac
import json
import secrets
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Callable, Mapping, Optional

from torch import Tensor

from .errors import RequestError
from .futures import Future, Futures
from .messages import PARSERS, Json, Limits, parse

PREFIX = "/api/v1/"
# How long a request for a result may wait for it; then the client asks again.
LONG_POLL_S = 20.0
# How long a silent connection is kept.
IDLE_S = 120.0


@dataclass
class Api:
    """What the server answers with besides queued work."""

    futures: Futures
    limits: Limits
    capabilities: Json
    key: Optional[str]
    max_bytes: int
    models: set[str] = field(default_factory=set)

    def post(self, operation: str, body: Json) -> tuple[int, Json]:
        """Answers a request: at once, or with the id of a future."""
        if operation in IMMEDIATE:
            return IMMEDIATE[operation](self, body)
        if operation not in PARSERS:
            raise RequestError(f"unknown call {operation[:60]!r}; known: {', '.join([*IMMEDIATE, *PARSERS])}", 404)
        model_id = body.get("model_id") or body.get("sampling_session_id")
        if operation == "create_model":
            model_id = f"model-{secrets.token_hex(8)}"
            body = {**body, "assigned_id": model_id}
        elif model_id not in self.models:
            raise RequestError(f"no model has the id {str(model_id)[:80]!r}; call create_model first", 404)
        work = parse(operation, body, self.limits)
        sequence = body.get("seq_id")
        once = None if sequence is None else (model_id, str(sequence))
        future = self.futures.add(Future(operation, body, work), once)
        if operation == "create_model":
            self.models.add(model_id)
        elif operation == "unload_model":
            self.models.discard(model_id)
        return 200, {"request_id": future.id, "model_id": model_id}

    def retrieve(self, body: Json) -> tuple[int, Json]:
        """The result of earlier work, once it is there."""
        future = self.futures.find(str(body.get("request_id")))
        if not future.done.wait(LONG_POLL_S):
            return 408, {"type": "try_again", "request_id": future.id, "queue_state": "active"}
        if future.error is not None:
            raise future.error
        assert future.result is not None
        return 200, future.result


IMMEDIATE: Mapping[str, Callable[[Api, Json], tuple[int, Json]]] = {
    "create_session": lambda api, body: (200, {"session_id": f"session-{secrets.token_hex(8)}", "type": "create_session"}),
    "session_heartbeat": lambda api, body: (200, {"type": "session_heartbeat"}),
    # Sampling always uses the weights as they are, so the model itself is the sampling session.
    "save_weights_for_sampler": lambda api, body: (
        200,
        {"sampling_session_id": body.get("model_id"), "path": body.get("path"), "type": "save_weights_for_sampler"},
    ),
    "retrieve_future": Api.retrieve,
}


def create_http_server(api: Api, host: str, port: int) -> ThreadingHTTPServer:
    """A server that answers with `api`; `serve_forever` runs it."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = IDLE_S
        disable_nagle_algorithm = True
        wbufsize = -1

        def do_GET(self) -> None:
            self._reply(self._get)

        def do_POST(self) -> None:
            self._reply(self._post)

        def log_message(self, format: str, *arguments: object) -> None:
            """Says nothing: requests hold prompts and keys."""

        def _reply(self, answer: Callable[[], tuple[int, Json]]) -> None:
            try:
                status, result = answer()
            except RequestError as error:
                status, result = error.status, {"error": str(error)}
            if status in (401, 411, 413):
                # The body was not read, so the connection cannot be used again.
                self.close_connection = True
            binary = self.headers.get("X-Pawl-Binary") == "1"
            data = json.dumps(result, default=lambda value: encode(value, binary)).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
            self.wfile.flush()

        def _get(self) -> tuple[int, Json]:
            if self.path in ("/healthz", f"{PREFIX}healthz"):
                return 200, {"status": "ok"}
            self._check_key()
            if self.path == f"{PREFIX}get_server_capabilities":
                return 200, api.capabilities
            raise RequestError(f"there is nothing at {self.path[:80]!r}", 404)

        def _post(self) -> tuple[int, Json]:
            self._check_key()
            body = self._body()
            if not self.path.startswith(PREFIX):
                raise RequestError(f"there is nothing at {self.path[:80]!r}; calls are under {PREFIX}", 404)
            return api.post(self.path[len(PREFIX) :], body)

        def _check_key(self) -> None:
            if api.key is None:
                return
            given = self.headers.get("X-API-Key") or self.headers.get("Authorization", "").removeprefix("Bearer ")
            if not hmac.compare_digest(given.encode(), api.key.encode()):
                raise RequestError("the key is missing or wrong; set PAWL_API_KEY to the server's", 401)

        def _body(self) -> Json:
            length = self.headers.get("Content-Length", "")
            if not length.isdecimal():
                raise RequestError("expected a Content-Length", 411)
            if int(length) > api.max_bytes:
                raise RequestError(f"a body of {length} bytes; at most {api.max_bytes} are taken: send less at once", 413)
            data = self.rfile.read(int(length))
            # Browsers send this type only where a server allows it, so a web page cannot reach a local server.
            if self.headers.get_content_type() != "application/json":
                raise RequestError("expected Content-Type: application/json", 415)
            try:
                body = json.loads(data, parse_constant=_refuse_constant)
            except (ValueError, RecursionError) as error:
                raise RequestError(f"the body is no JSON that is accepted here: {str(error)[:200]}") from error
            if not isinstance(body, dict):
                raise RequestError("expected a JSON object")
            return body

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, request: object, client_address: object) -> None:
            """A client that went away is no error of the server."""

    return Server((host, port), Handler)


def encode(value: object, binary: bool) -> Json:
    """A tensor as JSON."""
    if not isinstance(value, Tensor):
        raise TypeError(f"cannot be sent: {type(value).__name__}")
    dtype = str(value.dtype).removeprefix("torch.")
    shape = list(value.shape)
    if binary:
        data = base64.b64encode(value.contiguous().numpy().tobytes()).decode()
        return {"base64": data, "dtype": dtype, "shape": shape}
    return {"data": value.tolist(), "dtype": dtype, "shape": shape}


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")
