/** The page starts with the agent at work. */
if (location.hash === "") history.replaceState(undefined, "", "#/try");
void import("../../ui/main.js");
