"""Plays a served household with OpenEnv's own client; prints what it saw, as JSON."""

import asyncio
import json
import sys

from openenv.core import GenericEnvClient

url, split, index, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])


def actions_of(observation, step):
    """The same choice as the test makes."""
    actions = observation["admissible_actions"]
    return actions[(7 * step + 3) % len(actions)]


def play_alone():
    seen = []
    with GenericEnvClient(base_url=url) as env:
        result = env.reset(split=split, index=index, seed=seed)
        seen.append([result.observation["text"], result.observation["goal"]])
        for step in range(20):
            action = actions_of(result.observation, step)
            result = env.step({"action": action})
            seen.append([action, result.observation["text"], result.reward, result.done])
            if result.done:
                break
        state = env.state()
        state = {name: state[name] for name in ("step_count", "split", "index", "seed")}
        try:
            env.step({"jump": "high"}).reward
            refused = ""
        except Exception as error:  # noqa: BLE001
            refused = str(error)
    return {"seen": seen, "state": state, "refused": refused}


async def play_together(count):
    async def one(number):
        async with GenericEnvClient(base_url=url) as env:
            result = await env.reset(split=split, index=number, seed=number)
            tasks = [result.observation["task"]]
            for step in range(10):
                result = await env.step({"action": actions_of(result.observation, step)})
                tasks.append(result.observation["task"])
            return tasks

    return await asyncio.gather(*(one(number) for number in range(count)))


alone = play_alone()
together = asyncio.run(play_together(16))
print(json.dumps({**alone, "together": together}))
