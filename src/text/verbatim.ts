/** Actions as they were written: parsing makes any white space in them one blank. */

/** The action with the white space of the response; as parsed, if it is not found there. */
export function verbatimAction(response: string, action: string): string {
  const words = action.split(" ");
  if (words.length < 2) return action;
  // An action stands after the thoughts, which may mention it.
  const thought = response.lastIndexOf("</think>");
  for (let at = thought + 1; ; at++) {
    at = response.indexOf(words[0]!, at);
    if (at < 0) return action;
    const end = endOf(response, at, words);
    if (end !== undefined) return response.slice(at, end);
  }
}

/** Where the words end that start here, with any white space between them; undefined if they do not. */
function endOf(text: string, start: number, words: readonly string[]): number | undefined {
  let at = start + words[0]!.length;
  for (const word of words.slice(1)) {
    const gap = at;
    while (at < text.length && text[at]!.trim() === "") at++;
    if (at === gap || !text.startsWith(word, at)) return undefined;
    at += word.length;
  }
  return at;
}
