/**
 * MAE of the observation's token: the probability it lacks (PaW eq. 6).
 *
 *   1 − p           d/d log p = −p
 */
import { sub } from "./expression.js";
import { p, type WorldLoss } from "./world-loss.js";

export const mae: WorldLoss<Record<never, never>> = {
  title: "MAE",
  settings: {},
  token: () => sub(1, p),
};
