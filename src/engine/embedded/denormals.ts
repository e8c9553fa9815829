/**
 * Numbers below 1e-38, which processors compute with ten times slower; sessions take them for zero.
 *
 * ONNX Runtime sets that in its own threads, and in the thread of a process's first session, but in no
 * other that runs a session. On Linux a thread inherits it from the one that started it. So an engine's
 * first session is made here, before its replicas are started: otherwise one of them, whichever came
 * first, took them for zero and the others did not.
 */
import { addInput, createGraph } from "./graph.js";
import { elementwise } from "./operators.js";
import { finishProgram } from "./program.js";
import { createSessions } from "./sessions.js";

/** Makes a session, so that this thread and those that it starts take denormal numbers for zero. */
export async function flushDenormals(): Promise<void> {
  const sessions = createSessions(1);
  await sessions.get("first", () => {
    const graph = createGraph();
    const number = addInput(graph, "number", "float32", [1]);
    return finishProgram(graph, new Map([["square", elementwise("Mul", number, number)]]));
  });
  await sessions.dispose();
}
