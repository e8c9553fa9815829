/** Commands that encode and digest bytes. */
import { createHash } from "node:crypto";
import { FileError } from "../shell/inodes.js";
import type { Call } from "../shell/shell.js";
import { complain, countOf, eachFile, Failure, linesOf, options, out, readNamed } from "./call.js";

export function base64(call: Call): number {
  const given = options(call, "dw:i", { decode: "d", wrap: "w" });
  return eachFile(call, given.operands.slice(0, 1), (text) => {
    if (given.has("d")) {
      const plain = text.replace(/\s/g, "");
      if (!/^[A-Za-z0-9+/]*={0,2}$/.test(plain)) throw new Failure("invalid input");
      out(call, Buffer.from(plain, "base64").toString("latin1"));
      return;
    }
    const encoded = Buffer.from(text, "latin1").toString("base64");
    const width = countOf(given.value("w") ?? "76", "wrap size");
    if (width === 0) out(call, encoded);
    else
      out(
        call,
        (encoded.match(new RegExp(`.{1,${Math.min(width, 60_000)}}`, "g")) ?? [])
          .map((line) => `${line}\n`)
          .join(""),
      );
  });
}

/** `md5sum` and its like. */
export const digest =
  (algorithm: string) =>
  (call: Call): number => {
    const given = options(call, "cbtqsw", { check: "c", quiet: "q", status: "s" });
    const hash = (text: string): string =>
      createHash(algorithm).update(Buffer.from(text, "latin1")).digest("hex");
    if (!given.has("c"))
      return eachFile(call, given.operands, (text, name) => out(call, `${hash(text)}  ${name}\n`));
    let wrong = 0;
    const status = eachFile(call, given.operands, (text) => {
      for (const line of linesOf(text)) {
        const found = /^([0-9a-f]+) [ *](.*)$/.exec(line);
        if (found === null) continue;
        let verdict: string;
        try {
          verdict = hash(readNamed(call, found[2]!)) === found[1] ? "OK" : "FAILED";
        } catch (error) {
          if (!(error instanceof FileError)) throw error;
          complain(call, `${found[2]}: ${error.message}`);
          verdict = "FAILED open or read";
        }
        if (verdict !== "OK") wrong += 1;
        if (!given.has("s") && !(given.has("q") && verdict === "OK"))
          out(call, `${found[2]}: ${verdict}\n`);
      }
    });
    if (wrong > 0)
      complain(call, `WARNING: ${wrong} computed checksum${wrong > 1 ? "s" : ""} did NOT match`);
    return wrong > 0 ? 1 : status;
  };

const hex = (code: number): string => code.toString(16).padStart(2, "0");
const MOST = 2 ** 18;

export function xxd(call: Call): number {
  const given = options(call, "pruc:l:s:g:");
  return eachFile(call, given.operands.slice(0, 1), (text) => {
    if (given.has("r")) {
      const digits = given.has("p")
        ? text.replace(/\s/g, "")
        : linesOf(text)
            .map((line) =>
              line
                .replace(/^[0-9a-f]+: /, "")
                .split("  ")[0]!
                .replace(/ /g, ""),
            )
            .join("");
      out(call, Buffer.from(digits, "hex").toString("latin1"));
      return;
    }
    const bytes = Buffer.from(text.slice(0, Number(given.value("l") ?? MOST)), "latin1");
    const width = Math.max(
      1,
      Math.min(256, Number(given.value("c") ?? (given.has("p") ? 30 : 16))),
    );
    let shown = "";
    for (let at = 0; at < bytes.length; at += width) {
      const row = [...bytes.subarray(at, at + width)];
      if (given.has("p")) shown += `${row.map(hex).join("")}\n`;
      else {
        let pairs = "";
        row.forEach((code, n) => {
          pairs += hex(code) + (n % 2 === 1 ? " " : "");
        });
        const plain = row
          .map((code) => (code > 31 && code < 127 ? String.fromCharCode(code) : "."))
          .join("");
        shown += `${at.toString(16).padStart(8, "0")}: ${pairs.padEnd(Math.ceil((width * 5) / 2))} ${plain}\n`;
      }
    }
    out(call, shown);
  });
}

export function od(call: Call): number {
  const given = options(call, "A:t:cxbvN:j:w:n");
  const kind = given.has("c") ? "c" : given.has("b") ? "o1" : (given.value("t") ?? "o2");
  return eachFile(call, given.operands, (text) => {
    const bytes = Buffer.from(
      text.slice(Number(given.value("j") ?? 0)).slice(0, Number(given.value("N") ?? MOST)),
      "latin1",
    );
    const address = (at: number): string =>
      given.value("A") === "n"
        ? ""
        : at
            .toString(given.value("A") === "d" ? 10 : given.value("A") === "x" ? 16 : 8)
            .padStart(7, "0");
    const names = new Map(
      Object.entries({
        0: "\\0",
        7: "\\a",
        8: "\\b",
        9: "\\t",
        10: "\\n",
        11: "\\v",
        12: "\\f",
        13: "\\r",
      }),
    );
    const cell = (at: number): string => {
      const code = bytes[at]!;
      if (kind.startsWith("c"))
        return (
          names.get(String(code)) ??
          (code > 31 && code < 127 ? String.fromCharCode(code) : code.toString(8).padStart(3, "0"))
        ).padStart(4);
      if (kind.startsWith("x1")) return ` ${hex(code)}`;
      if (kind.startsWith("o1")) return ` ${code.toString(8).padStart(3, "0")}`;
      if (/^[ud]1/.test(kind)) return ` ${String(code).padStart(3)}`;
      if (at % 2 === 1) return "";
      const pair = code + 256 * (bytes[at + 1] ?? 0);
      return kind.startsWith("x")
        ? ` ${pair.toString(16).padStart(4, "0")}`
        : ` ${pair.toString(8).padStart(6, "0")}`;
    };
    let shown = "";
    for (let at = 0; at < bytes.length; at += 16) {
      let row = address(at);
      for (let n = at; n < Math.min(at + 16, bytes.length); n++) row += cell(n);
      shown += `${row}\n`;
    }
    out(call, given.value("A") === "n" ? shown : `${shown}${address(bytes.length)}\n`);
  });
}
