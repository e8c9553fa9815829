/** Modules of users: TypeScript or JavaScript, run as it is, without a build step. */

/** How the names of such files end. */
export const MODULE_ENDINGS: readonly string[] = [".ts", ".mts", ".js", ".mjs"];

/**
 * Imports a module by its absolute path; `known` are modules that it imports by name and that are
 * loaded already.
 *
 * Node before 22.18 does not run TypeScript. Compiled code is not cached on disk: the usual place
 * is in the shared temporary folder, where another user could plant code.
 */
export async function importModule(
  path: string,
  known: Readonly<Record<string, unknown>> = {},
): Promise<Readonly<Record<string, unknown>>> {
  const { createJiti } = await import("jiti");
  const jiti = createJiti(import.meta.url, {
    interopDefault: false,
    fsCache: false,
    virtualModules: { ...known },
  });
  return jiti.import<Record<string, unknown>>(path);
}
