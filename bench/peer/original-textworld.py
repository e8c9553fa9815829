"""The original's side of ../textworld.ts: plays games with the Python package textworld.

Reads one JSON command per line from standard input, {game, all, commands, rounds}, and answers with one JSON
line each: the steps played, and the seconds and processor seconds they took.
"""
import json
import sys
import time

import textworld


def play(game, everything, commands, rounds):
    infos = textworld.EnvInfos(admissible_commands=True, won=True, lost=True, score=True, max_score=True)
    if everything:
        infos.description = infos.inventory = True
    env = textworld.start(game, infos)
    steps = seconds = processor = 0
    for _ in range(rounds):
        env.reset()
        wall, used = time.perf_counter(), time.process_time()
        for command in commands:
            steps += 1
            if env.step(command)[2]:
                break
        seconds += time.perf_counter() - wall
        processor += time.process_time() - used
    env.close()
    return {"steps": steps, "seconds": seconds, "processor": processor}


for line in sys.stdin:
    asked = json.loads(line)
    answer = play(asked["game"], asked["all"], asked["commands"], asked["rounds"])
    print(json.dumps(answer), flush=True)
