/** A problem that is shown to the user without a stack trace: the message says how to fix it. */
export class UserError extends Error {
  override readonly name: string = "UserError";
}
