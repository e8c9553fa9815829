/** A problem that is shown to the user without a stack trace: the message says how to fix it. */
export class UserError extends Error {
  override readonly name: string = "UserError";
}

/** What an error says. Programs throw anything, also what cannot be read. */
export function messageOf(error: unknown): string {
  try {
    return String(error instanceof Error ? error.message : error);
  } catch {
    return "an error that cannot be read";
  }
}
