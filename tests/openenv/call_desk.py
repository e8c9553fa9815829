"""Works at a served desk with OpenEnv's client for tools; prints what it saw, as JSON."""

import asyncio
import json
import sys

from openenv.core.env_server.mcp_types import CallToolAction
from openenv.core.mcp_client import MCPToolClient


async def main(url):
    async with MCPToolClient(base_url=url) as env:
        first = await env.reset(split="train", index=0)
        tools = await env.list_tools()
        wrong = await env.step(CallToolAction(tool_name="get_order", arguments={"order": "x"}))
        said = await env.call_tool("close_case", outcome="done")
        state = await env.state()
        return {
            "goal": first.observation.goal,
            "tools": [tool.name for tool in tools],
            "wrong": wrong.observation.result,
            "said": said,
            "steps": state.step_count,
        }


print(json.dumps(asyncio.run(main(sys.argv[1]))))
