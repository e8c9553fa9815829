/** What a story does that no correct one would: it breaks the episode, and says where. */
import { EnvError } from "../../env.js";
import type { Story } from "./story.js";

/** The error for a story that does something impossible. */
export function storyFault(story: Story, address: number, problem: string): EnvError {
  return new EnvError(
    `${story.file}: at address 0x${address.toString(16)}: ${problem}; the story file is damaged, or not made by TextWorld`,
  );
}
