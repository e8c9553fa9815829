/** Tokens of TextWorld's logic language. */
import { EnvError } from "../env.js";

/** A token: a name, a text in quotes (without them), or a sign. */
export interface Token {
  readonly kind: "name" | "text" | "sign";
  readonly value: string;
  readonly line: number;
}

const TOKEN =
  /(?<space>\s+|#[^\n]*)|"""(?<long>[\s\S]*?)"""|"(?<text>[^"\n]*)"|(?<name>[\w/']+)|(?<sign>::|->|[{}():;,=&|$])/y;

/** Splits a text of the logic language; `file` is named in errors. */
export function logicTokens(file: string, text: string): readonly Token[] {
  const tokens: Token[] = [];
  let line = 1;
  for (let at = 0; at < text.length; ) {
    TOKEN.lastIndex = at;
    const groups = TOKEN.exec(text)?.groups;
    if (groups === undefined)
      throw new EnvError(
        `${file}: KB.logic, line ${line}: expected a name, a text in quotes or a sign, found ${JSON.stringify(text.slice(at, at + 20))}`,
      );
    const quoted = groups.long ?? groups.text;
    if (quoted !== undefined) tokens.push({ kind: "text", value: quoted, line });
    else if (groups.name !== undefined) tokens.push({ kind: "name", value: groups.name, line });
    else if (groups.sign !== undefined) tokens.push({ kind: "sign", value: groups.sign, line });
    for (let end = text.indexOf("\n", at); end !== -1 && end < TOKEN.lastIndex; ) {
      line++;
      end = text.indexOf("\n", end + 1);
    }
    at = TOKEN.lastIndex;
  }
  return tokens;
}
