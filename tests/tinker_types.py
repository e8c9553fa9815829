"""Checks requests against the types of Tinker's official client: JSON lines {path, body} on stdin, counts on stdout.

Its types forbid unknown fields. forward and forward_backward are not checked: the client sends them as protobuf.
"""

import json
import sys
from collections import Counter

from tinker import types
from tinker.types.create_session_request import CreateSessionRequest
from tinker.types.load_weights_request import LoadWeightsRequest
from tinker.types.optim_step_request import OptimStepRequest
from tinker.types.sample_request import SampleRequest
from tinker.types.save_weights_for_sampler_request import SaveWeightsForSamplerRequest
from tinker.types.save_weights_request import SaveWeightsRequest

TYPES = {
    "create_session": CreateSessionRequest,
    "create_model": types.CreateModelRequest,
    "load_weights": LoadWeightsRequest,
    "optim_step": OptimStepRequest,
    "save_weights": SaveWeightsRequest,
    "save_weights_for_sampler": SaveWeightsForSamplerRequest,
    "asample": SampleRequest,
    "unload_model": types.UnloadModelRequest,
}

counts = Counter()
for line in sys.stdin:
    request = json.loads(line)
    kind = TYPES.get(request["path"])
    if kind is None:
        continue
    body = json.loads(request["body"])
    if kind is CreateSessionRequest:
        # The client has it as a required argument, and leaves out null.
        body.setdefault("user_metadata", None)
    kind.model_validate(body)
    counts[request["path"]] += 1
print(json.dumps(counts))
