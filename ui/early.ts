/** What the first page asks its server, while the rest of the script is still being set up. */
import { placeOf } from "./route.js";
import { askEarly } from "./server.js";

const [page, run, part] = placeOf(location.hash).parts;
// A report has its data inside.
if (document.getElementById("data") === null) {
  if (page === undefined) askEarly("runs", {});
  if (page === "run" && run !== undefined && part === undefined) {
    askEarly("run", { run });
    askEarly("metrics", { run });
  }
  askEarly("session", {});
}
