/** Text written piece by piece to a file that appears when it is complete. */
import { writeFileAtomically, writeFully } from "@pawl/core/files/atomic-file.js";

/** Pieces are gathered until they are this long. */
const CHUNK = 1 << 20;

/** Writes the pieces one after another; memory holds one chunk. */
export async function writePieces(file: string, pieces: Iterable<string>): Promise<void> {
  await writeFileAtomically(file, async (handle) => {
    let waiting: string[] = [];
    let length = 0;
    const flush = async (): Promise<void> => {
      await writeFully(handle, Buffer.from(waiting.join("")));
      waiting = [];
      length = 0;
    };
    for (const piece of pieces) {
      waiting.push(piece);
      length += piece.length;
      if (length >= CHUNK) await flush();
    }
    await flush();
  });
}

/** JSON Lines. */
export function* lines(values: Iterable<unknown>): Generator<string> {
  for (const value of values) yield `${JSON.stringify(value)}\n`;
}
