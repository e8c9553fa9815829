/** Whether a model to start from can already hold a conversation, known before its settings are read. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { UserError } from "@pawl/core/errors.js";
import { readRegularText } from "@pawl/core/files/regular-file.js";
import { isPreset } from "@pawl/engine-cpu/init.js";
import { isFetched } from "@pawl/models/fetch-model.js";
import { openGguf } from "@pawl/models/gguf/gguf-file.js";
import { parseHubName } from "@pawl/models/hub/hub-name.js";
import { previewHubModel } from "@pawl/models/hub-model.js";
import { findSavedModel } from "@pawl/training/saved-model.js";

/**
 * Whether it has a chat template. Only small files are read, and fetched; of a model that cannot be
 * looked at, the run says what is wrong.
 */
export async function isChatModel(start: string | undefined): Promise<boolean> {
  // A server's own model is not known before it is opened.
  if (start === undefined || isPreset(start) || start === "served") return false;
  try {
    if (!isFetched(start)) return hasTemplate(findSavedModel(start).tokenizer);
    if (existsSync(start)) return openGguf(start).metadata.has("tokenizer.chat_template");
    const name = parseHubName(start);
    // A file of a repository is not fetched only to look at it.
    if (name === undefined || name.file !== undefined) return true;
    return hasTemplate((await previewHubModel(name)).folder);
  } catch (error) {
    if (error instanceof UserError) return isFetched(start) && !existsSync(start);
    throw error;
  }
}

function hasTemplate(folder: string): boolean {
  if (existsSync(join(folder, "chat_template.jinja"))) return true;
  const file = join(folder, "tokenizer_config.json");
  if (!existsSync(file)) return false;
  try {
    return "chat_template" in (JSON.parse(readRegularText(file)) as object);
  } catch {
    return false;
  }
}
