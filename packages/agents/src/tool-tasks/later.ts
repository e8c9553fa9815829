/** Values that are there at once, or later. */

/** A value, or a promise of one. */
export type Later<T> = T | Promise<T>;

/** Goes on with a value as soon as it is there: at once, if it is. */
export function after<A, B>(value: Later<A>, next: (value: A) => Later<B>): Later<B> {
  return isLater(value) ? value.then(next) : next(value);
}

/** Whether a value comes later. */
export function isLater<T>(value: Later<T>): value is Promise<T> {
  return typeof (value as Partial<PromiseLike<T>> | undefined)?.then === "function";
}
