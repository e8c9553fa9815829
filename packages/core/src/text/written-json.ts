/**
 * JSON values as they were written: `2.0` and `2` are the same number to JavaScript, and different
 * ones to a Python tool that gets them.
 */

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+/g;

/**
 * The text of an object's member without white space, if it has a number that parsing and writing
 * would change; undefined otherwise.
 */
export function writtenMember(json: string, name: string): string | undefined {
  let depth = 0;
  let key: string | undefined;
  let inside = false;
  let text = "";
  let changes = false;
  for (const [token] of json.matchAll(TOKEN)) {
    if (inside && depth === 1 && (token === "," || token === "}")) break;
    if (token === "{" || token === "[") depth++;
    if (token === "}" || token === "]") depth--;
    if (inside) {
      text += token;
      changes ||= /^-?\d/.test(token) && String(Number(token)) !== token;
    } else if (depth === 1 && token.startsWith('"') && key === undefined) key = token;
    else if (depth === 1 && token === ":") inside = key === JSON.stringify(name);
    else if (depth === 1 && token === ",") key = undefined;
  }
  return inside && changes ? text : undefined;
}
