/** The process of an isolated world, which knows the worlds of this program. */
import "./worlds.js";
import "../plugins/world-worker.js";
