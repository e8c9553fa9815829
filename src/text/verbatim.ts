/** Actions as they were written: parsing makes any white space in them one blank. */

/** The action with the white space of the response; as parsed, if it is not found there. */
export function verbatimAction(response: string, action: string): string {
  const words = action.split(" ");
  if (words.length < 2) return action;
  const pattern = words.map((word) => word.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")).join("\\s+");
  const answer = response.slice(response.lastIndexOf("</think>") + 1);
  return new RegExp(pattern).exec(answer)?.[0] ?? action;
}
