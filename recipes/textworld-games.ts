/**
 * TextWorld's own games on two cores: `pawl train --recipe textworld-games` with
 * TEXTWORLD_GAMES (`pawl env info textworld` says how to make games).
 *
 * The only teacher is each game's walkthrough, which does not find its way back after a random
 * action: so none are taken, and more episodes than there are training games are the same ones again.
 * Rooms are described at length, so prompts hold the last two steps.
 */
import { textworld } from "./textworld.js";

export default {
  ...textworld,
  prompt: { style: "compact", history: 2 },
  warmStart: { ...textworld.warmStart, episodes: 400, epsilon: 0 },
  updates: 40,
  maxTokens: 24,
};
