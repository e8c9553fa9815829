/** The page: which part of it the address asks for, or the report that is inside it. */

// First: the server works while the rest is set up.
import "./early.js";
import type { ReportView } from "@pawl/ui/report/views.js";
import type { Session } from "@pawl/ui/server/api.js";
import { type JSX, render } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Compare } from "./compare.js";
import { Episode } from "./episode.js";
import { Episodes } from "./episodes.js";
import { Keys, useKeys } from "./keys.js";
import { Empty, type Loaded, useLoaded, Waiting } from "./load.js";
import { Play } from "./play.js";
import { StaticPage } from "./report.js";
import { Results } from "./results.js";
import { link, type Place, usePlace } from "./route.js";
import { Run } from "./run.js";
import { Runs } from "./runs.js";
import { ask } from "./server.js";
import { visible } from "./text.js";
import { Try } from "./try.js";

function App(): JSX.Element {
  const place = usePlace();
  const session = useLoaded("session", () => ask<Session>("session"));
  const main = useRef<HTMLElement>(null);
  const where = place.parts.join("/");
  const help = useKeys();
  useEffect(() => {
    const name = place.parts.at(-1) ?? "runs";
    document.title = `${name} · Pawl`;
    // A new page starts at its beginning, also for those who hear it.
    main.current?.focus({ preventScroll: true });
    scrollTo(0, 0);
  }, [where]);
  // A run's pages belong to the list of runs.
  const at = place.parts[0]?.replace(/^run$/, "") ?? "";
  const tab = (name: string, label: string): JSX.Element => (
    <a href={link(name === "" ? [] : [name])} aria-current={at === name ? "page" : undefined}>
      {label}
    </a>
  );
  return (
    <>
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to content
      </button>
      <header class="top">
        <nav aria-label="Pages">
          <strong class="name">Pawl</strong>
          {session.value?.trial && tab("try", "Try")}
          {tab("", "Runs")}
          {tab("compare", "Compare")}
          {tab("results", "Results")}
          {session.value?.play && tab("play", "Play")}
          <button
            type="button"
            class="small plain"
            onClick={help.toggle}
            aria-label="Keys"
            aria-expanded={help.open}
          >
            ?
          </button>
        </nav>
      </header>
      {help.open && <Keys close={help.toggle} />}
      <main ref={main} id="main" tabIndex={-1}>
        {session.problem === undefined ? (
          <Page place={place} session={session} />
        ) : (
          <Waiting of={session} />
        )}
      </main>
      <footer class="quiet small">
        {session.value !== undefined && (
          <>
            pawl {session.value.version} · {visible(session.value.folder)} ·{" "}
            {session.value.play ? "play and compute enabled" : "read-only"}
          </>
        )}
      </footer>
    </>
  );
}

function Page({
  place,
  session,
}: {
  readonly place: Place;
  readonly session: Loaded<Session>;
}): JSX.Element {
  const [page, run = "", part, id = ""] = place.parts;
  if (page === undefined) return <Runs />;
  if (page === "run" && part === undefined) return <Run key={run} id={run} />;
  if (page === "run" && part === "episodes") return <Episodes key={run} id={run} />;
  if (page === "compare") return <Compare />;
  if (page === "results") return <Results />;
  // The others depend on what the server offers.
  const { value } = session;
  if (value === undefined) return <Waiting of={session} />;
  if (page === "try" && value.trial !== null) return <Try trial={value.trial} />;
  if (page === "run" && part === "episode")
    return <Episode key={id} run={run} id={id} session={value} />;
  if (page === "play") return <Play session={value} />;
  return (
    <Empty>
      Page not found. <a href={link([])}>All runs</a>
    </Empty>
  );
}

const place = document.getElementById("page")!;
place.replaceChildren();
const data = document.getElementById("data")?.textContent;
if (data) render(<StaticPage view={JSON.parse(data) as ReportView} />, place);
else render(<App />, place);
