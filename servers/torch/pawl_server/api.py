"""The answer to each call: a result, or the id of queued work."""
from __future__ import annotations

import secrets
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping, Optional

from .config_file import read_config
from .errors import RequestError
from .folders import Folders
from .futures import Future, Futures
from .messages import PARSERS, Limits, parse
from .service import limits_of

Json = dict[str, Any]
# How long a request for a result may wait; after that the client asks again.
LONG_POLL_S = 20.0
# The models of a session that has been silent for this long are freed.
SILENT_S = 120.0


@dataclass(frozen=True)
class KnownModel:
    session: Optional[str]
    limits: Limits


@dataclass
class Api:
    """Sessions, and models as clients know them."""

    futures: Futures
    folders: Folders
    capabilities: Json
    models: dict[str, KnownModel] = field(default_factory=dict)
    # When each session was last active.
    sessions: dict[str, float] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def post(self, operation: str, body: Json) -> tuple[int, Json]:
        """Answers one call with a status and a JSON object."""
        if operation in IMMEDIATE:
            return 200, IMMEDIATE[operation](self, body)
        if operation == "retrieve_future":
            return self._retrieve(body)
        if operation == "create_model":
            return 200, self._create_model(body)
        if operation not in PARSERS:
            known = ", ".join([*IMMEDIATE, "retrieve_future", *PARSERS])
            raise RequestError(f"unknown call {operation[:60]!r}; known: {known}")
        model_id = body.get("model_id") or body.get("sampling_session_id")
        model = self._model(model_id)
        work = parse(operation, body, model.limits)
        once = None if body.get("seq_id") is None else (model_id, str(body["seq_id"]))
        future = self.futures.add(Future(operation, body, work), once)
        return 200, {"request_id": future.id, "model_id": model_id}

    def _model(self, model_id: object) -> KnownModel:
        with self.lock:
            model = self.models.get(model_id) if isinstance(model_id, str) else None
        if model is None:
            raise RequestError(f"unknown model_id {str(model_id)[:80]!r}; call create_model first", 404)
        return model

    def _create_model(self, body: Json) -> Json:
        session = body.get("session_id")
        self._heard_of(session)
        work = parse("create_model", body, Limits(0, 0))
        try:
            limits = limits_of(read_config(self.folders.base(work.base_model)))
        except (ValueError, KeyError, OSError) as error:
            raise RequestError(f"cannot create the model: {error}") from error
        assigned = f"model-{secrets.token_hex(8)}"
        key = body.get("request_key")
        once = None if key is None else (session, "create_model", str(key))
        future = self.futures.add(Future("create_model", {**body, "assigned_id": assigned}, work), once)
        model_id = future.body["assigned_id"]
        with self.lock:
            self.models.setdefault(model_id, KnownModel(session, limits))
        return {"request_id": future.id, "model_id": model_id}

    def _heard_of(self, session: object) -> None:
        if session is None:
            return
        with self.lock:
            if session not in self.sessions:
                raise RequestError(f"unknown session_id {str(session)[:80]!r}; call create_session first", 404)
            self.sessions[session] = time.monotonic()

    def create_session(self, body: Json) -> Json:
        session = f"session-{secrets.token_hex(8)}"
        with self.lock:
            self.sessions[session] = time.monotonic()
        return {"session_id": session, "type": "create_session"}

    def heartbeat(self, body: Json) -> Json:
        session = body.get("session_id")
        self._heard_of(session if session is not None else "")
        return {"type": "session_heartbeat"}

    def unload(self, body: Json) -> Json:
        """Frees a model, after the work that is queued for it."""
        model_id = body.get("model_id")
        self._model(model_id)
        with self.lock:
            self.models.pop(model_id, None)
        self.futures.add(Future("unload_model", {"model_id": model_id}, None), None)
        return {"model_id": model_id, "type": "unload_model"}

    def free_silent_sessions(self) -> None:
        """Frees the models of clients that are gone."""
        with self.lock:
            gone = {id for id, heard in self.sessions.items() if time.monotonic() - heard > SILENT_S}
            for session in gone:
                del self.sessions[session]
            models = [id for id, model in self.models.items() if model.session in gone]
        for model_id in models:
            self.unload({"model_id": model_id})

    def live_sampler(self, body: Json) -> Json:
        """Sampling always uses the current weights, so the model itself is the sampling session."""
        self._model(body.get("model_id"))
        return {"sampling_session_id": body["model_id"], "path": body.get("path"), "type": "save_weights_for_sampler"}

    def delete_weights(self, body: Json) -> Json:
        return {"deleted": self.folders.delete(str(body.get("path")))}

    def _retrieve(self, body: Json) -> tuple[int, Json]:
        future = self.futures.find(str(body.get("request_id")))
        if not future.done.wait(LONG_POLL_S):
            return 408, {"type": "try_again", "request_id": future.id, "queue_state": "active"}
        if future.error is not None:
            raise future.error
        assert future.result is not None
        return 200, future.result


IMMEDIATE: Mapping[str, Callable[[Api, Json], Json]] = {
    "create_session": Api.create_session,
    "session_heartbeat": Api.heartbeat,
    "unload_model": Api.unload,
    "save_weights_for_sampler": Api.live_sampler,
    "delete_weights": Api.delete_weights,
}
