#!/usr/bin/env python3
"""Follows a run folder of Pawl and sends it to Weights & Biases.

    python wandb_follow.py RUN [--project NAME] [--entity NAME] [--once]

Sends the settings in manifest.json, every line of metrics.jsonl and every alarm of alarms.jsonl, until the run has
ended. Started again, it continues where it stopped (wandb.json beside the metrics). Modes and keys are wandb's own:
`wandb login`, WANDB_API_KEY, WANDB_MODE=offline.

What starts and reaches MCP servers is left out: runs of older versions may hold a key there.
"""

import argparse
import hashlib
import json
import os
import re
import time
from pathlib import Path

import wandb

LEFT_OUT = "[secret]"
# Settings that hold a key by their name, and the parts of an MCP server's settings that may hold one.
KEY = re.compile(
    r"((api|access|auth|bearer|client|private|secret)[_-]?(key|token|secret)|password|passphrase|credentials?)$", re.I
)
SERVER_PARTS = ("args", "env", "headers", "url")
# A user name or a password in an address.
USER = re.compile(r"(?<=://)[^\s/?#]+@")


def without_keys(setting, path: tuple[str, ...] = ()):
    """Settings without what may be a key; placeholders ({env:NAME}) stay."""
    if isinstance(setting, dict):
        return {name: without_keys(inner, (*path, name)) for name, inner in setting.items()}
    if isinstance(setting, list):
        return [without_keys(inner, path) for inner in setting]
    if not isinstance(setting, str) or re.fullmatch(r"(Bearer )?\{env:\w+\}", setting):
        return setting
    in_server = any(name == "servers" and part in SERVER_PARTS for name, part in zip(path, path[2:]))
    if in_server or (path and KEY.search(path[-1])):
        return LEFT_OUT
    return USER.sub(f"{LEFT_OUT}@", setting)


def read_json(path: Path, default):
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return default


def lines_after(path: Path, count: int) -> list[dict]:
    """The complete lines of a file after the first `count` ones."""
    if not path.exists():
        return []
    whole = path.read_text().split("\n")[:-1]
    return [json.loads(line) for line in whole[count:]]


def run_id(folder: Path, manifest: dict) -> str:
    """The same id whenever the run is sent."""
    parts = json.dumps([folder.name, manifest["createdAt"], manifest["kind"], manifest["seed"]])
    return hashlib.sha256(parts.encode()).hexdigest()[:16]


def send(folder: Path, run, state: dict) -> None:
    for line in lines_after(folder / "metrics.jsonl", state["lines"]):
        # wandb groups metrics by what stands before a slash; the line before the first update is step 0.
        metrics = {name.replace(".", "/", 1): value for name, value in line.items() if name != "update"}
        run.log(metrics, step=line["update"] + 1)
        state["lines"] += 1
    for alarm in lines_after(folder / "alarms.jsonl", state["alarms"]):
        text = f"update {alarm['update'] + 1}: {alarm['text']}"
        run.alert(title=f"alarm {alarm['alarm']}", text=text, level=wandb.AlertLevel.WARN)
        state["alarms"] += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=Path, help="run folder")
    parser.add_argument("--project", default="pawl")
    parser.add_argument("--entity")
    parser.add_argument("--once", action="store_true", help="send what is there and end, even if the run goes on")
    parser.add_argument("--every", type=float, default=5.0, help="seconds between two looks at the folder")
    options = parser.parse_args()
    folder = options.run.resolve()
    manifest = read_json(folder / "manifest.json", None)
    if manifest is None:
        parser.error(f"{options.run} is no run folder: it has no manifest.json")
    cursor = folder / "wandb.json"
    identity = run_id(folder, manifest)
    state = read_json(cursor, {})
    if state.get("run") != identity:
        state = {"run": identity, "lines": 0, "alarms": 0}
    run = wandb.init(
        project=options.project,
        entity=options.entity,
        id=identity,
        name=folder.name,
        config=without_keys(manifest["config"]),
        job_type=manifest["kind"],
        resume="allow",
    )
    before = dict(state)
    while True:
        # Read before sending: what is recorded after this is sent before the end, or not at all.
        status = read_json(folder / "manifest.json", manifest)["status"]
        send(folder, run, state)
        temporary = cursor.with_suffix(".tmp")
        temporary.write_text(json.dumps(state))
        os.replace(temporary, cursor)
        if options.once or status != "running":
            break
        time.sleep(options.every)
    run.finish(exit_code=1 if status == "failed" else 0)
    sent = {name: state[name] - before[name] for name in ("lines", "alarms")}
    print(f"sent {sent['lines']} lines of metrics and {sent['alarms']} alarms")


if __name__ == "__main__":
    main()
