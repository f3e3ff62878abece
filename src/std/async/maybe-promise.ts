/** A value, or a promise of it: hot paths return the value itself where they can, since a promise costs more. */
export type MaybePromise<T> = T | Promise<T>;

/** Calls `next` with the value: synchronously, unless it is a promise. */
export function andThen<T, R>(value: MaybePromise<T>, next: (value: T) => MaybePromise<R>): MaybePromise<R> {
  return value instanceof Promise ? value.then(next) : next(value);
}
