/**
 * A connection to a JVM's py4j gateway. Requests may be sent before earlier ones are answered:
 * answers come in order. After any failure (time-out, garbage, the other end gone) it is dead, and
 * so are the requests that still wait.
 */
import { connect, type Socket } from "node:net";
import { EnvError } from "@pawl/core/envs/env.js";

// The lines in which py4j's gateway is spoken to: a request is a command, its parts and an end
// line; an answer is one line. Values carry a letter for their type.

/** An object that lives in the JVM. */
interface JavaObject {
  readonly id: string;
}

/** What a method can be given. Numbers are Java's `int`. */
export type JavaArgument = string | number | boolean | null | JavaObject;

/** What a method can give back; `undefined` for `void`. */
export type JavaValue = string | number | boolean | null | undefined | JavaObject;

/** An answer: a value, or what was thrown. */
type Answer = { readonly value: JavaValue } | { readonly thrown: JavaValue };

/** Calls a method of an object, or a static one of `z:` and the name of a class. */
export function callRequest(
  target: JavaObject | `z:${string}`,
  method: string,
  args: readonly JavaArgument[],
): string {
  return request("c", [typeof target === "string" ? target : target.id, method], args);
}

/** Makes an object of a class. */
export function constructRequest(className: string, args: readonly JavaArgument[]): string {
  return request("i", [className], args);
}

/** Lets the JVM forget an object. */
export function releaseRequest({ id }: JavaObject): string {
  return request("m", ["d", id], []);
}

function request(command: string, parts: readonly string[], args: readonly JavaArgument[]): string {
  return `${[command, ...parts, ...args.map(writeArgument), "e"].join("\n")}\n`;
}

function writeArgument(value: JavaArgument): string {
  if (value === null) return "n";
  if (typeof value === "object") return `r${value.id}`;
  if (typeof value === "boolean") return `b${value}`;
  if (typeof value === "number") return `i${value}`;
  return `s${escapeText(value)}`;
}

const ESCAPES: Readonly<Record<string, string>> = { "\\": "\\\\", "\n": "\\n", "\r": "\\r" };

function escapeText(text: string): string {
  return text.replace(/[\\\n\r]/g, (character) => ESCAPES[character]!);
}

function unescapeText(text: string): string {
  return text.replace(/\\(.)/g, (_, letter: string) =>
    letter === "n" ? "\n" : letter === "r" ? "\r" : letter,
  );
}

const SHOWN = 80;

/** Reads an answer; what is none is an `EnvError`. */
export function readAnswer(line: string): Answer {
  if (line.startsWith("!y")) return { value: readValue(line.slice(2), line) };
  if (line.startsWith("!x")) return { thrown: readValue(line.slice(2), line) };
  throw garbage(line);
}

function garbage(line: string): EnvError {
  return new EnvError(
    `scienceworld: expected an answer of py4j's gateway (!y or !x, a type, a value), got ${JSON.stringify(line.slice(0, SHOWN))}`,
  );
}

function readValue(text: string, line: string): JavaValue {
  const value = text.slice(1);
  switch (text[0]) {
    case undefined:
    case "v":
      return undefined;
    case "n":
      return null;
    case "s":
      return unescapeText(value);
    case "b":
      if (value === "true" || value === "false") return value === "true";
      break;
    case "i":
    case "L":
    case "d":
      if (/^-?(\d+(\.\d+)?(E-?\d+)?|Infinity)$|^NaN$/.test(value)) return Number(value);
      break;
    // References, lists, maps, sets, arrays and iterators: all are objects with an id.
    case "r":
    case "l":
    case "a":
    case "h":
    case "t":
    case "g":
      if (/^[a-zA-Z]\w*$/.test(value)) return { id: value };
      break;
  }
  throw garbage(line);
}

/** The longest answer; the longest list of valid actions seen has 0.3 MB. */
const MOST_BYTES = 64 * 2 ** 20;

/** A connection to a gateway. */
export interface Gateway {
  /** Calls a method; one that throws is an `EnvError`. `seconds` replaces the time limit. */
  call(
    target: JavaObject | `z:${string}`,
    method: string,
    args?: readonly JavaArgument[],
    seconds?: number,
  ): Promise<JavaValue>;
  /**
   * Calls a method whose answer is long, on a connection of its own. The JVM's side holds the end
   * of a long answer back until its beginning is acknowledged, which takes 40 ms on a connection
   * that was used before.
   */
  callApart(
    target: JavaObject | `z:${string}`,
    method: string,
    args?: readonly JavaArgument[],
  ): Promise<JavaValue>;
  construct(className: string, args?: readonly JavaArgument[]): Promise<JavaObject>;
  /** Lets the JVM forget an object. */
  release(object: JavaObject): Promise<void>;
  /** Whether a request waits for its answer. */
  readonly busy: boolean;
  /** Ends the connection; requests that wait fail with this error. */
  fail(error: EnvError): void;
}

/** How to connect. */
export interface GatewayOptions {
  readonly port: number;
  /** Seconds that an answer may take. */
  readonly seconds: number;
  /** Called once, with the reason, when the connection is dead. */
  readonly onDead?: (error: EnvError) => void;
}

interface Waiting {
  readonly what: string;
  readonly seconds: number;
  resolve(answer: Answer): void;
  reject(error: EnvError): void;
}

/** Connects to a gateway of this machine. */
export async function connectGateway(options: GatewayOptions): Promise<Gateway> {
  const { port } = options;
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  await new Promise<void>((resolve, reject) => {
    const late = setTimeout(
      () => socket.destroy(new Error(`no connection within ${options.seconds} s`)),
      options.seconds * 1000,
    );
    socket.once("connect", resolve).once("error", (error) => {
      const reason = `the simulator's port ${port} cannot be reached: ${error.message}`;
      reject(new EnvError(`scienceworld: ${reason}`, { cause: error }));
    });
    socket.once("close", () => clearTimeout(late)).once("connect", () => clearTimeout(late));
  });
  return createGateway(socket, options);
}

function createGateway(socket: Socket, options: GatewayOptions): Gateway {
  const waiting: Waiting[] = [];
  let apart = 0;
  let dead: EnvError | undefined;
  let timer: NodeJS.Timeout | undefined;

  const fail = (error: EnvError): void => {
    if (dead !== undefined) return;
    dead = error;
    clearTimeout(timer);
    socket.destroy();
    for (const { reject } of waiting.splice(0)) reject(error);
    options.onDead?.(error);
  };
  /** The clock of the request that is answered next; idle connections keep no process alive. */
  const watch = (): void => {
    clearTimeout(timer);
    const [next] = waiting;
    if (next === undefined) {
      socket.unref();
      return;
    }
    socket.ref();
    const late = `${next.what} took longer than ${next.seconds} s; the process was ended`;
    timer = setTimeout(() => fail(new EnvError(`scienceworld: ${late}`)), next.seconds * 1000);
  };
  const take = (line: string): void => {
    if (dead !== undefined) return;
    try {
      const answer = readAnswer(line);
      const request = waiting.shift();
      if (request === undefined)
        throw new EnvError("scienceworld: an answer that nobody asked for");
      watch();
      request.resolve(answer);
    } catch (error) {
      fail(error as EnvError);
    }
  };
  const lines = lineReader(take, () =>
    fail(new EnvError(`scienceworld: an answer has more than ${MOST_BYTES / 2 ** 20} MB`)),
  );
  socket.on("data", lines);
  socket.on("error", (error) => fail(gone(error.message)));
  socket.on("close", () => fail(gone("the connection was closed")));
  socket.unref();

  const send = (text: string, what: string, seconds = options.seconds): Promise<Answer> =>
    new Promise((resolve, reject) => {
      if (dead !== undefined) return reject(dead);
      waiting.push({ what, seconds, resolve, reject });
      if (waiting.length === 1) watch();
      socket.write(text);
    });
  const ask = async (text: string, what: string, seconds?: number): Promise<JavaValue> => {
    const answer = await send(text, what, seconds);
    if ("value" in answer) return answer.value;
    throw new EnvError(`scienceworld: ${what} failed: ${await inWords(answer.thrown)}`);
  };
  /** What an exception says; one that cannot even say that is named by its id. */
  const inWords = async (thrown: JavaValue): Promise<string> => {
    if (typeof thrown !== "object" || thrown === null) return String(thrown ?? "an exception");
    const said = await send(callRequest(thrown, "toString", []), "an exception's text");
    return "value" in said && typeof said.value === "string" ? said.value : thrown.id;
  };
  const callApart: Gateway["callApart"] = async (target, method, args) => {
    if (dead !== undefined) throw dead;
    let answered = false;
    apart += 1;
    try {
      const other = await connectGateway({
        ...options,
        onDead: (error) => void (answered || fail(error)),
      });
      try {
        return await other.call(target, method, args);
      } finally {
        answered = true;
        other.fail(gone("the connection was for one answer"));
      }
    } finally {
      apart -= 1;
    }
  };
  return {
    callApart,
    call: (target, method, args = [], seconds) =>
      ask(callRequest(target, method, args), method, seconds),
    async construct(className, args = []) {
      const made = await ask(constructRequest(className, args), `making a ${className}`);
      if (typeof made === "object" && made !== null) return made;
      throw new EnvError(`scienceworld: making a ${className} gave ${String(made)}, not an object`);
    },
    async release(object) {
      await ask(releaseRequest(object), "releasing an object");
    },
    get busy() {
      return waiting.length > 0 || apart > 0;
    },
    fail,
  };
}

function gone(reason: string): EnvError {
  return new EnvError(`scienceworld: the simulator's process is gone (${reason})`);
}

/** Cuts a stream of bytes into lines; a line that grows without end is reported. */
function lineReader(onLine: (line: string) => void, onTooLong: () => void): (data: Buffer) => void {
  let parts: Buffer[] = [];
  let bytes = 0;
  return (data) => {
    let from = 0;
    for (let end = data.indexOf(10); end !== -1; end = data.indexOf(10, from)) {
      parts.push(data.subarray(from, end));
      const line = Buffer.concat(parts).toString("utf8");
      parts = [];
      bytes = 0;
      from = end + 1;
      onLine(line);
    }
    if (from === data.length) return;
    parts.push(data.subarray(from));
    bytes += data.length - from;
    if (bytes > MOST_BYTES) onTooLong();
  };
}
