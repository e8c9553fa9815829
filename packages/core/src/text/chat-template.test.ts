/** Within its limits, a template is rendered as the library renders it; `tests/attacks` is beyond. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Template } from "@huggingface/jinja";
import { describe, expect, it } from "vitest";
import { parseChatTemplate } from "./chat-template.js";

const variables = {
  messages: [
    { role: "system", content: "Be brief.\nBe kind." },
    { role: "user", content: "  <think>a</think> b " },
    {
      role: "assistant",
      content: "",
      tool_calls: [{ function: { name: "f", arguments: { x: 1 } } }],
    },
    { role: "tool", content: "é 1, 2" },
  ],
  tools: [{ type: "function", function: { name: "f", parameters: { type: "object" } } }],
  add_generation_prompt: true,
  eos_token: "</s>",
};
const same = (source: string): void =>
  expect(parseChatTemplate(source).render(variables)).toBe(new Template(source).render(variables));

describe("a chat template", () => {
  it.each([
    "{% for i in range(3) %}{{ i }}{% endfor %}{{ range(2, 9, 3) }}{{ range(5, 0, -2) }}{{ range(-1) }}",
    "{{ messages[1].content.split('</think>')[-1].strip() }}{{ messages[1]['content']['replace']('a', 'b') }}",
    "{{ messages[1].content.replace('<', '[', 1) }}{{ messages[0].content | replace('e', 'i') }}",
    "{{ messages | map(attribute='role') | join(', ') }}{{ messages | selectattr('role', 'equalto', 'user') | list | length }}",
    "{{ messages[0].content | indent(2, first=true) }}{% filter indent(width=3) %}a\nb{{ eos_token }}{% endfilter %}",
    "{{ tools | tojson(indent=2) }}{{ tools | tojson }}{{ [3, 1, 2] | sort(reverse=true) }}",
    "{{ 'think' in messages[1].content }}{{ 'x' not in ['x'] }}{{ 'role' in messages[0] }}{{ 'a' in undefined }}",
    "{% for m in messages %}{% if m.role == 'user' %}{% continue %}{% endif %}{% if loop.last %}{% break %}{% endif %}{{ m.role }}{% endfor %}",
    "{% macro f(n) %}{% if n %}{{ n }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(20) }}{{ messages[::-1][0].role }}",
    "{% set ns = namespace(l=[]) %}{% for m in messages %}{% set ns.l = ns.l + [m.role] %}{% endfor %}{{ ns.l }}{{ [1] | first }}",
    "{{ strftime_now('%Y %B %d') }}{{ True }}{{ none }}{{ missing is defined }}{{ messages[0]['content'][3:8] }}",
  ])("gives what the library gives: %s", same);

  it("may refuse messages in its own words", () => {
    const template = parseChatTemplate("{{ raise_exception('roles must alternate') }}");
    expect(() => template.render(variables)).toThrow("roles must alternate");
  });

  const qwen = process.env.PAWL_QWEN_TOKENIZER;
  it.skipIf(qwen === undefined)("of Qwen gives what the library gives", () => {
    const config = readFileSync(join(qwen!, "tokenizer_config.json"), "utf8");
    same((JSON.parse(config) as { chat_template: string }).chat_template);
  });
});
