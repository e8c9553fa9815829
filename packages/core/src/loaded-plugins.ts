/** The plugins that this process has loaded, so that runs can record them. */

/** A plugin's file, and the hash of what it contains. */
export interface PluginFile {
  /** Absolute. */
  readonly path: string;
  /** SHA-256 of the file and of what it imports by relative paths. */
  readonly sha256: string;
}

/** A plugin in this process. */
export interface LoadedPlugin extends PluginFile {
  /** The names of the environments that it adds. */
  readonly environments: readonly string[];
}

const loaded: LoadedPlugin[] = [];

/** In the order in which they were loaded. */
export function loadedPlugins(): readonly LoadedPlugin[] {
  return loaded;
}

/** Notes that a plugin was loaded. */
export function addLoadedPlugin(plugin: LoadedPlugin): void {
  loaded.push(plugin);
}
