"""The official Python package, used as AgentGym does: an episode per line of standard input.

In: {"task", "variation", "actions"}; out: {"seconds", "cpu", "rss_mib"} of the steps. The first
line says that the simulator has started, and how long that took.
"""

import json
import os
import resource
import sys
import time

from scienceworld import ScienceWorldEnv


def jvm_cpu(pid: int) -> float:
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_mib(pid: int) -> float:
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024


started = time.perf_counter()
env = ScienceWorldEnv("", envStepLimit=100)
jvm = env._gateway.java_process.pid
print(json.dumps({"start": time.perf_counter() - started}), flush=True)

for line in sys.stdin:
    episode = json.loads(line)
    env.load(episode["task"], episode["variation"], "", generateGoldPath=False)
    env.step("look around")
    cpu = time.process_time() + jvm_cpu(jvm)
    began = time.perf_counter()
    for action in episode["actions"]:
        env.step(action)
    print(
        json.dumps(
            {
                "seconds": time.perf_counter() - began,
                "cpu": time.process_time() + jvm_cpu(jvm) - cpu,
                "rss_mib": peak_mib(jvm) + resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            }
        ),
        flush=True,
    )
