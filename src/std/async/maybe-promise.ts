/** A value, or a promise of it: hot paths return the value itself where they can, since a promise costs more. */
export type MaybePromise<T> = T | Promise<T>;

/** Calls `next` with the value: synchronously, unless it is a promise. */
export function andThen<T, R>(value: MaybePromise<T>, next: (value: T) => MaybePromise<R>): MaybePromise<R> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** Calls `work` for one item after the other: synchronously, unless it returns a promise. */
export function forEachInOrder<T>(
  items: readonly T[],
  work: (item: T) => MaybePromise<void>,
  first = 0,
): MaybePromise<void> {
  for (let index = first; index < items.length; index++) {
    const done = work(items[index]!);
    if (done instanceof Promise) return done.then(() => forEachInOrder(items, work, index + 1));
  }
}
