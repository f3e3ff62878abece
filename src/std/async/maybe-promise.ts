/** An answer at once where nothing has to be waited for: promises cost more than most answers that are known. */
export type Soon<T> = T | Promise<T>;

/** Goes on with the answer, at once if it is there. */
export function andThen<T, R>(answer: Soon<T>, next: (answer: T) => Soon<R>): Soon<R> {
  return answer instanceof Promise ? answer.then(next) : next(answer);
}
