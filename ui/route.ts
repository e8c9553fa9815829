/** Where the page is: everything is in the address, so that links lead to the same view. */
import { useEffect, useState } from "preact/hooks";

/** A place in the page. */
export interface Place {
  readonly parts: readonly string[];
  readonly query: Readonly<Record<string, string>>;
}

/** The place of an address such as `#/run/a%2Fb/episodes?type=heat`. */
export function placeOf(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?");
  const read = (part: string): string => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  };
  return {
    parts: path === "" ? [] : path.split("/").map(read),
    query: Object.fromEntries(new URLSearchParams(query)),
  };
}

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** The address of a place; empty settings are left out. */
export function link(parts: readonly string[], query: Query = {}): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === "" ? [] : [[name, String(value)]],
  );
  const asked = new URLSearchParams(given).toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${asked === "" ? "" : `?${asked}`}`;
}

/** Changes settings of the present place, without a step in the history for each. */
export function setQuery(changes: Query): void {
  const { parts, query } = placeOf(location.hash);
  history.replaceState(null, "", link(parts, { ...query, ...changes }));
  dispatchEvent(new HashChangeEvent("hashchange"));
}

/** The present place. */
export function usePlace(): Place {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = (): void => setHash(location.hash);
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return placeOf(hash);
}
