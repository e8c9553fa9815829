/** Words that a person gives to runs. They are kept in this browser: the page does not write to runs. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { visible } from "./text.js";

type Tags = Readonly<Record<string, readonly string[]>>;
const KEY = "pawl.tags";

function read(): Tags {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? "{}") as Tags;
  } catch {
    return {};
  }
}

/** The tags of all runs; changes in another page are seen too. */
export function useTags(): Tags {
  const [tags, setTags] = useState(read);
  useEffect(() => {
    const changed = (): void => setTags(read());
    addEventListener("storage", changed);
    addEventListener("pawl-tags", changed);
    return () => {
      removeEventListener("storage", changed);
      removeEventListener("pawl-tags", changed);
    };
  }, []);
  return tags;
}

/** The tags of a run. */
export const tagsOf = (tags: Tags, id: string): readonly string[] =>
  Array.isArray(tags[id]) ? tags[id] : [];

/** A run's tags, with a field to change them. */
export function TagEditor({ id }: { readonly id: string }): JSX.Element {
  const tags = tagsOf(useTags(), id);
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  // Whether a key closed the field: then the keyboard goes on from the button.
  const byKey = useRef(false);
  useEffect(() => {
    if (!open && byKey.current) button.current?.focus();
    byKey.current = false;
  }, [open]);
  const save = (text: string): void => {
    const words = [...new Set(text.split(/[\s,]+/).filter(Boolean))];
    localStorage.setItem(KEY, JSON.stringify({ ...read(), [id]: words }));
    dispatchEvent(new Event("pawl-tags"));
    setOpen(false);
  };
  if (open)
    return (
      <input
        class="tags"
        autofocus
        defaultValue={tags.join(" ")}
        aria-label={`Tags of ${id}`}
        onBlur={(event) => byKey.current || save(event.currentTarget.value)}
        onKeyDown={(event) => {
          byKey.current = event.key === "Enter" || event.key === "Escape";
          if (event.key === "Enter") save(event.currentTarget.value);
          if (event.key === "Escape") setOpen(false);
        }}
      />
    );
  return (
    <button
      ref={button}
      type="button"
      class="small plain"
      onClick={() => setOpen(true)}
      aria-label={`Change the tags of ${id}`}
    >
      {tags.length === 0 ? "+" : tags.map((tag) => <span class="tag">{visible(tag)}</span>)}
    </button>
  );
}
