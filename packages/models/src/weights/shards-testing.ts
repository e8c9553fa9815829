/** Checkpoints in several files, for tests. */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openSafetensors, readTensor, writeSafetensors } from "./safetensors.js";

/** Cuts a folder's model.safetensors into three files with an index. */
export async function shardCheckpoint(folder: string): Promise<void> {
  const whole = join(folder, "model.safetensors");
  const file = await openSafetensors(whole);
  const names = [...file.tensors.keys()];
  const map: Record<string, string> = {};
  for (let shard = 0; shard < 3; shard++) {
    const name = `model-0000${shard + 1}-of-00003.safetensors`;
    const part = names.filter((_, i) => Math.floor((3 * i) / names.length) === shard);
    const tensors = new Map<string, { shape: readonly number[]; data: Float32Array }>();
    for (const one of part) {
      tensors.set(one, { shape: file.tensors.get(one)!.shape, data: await readTensor(file, one) });
      map[one] = name;
    }
    await writeSafetensors(join(folder, name), tensors);
  }
  rmSync(whole);
  const index = { metadata: {}, weight_map: map };
  writeFileSync(join(folder, "model.safetensors.index.json"), JSON.stringify(index));
}
