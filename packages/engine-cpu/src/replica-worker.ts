/** The worker thread of a replica. */
import { parentPort, workerData } from "node:worker_threads";
import { threadPort } from "@pawl/core/processes/thread-calls.js";
import type { ReplicaStart } from "./replica.js";
import { serveReplica } from "./replica-calls.js";

const port = parentPort;
if (port === null) throw new Error("this file runs as a worker thread of a replica");
serveReplica(threadPort(port), workerData as ReplicaStart);
