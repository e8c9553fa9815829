/** The documentation site, from the same Markdown that is read in the repository. */
import { readFileSync } from "node:fs";
import { posix } from "node:path";
import { defineConfig } from "vitepress";
import { slug } from "../slug.js";

const { version } = JSON.parse(
  readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
) as { readonly version: string };

const page = (text: string, link: string) => ({ text, link });

export default defineConfig({
  title: `Pawl ${version}`,
  description: "Train language agents that know what their actions do.",
  lang: "en-GB",
  // No icon; without this, browsers ask for one.
  head: [
    ["link", { rel: "icon", href: "data:," }],
    // The names of languages beside code are too pale to read.
    ["style", {}, ":root { --vp-code-lang-color: var(--vp-c-text-2); }"],
  ],
  // Folders show README.md, sites show index.html.
  rewrites: { "README.md": "index.md" },
  // Opened from any folder of a server.
  base: process.env.PAWL_DOCS_BASE ?? "/",
  lastUpdated: false,
  themeConfig: {
    search: { provider: "local" },
    outline: { level: [2, 3] },
    docFooter: { prev: false, next: false },
    nav: [
      page("Tutorials", "/tutorials/first-agent"),
      page("How-to", "/settings"),
      page("Reference", "/reference/commands"),
      page("Explanation", "/architecture"),
      // Not pages of the site: docs/browser.
      { ...page("Try it here", "/try/index.html"), target: "_self" },
      { ...page("Recorded runs", "/try/index.html#/"), target: "_self" },
    ],
    sidebar: [
      {
        text: "Tutorials",
        items: [
          page("Your first agent", "/tutorials/first-agent"),
          page("Your own environment", "/tutorials/own-environment"),
          page("Train your own agent", "/tutorials/own-agent"),
          page("Train a real model", "/tutorials/real-model"),
          page("From laptop to GPU", "/tutorials/laptop-to-gpu"),
        ],
      },
      {
        text: "How-to",
        items: [
          page("Settings and resuming", "/settings"),
          page("Where models come from", "/models"),
          page("Plugins", "/plugins"),
          page("The page", "/ui"),
          page("Agents", "/agents"),
          page("Policies", "/policies"),
          page("Prompts and conversations", "/prompts"),
          page("What is played", "/rollouts"),
          page("Advantages and the critic", "/advantages"),
          page("Comparing ways to learn from observations", "/observations"),
          page("World models", "/world-models"),
          page("RWML", "/rwml"),
          page("WebShop", "/webshop"),
          page("TextWorld", "/textworld"),
          page("ScienceWorld", "/scienceworld"),
          page("Search QA", "/search-qa"),
          page("τ-bench and tools", "/tau-bench"),
          page("A terminal", "/terminal"),
          page("Evaluations", "/evaluation"),
          page("Export", "/export"),
          page("Serve a model to agents", "/serve-model"),
          page("Environments over the network", "/serve-env"),
          page("Tools", "/tools"),
          page("Alarms", "/alarms"),
          page("Trackers", "/trackers"),
          page("Engine servers", "/remote-engines"),
        ],
      },
      {
        text: "Reference",
        items: [
          page("Commands and settings", "/reference/commands"),
          page("Environments", "/reference/environments"),
          page("Library API", "/reference/api/"),
          page("Engine protocol", "/engine-protocol"),
        ],
      },
      {
        text: "Explanation",
        items: [
          page("Architecture", "/architecture"),
          page("Attacks", "/attacks"),
          page("Why PaW", "/why-paw"),
          page("Papers: what differs", "/papers"),
          page("Performance", "/performance"),
          page("On a GPU", "/gpu"),
        ],
      },
      {
        text: "Results",
        items: [
          page("The default run", "/results/laptop"),
          page("The desk", "/results/desk"),
          page("An agent with tools", "/results/agent"),
          page("With and without PaW", "/results/paw"),
          page("ALFWorld on a GPU", "/results/alfworld-gpu"),
          page("A pretrained model", "/results/observations"),
          page("Starts that have learnt observations", "/results/warm-starts"),
          page("The papers' regime", "/results/regime"),
          page("Choosing before acting", "/results/knowledge"),
          page("Changed worlds", "/results/changed-worlds"),
          page("Success per sampled token", "/results/samples"),
          page("World models", "/results/world-model"),
          page("A pretrained world model", "/results/world-model-smollm2"),
          page("RWML", "/results/rwml"),
          page("TextWorld, ScienceWorld and tools", "/results/worlds"),
        ],
      },
    ],
  },
  markdown: {
    anchor: { slugify: slug },
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
    // Addresses in help texts are examples.
    linkify: false,
    config(md) {
      // Files outside docs/ are no pages of the site: their names stand there without a link.
      md.core.ruler.push("outside-links", ({ tokens, env }) => {
        for (const { children } of tokens) {
          let outside = false;
          for (const token of children ?? []) {
            if (token.type === "link_open") {
              const href = token.attrGet("href") ?? "";
              const from = posix.dirname((env as { relativePath?: string }).relativePath ?? ".");
              outside = /^\.\.?\//.test(href) && posix.join(from, href).startsWith("..");
            }
            if (!outside || !token.type.startsWith("link_")) continue;
            token.tag = "span";
            token.attrs = [];
            if (token.type === "link_close") outside = false;
          }
        }
      });
    },
  },
});
