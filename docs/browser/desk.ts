/** The worker that answers the page: the server of `pawl try`, over files in memory. */
import "./node/globals.js";
import { household } from "@pawl/core/envs/household/household.js";
import { registerEnv } from "@pawl/core/envs/registry.js";
import { createPlay, type Lambda } from "@pawl/ui/server/play.js";
import { createUiServer } from "@pawl/ui/server/server.js";
import { tarOf } from "./archive.js";
import type { FromDesk, FromTrainer, ToDesk, ToTrainer } from "./messages.js";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "./node/files.js";
import { Asked, type createServer, Reply } from "./node/http.js";
import { applyChanges, changesBelow } from "./node/mirror.js";
import { dirname, join } from "./node/paths.js";
import { hear, sayAlive } from "./silence.js";
import { TRIAL } from "./trial.js";

registerEnv(household);
sayAlive();

const ROOT = "/runs";
const KEY = "page";
const say = (message: FromDesk, moved: Transferable[] = []): void =>
  self.postMessage(message, { transfer: moved });

// The trainer is started with the first training, and stays for the next.
let trainer: Worker | undefined;
let ended: ((problem: string | undefined) => void) | undefined;
const tell = (message: ToTrainer): void => trainer?.postMessage(message);

/** Trains until the training ends; fails with what to do if it fails, or if its worker is lost. */
async function train(lambda: Lambda | undefined): Promise<void> {
  trainer ??= startTrainer();
  const problem = await new Promise<string | undefined>((resolve) => {
    ended = resolve;
    tell({ what: "train", files: changesBelow(ROOT)(), lambda });
  });
  if (problem !== undefined)
    throw new Error(
      `The training stopped: ${problem}. Train it again: it goes on after its last update. If it stops once more, close other tabs, or run npx pawl try.`,
    );
}

function startTrainer(): Worker {
  const worker = new Worker(new URL("trainer.js", self.location.href), {
    type: "module",
    name: "trainer",
  });
  const stop = hear<FromTrainer>(
    worker,
    (data) => {
      if (data.what === "files") return applyChanges(data.files);
      // An engine that could not start will not start in the same worker.
      if (data.problem !== undefined) {
        stop();
        trainer = undefined;
      }
      ended?.(data.problem);
    },
    (why) => {
      trainer = undefined;
      // A process that dies leaves its lock; whether it lives cannot be asked here.
      const folder = join(ROOT, TRIAL.trained);
      for (const name of existsSync(folder) ? (readdirSync(folder) as readonly string[]) : [])
        if (/^lock\b/.test(name)) rmSync(join(folder, name));
      ended?.(why);
    },
  );
  return worker;
}

/** The files that come with the page. */
async function fetchRuns(): Promise<void> {
  const address = (name: string): URL => new URL(`runs/${name}`, self.location.href);
  const list = (await (await fetch(address("files.json"))).json()) as readonly string[];
  await Promise.all(
    list.map(async (name) => {
      const answer = await fetch(address(name));
      if (!answer.ok) throw new Error(`${name} of the page is missing: ${answer.status}`);
      const path = join(ROOT, name);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, new Uint8Array(await answer.arrayBuffer()));
    }),
  );
}

const started = fetchRuns().then(() => {
  const training = { train, pause: () => tell({ what: "pause" }) };
  const play = createPlay({ root: ROOT, defaultWorld: household.name, training });
  return createUiServer({
    folder: ROOT,
    key: KEY,
    trial: TRIAL,
    play: play.handle,
    onFault: (error) => console.error(error),
  }) as unknown as ReturnType<typeof createServer>;
});

const asking = new Map<number, Asked>();

self.onmessage = async ({ data }: { data: ToDesk }) => {
  const { id } = data;
  if (data.what === "leave") {
    asking.get(id)?.leave();
    asking.delete(id);
    return;
  }
  if (data.what === "download") {
    const bytes = archiveOf(data.run);
    say({ what: "archive", id, bytes }, [bytes.buffer]);
    return;
  }
  const answer = (status: number, text: string, isOver: boolean): void => {
    say({ what: "answer", id, status, text, isOver });
    if (isOver) asking.delete(id);
  };
  const asked = new Asked(data.body === undefined ? "GET" : "POST", `/${KEY}/${data.url}`);
  asking.set(id, asked);
  try {
    (await started).answer(asked, new Reply(answer));
    // Who reads a body listens by then.
    setTimeout(() => asked.send(data.body ?? ""), 0);
  } catch (error) {
    answer(500, JSON.stringify({ error: (error as Error).message }), true);
  }
};

/** A run's files; it starts with the run's name. */
function archiveOf(run: string) {
  const folder = join(ROOT, run);
  const names = (readdirSync(folder, { recursive: true }) as readonly string[]).filter((name) =>
    statSync(join(folder, name))?.isFile(),
  );
  return tarOf(
    names.map((name) => [`${run}/${name}`, readFileSync(join(folder, name)) as Buffer] as const),
  );
}
