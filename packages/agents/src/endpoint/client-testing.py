"""An agent with Python's standard library alone: asks, looks where the model says, and reports.

usage: client-testing.py BASE_URL stream|whole QUESTION TOOLS
Prints the text of every answer and the calls it made, one JSON object a line.
"""

import json
import sys
import urllib.request

base, mode, question, tools = sys.argv[1:]


def ask(messages):
    body = {"model": "policy", "messages": messages, "tools": json.loads(tools), "stream": mode == "stream"}
    request = urllib.request.Request(
        f"{base}/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request) as reply:
        if mode == "whole":
            return json.load(reply)["choices"][0]["message"]
        message = {"role": "assistant", "content": "", "tool_calls": []}
        for line in reply:
            if not line.startswith(b"data: ") or line == b"data: [DONE]\n":
                continue
            delta = json.loads(line[6:])["choices"][0]["delta"]
            message["content"] += delta.get("content") or ""
            message["tool_calls"] += delta.get("tool_calls", [])
        return message


messages = [{"role": "user", "content": question}]
for _ in range(20):
    message = ask(messages)
    calls = message.get("tool_calls") or []
    print(json.dumps({"content": message["content"] or "", "calls": [c["function"]["arguments"] for c in calls]}))
    messages.append(message)
    for call in calls:
        place = json.loads(call["function"]["arguments"])["place"]
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": f"seen {place}"})
    if not calls:
        break
