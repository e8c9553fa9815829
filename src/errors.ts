/** A problem that is told to the user as it is, without a stack trace: it says what to do about it. */
export class UserError extends Error {
  override readonly name: string = "UserError";
}
