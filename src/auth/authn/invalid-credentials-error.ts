import { StatusError } from "../../api/status.ts";
import type { MaybePromise } from "../../std/async/maybe-promise.ts";

/** Credentials that are known to be bad. Clients learn nothing but 401; the message is for logs and reviewers. */
export class Refusal extends StatusError {
  /** `why` tells names and numbers, never the credentials themselves. */
  constructor(why: string, options?: { readonly cause?: unknown }) {
    super(401, "Unauthorized", "Unauthorized", options);
    this.message = why;
  }
}

/** One of several; what is said twice is told once. */
export function refusedBy(refusals: readonly Refusal[]): Refusal {
  const reasons = [...new Set(refusals.map(({ message }) => message))];
  return new Refusal(reasons.length === 1 ? reasons[0]! : `[${reasons.join(", ")}]`);
}

/** The first answer of those asked in order. Without one, throws or rejects with every refusal there was. */
export function firstFound<A, R>(all: readonly A[], ask: (one: A) => MaybePromise<R | undefined>): MaybePromise<R | undefined> {
  for (let place = 0; place < all.length; place++) {
    let found: MaybePromise<R | undefined>;
    try {
      found = ask(all[place]!);
    } catch (error) {
      return firstLater(Promise.reject(error as Error), all.slice(place + 1), ask);
    }
    if (found instanceof Promise) return firstLater(found, all.slice(place + 1), ask);
    if (found !== undefined) return found;
  }
  return undefined;
}

async function firstLater<A, R>(
  first: Promise<R | undefined>,
  rest: readonly A[],
  ask: (one: A) => MaybePromise<R | undefined>,
): Promise<R | undefined> {
  const refusals: Refusal[] = [];
  const questions = [() => first, ...rest.map((one) => () => ask(one))];
  for (const question of questions) {
    try {
      const found = await question();
      if (found !== undefined) return found;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      refusals.push(error);
    }
  }
  if (refusals.length > 0) throw refusedBy(refusals);
  return undefined;
}
