/**
 * What a server that stalls does to requests on idle connections.
 *
 *   npm run bench -- stall [--keep-alive 5000] [--seconds 4] [--clients 20]
 *
 * Clients ask once, and their connections become idle. Then the server gets no processor time for a
 * while, as on a crowded machine, and meanwhile they ask again on the same connections. If those are
 * older than the server keeps idle ones when it goes on, it closes them before it reads what waits
 * there. Prints how many were answered. A plain server of Node's, because ours keep theirs for 75 s.
 */
import { spawn } from "node:child_process";
import { setTimeout as wait } from "node:timers/promises";

const SERVER = `
const server = require("node:http").createServer((request, reply) => {
  request.resume().on("end", () => reply.end("answer"));
});
server.keepAliveTimeout = Number(process.argv[1]);
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
`;
/** Node's clients leave connections alone in the last two seconds that a server keeps them. */
const IDLE_MS = 2400;

export async function main(args: readonly string[]): Promise<object> {
  const numberOf = (flag: string, usual: number): number => {
    const at = args.indexOf(flag);
    return at < 0 ? usual : Number(args[at + 1]);
  };
  const keepAlive = numberOf("--keep-alive", 5000);
  const [seconds, clients] = [numberOf("--seconds", 4), numberOf("--clients", 20)];
  const server = spawn(process.execPath, ["-e", SERVER, String(keepAlive)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    const port = await new Promise<string>((done) =>
      server.stdout.once("data", (text: Buffer) => done(text.toString().trim())),
    );
    const ask = (): Promise<string> =>
      fetch(`http://127.0.0.1:${port}/`, { method: "POST", body: "question" })
        .then((reply) => reply.text())
        .catch((error: Error) => String((error.cause as { code?: string })?.code ?? error));
    const askAll = () => Promise.all(Array.from({ length: clients }, ask));
    await askAll();
    await wait(IDLE_MS);
    server.kill("SIGSTOP");
    const asked = askAll();
    await wait(seconds * 1000);
    server.kill("SIGCONT");
    const answers: Record<string, number> = {};
    for (const answer of await asked) answers[answer] = (answers[answer] ?? 0) + 1;
    return { keepAlive, seconds, clients, answers };
  } finally {
    server.kill("SIGKILL");
  }
}
