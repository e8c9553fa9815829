/** Result cards on disk: `card.json` for programs, `card.md` for people. */
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { readRegularText } from "@pawl/core/files/regular-file.js";
import { writeSmallFile } from "@pawl/core/runs/small-file.js";
import { type Card, CardError, cardSchema } from "./card.js";
import { cardMarkdown } from "./card-markdown.js";

/** Writes a card beside a run's records: `card.json`, and `card.md` for people. */
export function writeCard(folder: string, card: Card): void {
  writeSmallFile(join(folder, CARD_FILE), `${JSON.stringify(card, undefined, 1)}\n`);
  writeSmallFile(join(folder, "card.md"), cardMarkdown(card));
}

const CARD_FILE = "card.json";

/** Reads a card by the folder of an evaluation or by its file. */
export function readCard(path: string): Card {
  if (!existsSync(path))
    throw new CardError(`${path} does not exist: expected a run folder of pawl eval, or a card`);
  const file = statSync(path).isDirectory() ? join(path, CARD_FILE) : path;
  if (!existsSync(file))
    throw new CardError(
      `${path} has no ${CARD_FILE}: expected a run of pawl eval that has ended; evaluate again to get one`,
    );
  let json: unknown;
  try {
    json = JSON.parse(readRegularText(file));
  } catch (error) {
    throw new CardError(`${file} is not JSON: ${(error as Error).message}`, { cause: error });
  }
  const parsed = cardSchema.safeParse(json);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new CardError(
    `${file} is no result card of this version: ${issue!.path.join(".")}: ${issue!.message}`,
  );
}
