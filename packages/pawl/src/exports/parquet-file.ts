/** Episodes as a Parquet file: one row each, in row groups, so that memory holds one group. */

import { writeFileAtomically, writeFully } from "@pawl/core/files/atomic-file.js";
import type { ParquetWriter as Writer } from "hyparquet-writer";
import type { EpisodeJson } from "./episode-json.js";

type Element = Writer["schema"][number];

/** Few enough that a group of long episodes fits in memory. */
const ROWS_PER_GROUP = 64;

/** Writes rows to a file that appears when it is complete. */
export async function writeParquet(
  file: string,
  rows: Iterable<EpisodeJson>,
  about: Readonly<Record<string, string>>,
): Promise<void> {
  // 0.4 MB that only this needs.
  const { ByteWriter, ParquetWriter } = await import("hyparquet-writer");
  await writeFileAtomically(file, async (handle) => {
    const bytes = new ByteWriter();
    const flush = async (): Promise<void> => {
      await writeFully(handle, new Uint8Array(bytes.buffer, 0, bytes.index));
      bytes.index = 0;
    };
    const writer = new ParquetWriter({
      writer: Object.assign(bytes, { flush, finish: flush }),
      schema: SCHEMA,
      kvMetadata: Object.entries(about).map(([key, value]) => ({ key, value })),
    });
    let group: EpisodeJson[] = [];
    const writeGroup = async (): Promise<void> => {
      const columnData = COLUMNS.map((name) => ({
        name,
        data: group.map((row) => cell(row, name)),
      }));
      await writer.write({ columnData, rowGroupSize: ROWS_PER_GROUP });
      group = [];
    };
    for (const row of rows) {
      group.push(row);
      if (group.length === ROWS_PER_GROUP) await writeGroup();
    }
    if (group.length > 0) await writeGroup();
    await writer.finish();
  });
}

const text = (name: string): Element => ({
  name,
  type: "BYTE_ARRAY",
  converted_type: "UTF8",
  repetition_type: "OPTIONAL",
});
const number = (name: string, type: "INT32" | "INT64" | "DOUBLE" | "BOOLEAN"): Element => ({
  name,
  type,
  repetition_type: "OPTIONAL",
});
const group = (name: string, children: readonly (readonly Element[])[]): readonly Element[] => [
  { name, repetition_type: "OPTIONAL", num_children: children.length },
  ...children.flat(),
];
const list = (name: string, [first, ...rest]: readonly Element[]): readonly Element[] => [
  { name, repetition_type: "OPTIONAL", num_children: 1, converted_type: "LIST" },
  { name: "list", repetition_type: "REPEATED", num_children: 1 },
  { ...first!, name: "element" },
  ...rest,
];

const FIELDS: readonly (readonly Element[])[] = [
  ...["id", "run", "environment", "task", "split", "type"].map((name) => [text(name)]),
  ...(["group", "attempt"] as const).map((name) => [number(name, "INT32")]),
  [number("seed", "INT64")],
  ...["policy", "goal"].map((name) => [text(name)]),
  [number("return", "DOUBLE")],
  [number("success", "BOOLEAN")],
  [number("score", "DOUBLE")],
  ...["stop", "error", "given", "result", "why"].map((name) => [text(name)]),
  list("rewards", [number("element", "DOUBLE")]),
  list(
    "messages",
    group("element", [
      ...["role", "content", "reasoning_content"].map((name) => [text(name)]),
      list(
        "tool_calls",
        group("element", [
          [text("id")],
          [text("type")],
          group("function", [[text("name")], [text("arguments")]]),
        ]),
      ),
      [text("tool_call_id")],
    ]),
  ),
  // Schemas of tools differ from one to the next: as JSON text.
  [text("tools")],
  list(
    "steps",
    group("element", [
      ...["prompt", "response", "action", "observation"].map((name) => [text(name)]),
      [number("reward", "DOUBLE")],
      ...["well_formed", "valid", "strayed"].map((name) => [number(name, "BOOLEAN")]),
      list("calls", group("element", [[text("tool")], [text("arguments")], [text("result")]])),
      [number("seconds", "DOUBLE")],
    ]),
  ),
  list(
    "sequences",
    group("element", [
      ...["steps", "token_ids", "sampled", "observed"].map((name) =>
        list(name, [number("element", "INT32")]),
      ),
      ...["logprobs", "sampled_logprobs"].map((name) => list(name, [number("element", "DOUBLE")])),
      [number("temperature", "DOUBLE")],
    ]),
  ),
];

const COLUMNS = FIELDS.map(([first]) => first!.name as keyof EpisodeJson);

const SCHEMA: Element[] = [{ name: "root", num_children: FIELDS.length }, ...FIELDS.flat()];

function cell(row: EpisodeJson, name: keyof EpisodeJson): unknown {
  if (name === "tools") return row.tools === undefined ? undefined : JSON.stringify(row.tools);
  return name === "seed" ? BigInt(row.seed) : row[name];
}
