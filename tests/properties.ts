/** How many examples a property is tried with, where its test says nothing else. */
import { dose } from "@pawl/core/dose-testing.js";
import { configureGlobal } from "fast-check";

configureGlobal({ numRuns: dose(100) });
