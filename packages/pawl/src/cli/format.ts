/** Numbers and tables in readable form. */
import { textColumns } from "./columns.js";

/** `82.4 %`; a dash if there is nothing to divide by. */
export function percent(share: number): string {
  return Number.isFinite(share) ? `${(100 * share).toFixed(1)} %` : "–";
}

/** `12,345` or `3.42`; a dash for not-a-number. */
export function number(value: number, digits = 0): string {
  if (!Number.isFinite(value)) return "–";
  return value.toLocaleString("en-GB", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}

/** `0:07`, `12:30`, `1:02:03`. */
export function duration(seconds: number): string {
  if (!Number.isFinite(seconds)) return "–";
  const whole = Math.round(seconds);
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const shown = parts[0] === 0 ? parts.slice(1) : parts;
  return shown.map((part, i) => (i === 0 ? String(part) : String(part).padStart(2, "0"))).join(":");
}

/**
 * Rows in aligned columns; columns after the first are right-aligned if all their cells are
 * numbers.
 */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const all = [header, ...rows];
  const widths = header.map((_, column) =>
    Math.max(...all.map((row) => textColumns(row[column] ?? ""))),
  );
  const numeric = header.map(
    (_, column) => column > 0 && rows.every((row) => /^[\d.,–\s%-]*$/.test(row[column] ?? "")),
  );
  const padded = (cell: string, width: number, right: boolean | undefined): string => {
    const room = " ".repeat(Math.max(0, width - textColumns(cell)));
    return right ? `${room}${cell}` : `${cell}${room}`;
  };
  return all.map((row) =>
    widths
      .map((width, column) => padded(row[column] ?? "", width, numeric[column]))
      .join("  ")
      .trimEnd(),
  );
}
