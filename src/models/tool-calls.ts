/** How a chat template writes tool calls, told from its text. */

const FORMS: readonly (readonly [mark: string, form: string])[] = [
  ["<tool_call>", "JSON between <tool_call> tags"],
  ["[TOOL_CALLS]", "JSON after [TOOL_CALLS]"],
  ["<|python_tag|>", "JSON, or Python after <|python_tag|>"],
  ["<function=", "<function=NAME> tags"],
];

/** The form of tool calls; undefined if the template knows no tools. */
export function toolCallForm(template: string): string | undefined {
  if (!/\btools\b/.test(template)) return undefined;
  return FORMS.find(([mark]) => template.includes(mark))?.[1] ?? "a form of its own";
}
