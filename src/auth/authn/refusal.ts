import { StatusError } from "../../api/status.ts";

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
