/** The part of `node:http` that the page's server uses, between a page and its worker. */

type Listener = (...args: never[]) => void;

/** Who can be listened to. */
class Emitter {
  private readonly listeners = new Map<string, Listener[]>();
  on(event: string, listener: Listener): this {
    this.listeners.set(event, [...(this.listeners.get(event) ?? []), listener]);
    return this;
  }
  once(event: string, listener: Listener): this {
    return this.on(event, listener);
  }
  off(event: string, listener: Listener): this {
    const others = (this.listeners.get(event) ?? []).filter((one) => one !== listener);
    this.listeners.set(event, others);
    return this;
  }
  removeAllListeners(event: string): this {
    this.listeners.delete(event);
    return this;
  }
  resume(): this {
    return this;
  }
  emit(event: string, ...args: readonly unknown[]): void {
    for (const listener of this.listeners.get(event) ?? []) listener(...(args as never[]));
  }
}

/** A request, whose body follows when somebody can listen to it. */
export class Asked extends Emitter {
  readonly headers = { "content-type": "application/json" };
  readonly socket = Object.assign(new Emitter(), { destroyed: false });
  constructor(
    readonly method: string,
    readonly url: string,
  ) {
    super();
  }
  send(body: string): void {
    this.emit("data", Buffer.from(body));
    this.emit("end");
  }
  leave(): void {
    this.socket.destroyed = true;
    this.socket.emit("close");
    this.emit("close");
  }
}

/** An answer, piece by piece. */
export class Reply extends Emitter {
  headersSent = false;
  readonly writableLength = 0;
  constructor(private readonly take: (status: number, text: string, isOver: boolean) => void) {
    super();
  }
  private status = 200;
  writeHead(status: number): this {
    this.headersSent = true;
    this.status = status;
    return this;
  }
  write(text: string): boolean {
    this.take(this.status, text, false);
    return true;
  }
  end(text: string | Uint8Array = ""): void {
    this.take(this.status, typeof text === "string" ? text : Buffer.from(text).toString(), true);
  }
}

/** A server whose requests are made by whoever has it. */
export const createServer = (
  _: unknown,
  answer: (asked: Asked, reply: Reply) => void,
): { readonly answer: typeof answer; maxConnections: number } => ({ answer, maxConnections: 0 });
