/** A worker that holds one replica of a model. */
import "./node/globals.js";
import type { ReplicaStart } from "@pawl/engine-cpu/replica.js";
import { serveReplica } from "@pawl/engine-cpu/replica-calls.js";
import { sayAlive } from "./silence.js";

sayAlive();

/** The first message is the model, the others are calls. */
self.onmessage = ({ data }) =>
  serveReplica(
    {
      onMessage: (listener) => {
        self.onmessage = ({ data }) => listener(data);
      },
      send: (message, moved) =>
        self.postMessage(message, { transfer: [...moved] as ArrayBuffer[] }),
    },
    data as ReplicaStart,
  );
