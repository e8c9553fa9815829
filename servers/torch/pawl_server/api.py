"""The answer to each call: a result, or the id of queued work."""
from __future__ import annotations

import secrets
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Mapping, Optional

from .config_file import read_config
from .errors import RequestError
from .folders import Folders
from .futures import Future, Futures
from .messages import PARSERS, Limits, parse
from .say import say
from .service import limits_of

Json = dict[str, Any]
# How long a request for a result may wait; after that the client asks again.
LONG_POLL_S = 20.0
MAX_SESSIONS, MAX_MODELS = 1024, 64
# The models of a session that has been silent for this long are freed.
SILENT_S = 120.0


@dataclass(frozen=True)
class KnownModel:
    session: Optional[str]
    limits: Limits
    # The folder it was created from, which saving reads again.
    base: Path


@dataclass
class Api:
    """Sessions, and models as clients know them."""

    futures: Futures
    folders: Folders
    capabilities: Json
    models: dict[str, KnownModel] = field(default_factory=dict)
    # When each session was last active.
    sessions: dict[str, float] = field(default_factory=dict)
    # Those that have unloaded all their models; they may still create others.
    ended: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)
    # Whether requests are sent on to other ranks; otherwise only what they say is kept, not their text.
    ranks: int = 1

    def post(self, operation: str, body: Json, size: int = 0) -> tuple[int, Json]:
        """Answers one call with a status and a JSON object; `size` is that of the request in bytes."""
        if operation in IMMEDIATE:
            return 200, IMMEDIATE[operation](self, body)
        if operation == "retrieve_future":
            return self._retrieve(body)
        if operation == "create_model":
            return 200, self._create_model(body)
        if operation not in PARSERS:
            known = ", ".join([*IMMEDIATE, "retrieve_future", *PARSERS])
            raise RequestError(f"unknown call {operation[:60]!r}; known: {known}", 404)
        model_id = body.get("model_id") or body.get("sampling_session_id")
        model = self._model(model_id)
        work = parse(operation, body, model.limits)
        once = None if body.get("seq_id") is None else (model_id, str(body["seq_id"]))
        kept = body if self.ranks > 1 else {name: body[name] for name in ("model_id", "sampling_session_id") if name in body}
        future = self.futures.add(Future(operation, kept, work, size), once)
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
            base = self.folders.base(work.base_model)
            limits = limits_of(read_config(base))
        except RequestError:
            raise
        except Exception as error:
            # Whatever is in a client's config.json, the client is told.
            raise RequestError(f"cannot create the model: its config.json is not understood ({type(error).__name__}: {str(error)[:300]})") from error
        with self.lock:
            if len(self.models) >= MAX_MODELS:
                raise RequestError(f"this server has {MAX_MODELS} models already; unload one first", 503)
        assigned = f"model-{secrets.token_hex(8)}"
        key = body.get("request_key")
        once = None if key is None else (session, "create_model", str(key))
        future = self.futures.add(Future("create_model", {**body, "assigned_id": assigned}, work), once)
        model_id = future.body["assigned_id"]
        with self.lock:
            self.models.setdefault(model_id, KnownModel(session, limits, base))
            self.ended.discard(session)
        return {"request_id": future.id, "model_id": model_id}

    def _heard_of(self, session: object) -> None:
        if session is None:
            return
        with self.lock:
            if not isinstance(session, str) or session not in self.sessions:
                raise RequestError(f"unknown session_id {str(session)[:80]!r}; call create_session first", 404)
            self.sessions[session] = time.monotonic()

    def create_session(self, body: Json) -> Json:
        session = f"session-{secrets.token_hex(8)}"
        with self.lock:
            if len(self.sessions) >= MAX_SESSIONS:
                raise RequestError(f"this server has {MAX_SESSIONS} sessions already; try again later", 503)
            self.sessions[session] = time.monotonic()
            here = self._here()
        say(f"a run came ({session}); {here} here")
        return {"session_id": session, "type": "create_session"}

    def _here(self) -> int:
        """Sessions that are neither lost nor ended; with the lock held."""
        return len(self.sessions.keys() - self.ended)

    def heartbeat(self, body: Json) -> Json:
        session = body.get("session_id")
        self._heard_of(session if session is not None else "")
        return {"type": "session_heartbeat"}

    def unload(self, body: Json) -> Json:
        """Frees a model, after the work that is queued for it."""
        model_id = body.get("model_id")
        session = self._model(model_id).session
        with self.lock:
            self.models.pop(model_id, None)
            ends = session in self.sessions and all(model.session != session for model in self.models.values())
            if ends:
                self.ended.add(session)
            here = self._here()
        if ends:
            say(f"a run ended ({session}); {here} here")
        self.futures.add(Future("unload_model", {"model_id": model_id}, None), None)
        return {"model_id": model_id, "type": "unload_model"}

    def free_silent_sessions(self) -> None:
        """Frees the models of clients that are gone."""
        with self.lock:
            gone = {id for id, heard in self.sessions.items() if time.monotonic() - heard > SILENT_S}
            for session in gone:
                del self.sessions[session]
            lost = gone - self.ended
            self.ended -= gone
            here = self._here()
            models = [id for id, model in self.models.items() if model.session in gone]
            # Results and uploads that nobody needs any more go too.
            used = {model.base for id, model in self.models.items() if id not in models}
        for session in sorted(lost):
            say(f"a run went ({session}): nothing was heard of it for {SILENT_S:g} s; {here} here")
        for model_id in models:
            self.unload({"model_id": model_id})
        self.futures.forget_old()
        self.folders.forget_uploads(used)

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
        future.sent_at = future.sent_at or time.monotonic()
        assert future.result is not None
        return 200, future.result


IMMEDIATE: Mapping[str, Callable[[Api, Json], Json]] = {
    "create_session": Api.create_session,
    "session_heartbeat": Api.heartbeat,
    "unload_model": Api.unload,
    "save_weights_for_sampler": Api.live_sampler,
    "delete_weights": Api.delete_weights,
}
