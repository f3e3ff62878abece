import { StatusError } from "../../api/status.ts";
import type { MaybePromise } from "../../std/async/maybe-promise.ts";

/** The credentials are invalid. Clients only get a 401; the message is for logs and token reviews. */
export class InvalidCredentialsError extends StatusError {
  /** `reason` must not contain the credentials. */
  constructor(why: string, options?: { readonly cause?: unknown }) {
    super(401, "Unauthorized", "Unauthorized", options);
    this.message = why;
  }
}

/** Combines several errors; equal messages appear once. */
export function combineErrors(errors: readonly InvalidCredentialsError[]): InvalidCredentialsError {
  const reasons = [...new Set(errors.map(({ message }) => message))];
  return new InvalidCredentialsError(reasons.length === 1 ? reasons[0]! : `[${reasons.join(", ")}]`);
}

/** The first result of the authenticators in order. Without a result, throws or rejects with all errors there were. */
export function firstResult<A, R>(
  authenticators: readonly A[],
  call: (one: A) => MaybePromise<R | undefined>,
): MaybePromise<R | undefined> {
  for (let index = 0; index < authenticators.length; index++) {
    let found: MaybePromise<R | undefined>;
    try {
      found = call(authenticators[index]!);
    } catch (error) {
      return firstResultAsync(Promise.reject(error as Error), authenticators.slice(index + 1), call);
    }
    if (found instanceof Promise) return firstResultAsync(found, authenticators.slice(index + 1), call);
    if (found !== undefined) return found;
  }
  return undefined;
}

async function firstResultAsync<A, R>(
  first: Promise<R | undefined>,
  rest: readonly A[],
  call: (one: A) => MaybePromise<R | undefined>,
): Promise<R | undefined> {
  const errors: InvalidCredentialsError[] = [];
  const calls = [() => first, ...rest.map((one) => () => call(one))];
  for (const question of calls) {
    try {
      const found = await question();
      if (found !== undefined) return found;
    } catch (error) {
      if (!(error instanceof InvalidCredentialsError)) throw error;
      errors.push(error);
    }
  }
  if (errors.length > 0) throw combineErrors(errors);
  return undefined;
}
