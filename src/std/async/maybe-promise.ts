/** An answer at once where nothing has to be waited for: promises cost more than most answers that are known. */
export type MaybePromise<T> = T | Promise<T>;

/** Goes on with the answer, at once if it is there. */
export function andThen<T, R>(answer: MaybePromise<T>, next: (answer: T) => MaybePromise<R>): MaybePromise<R> {
  return answer instanceof Promise ? answer.then(next) : next(answer);
}
