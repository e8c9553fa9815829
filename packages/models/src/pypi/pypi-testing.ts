/** A stand-in for PyPI: its pages of links, and wheels with faults. */
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { zipOf } from "@pawl/core/files/zip-testing.js";
import type { PypiModel, Wheel } from "./pypi-model.js";

/** What the stand-in does wrong. */
interface Faults {
  /** Status of every answer. */
  status?: number;
  /** Ends bodies of this wheel after so many bytes, this often. */
  cut?: { file: string; after: number; times: number };
  /** Sends other bytes of the same length for this wheel. */
  garbles?: string;
  /** Lists no wheel of this package. */
  unlisted?: string;
}

/** A running stand-in. */
export interface PypiStandIn {
  /** What PIP_INDEX_URL takes. */
  readonly index: string;
  readonly asked: {
    readonly url: string;
    readonly range: string | undefined;
    readonly authorization: string | undefined;
  }[];
  faults: Faults;
  close(): Promise<void>;
}

/** Starts a stand-in with wheels by their file names. */
export async function startPypi(wheels: Readonly<Record<string, Buffer>>): Promise<PypiStandIn> {
  const state: { faults: Faults } = { faults: {} };
  const asked: PypiStandIn["asked"] = [];
  const server = createServer((request, reply) => {
    const { range, authorization } = request.headers;
    const url = request.url!;
    asked.push({ url, range, authorization });
    const { status, unlisted, garbles, cut } = state.faults;
    if (status !== undefined) return void reply.writeHead(status).end();
    const project = /^\/simple\/([\w.-]+)\/$/.exec(url)?.[1];
    if (project !== undefined) {
      const own = Object.keys(wheels).filter((file) =>
        file.startsWith(`${project.replaceAll("-", "_")}-`),
      );
      const links = own.map(
        (file) => `<a data-x="&gt;=3" href="../../files/${file}#sha256=0">x</a>`,
      );
      const page = unlisted === project ? "" : links.join("<br/>\n");
      return void reply.writeHead(own.length > 0 ? 200 : 404).end(`<html>${page}</html>`);
    }
    const file = url.replace("/files/", "");
    const bytes = wheels[file];
    if (bytes === undefined) return void reply.writeHead(404).end();
    const body = garbles === file ? Buffer.alloc(bytes.length, 7) : bytes;
    const from = Number(/^bytes=(\d+)-/.exec(range ?? "")?.[1] ?? 0);
    const rest = body.subarray(from);
    reply.writeHead(from > 0 ? 206 : 200, { "content-length": rest.length });
    if (cut?.file === file && cut.times > 0) {
      cut.times--;
      reply.write(rest.subarray(0, cut.after), () => setTimeout(() => reply.destroy(), 20));
    } else reply.end(rest);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return Object.assign(state, {
    index: `http://127.0.0.1:${(server.address() as AddressInfo).port}/simple`,
    asked,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}

/** A file in so many slices, each in the wheel of a package of its own, and its line of the table. */
export function sliced(
  name: string,
  content: Buffer,
  slices: number,
): { readonly model: PypiModel; readonly files: Readonly<Record<string, Buffer>> } {
  const size = Math.ceil(content.length / slices);
  const files: Record<string, Buffer> = {};
  const wheels: Wheel[] = [];
  for (let i = 0; i < slices; i++) {
    const project = `${name}${i + 1}`;
    const file = `${project.replaceAll("-", "_")}-1.0-py3-none-any.whl`;
    const member = `data/part${i + 1}.bin`;
    const bytes = zipOf({
      [member]: content.subarray(i * size, (i + 1) * size),
      "__init__.py": Buffer.from("raise SystemExit('run')"),
    });
    files[file] = bytes;
    wheels.push({ project, file, bytes: bytes.length, sha256: sha256(bytes), member });
  }
  const model = { upstream: `o/${name}`, bytes: content.length, sha256: sha256(content), wheels };
  return { model, files };
}

export const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");
