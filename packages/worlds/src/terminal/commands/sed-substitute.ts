import type { Piece } from "./sed-script.js";

const upper = (text: string): string => text.replace(/[a-z]/g, (one) => one.toUpperCase());
const lower = (text: string): string => text.replace(/[A-Z]/g, (one) => one.toLowerCase());

export function filled(pieces: readonly Piece[], found: RegExpExecArray): string {
  let result = "";
  let turn = "";
  let once = "";
  for (const piece of pieces) {
    if (typeof piece === "object") {
      if ("UL".includes(piece.turn)) turn = piece.turn;
      else if (piece.turn === "E") turn = "";
      else once = piece.turn;
      continue;
    }
    let text = typeof piece === "number" ? (found[piece] ?? "") : piece;
    if (turn !== "") text = turn === "U" ? upper(text) : lower(text);
    if (once !== "" && text !== "") {
      text = (once === "u" ? upper : lower)(text.slice(0, 1)) + text.slice(1);
      once = "";
    }
    result += text;
  }
  return result;
}
