/** Metrics of authentication and authorization. */
import type { ObserveDecision } from "../auth/authz/modes.ts";
import type { Authenticator, Authorization, Authorizer, UserInfo } from "../auth/user.ts";
import type { MaybePromise } from "../std/async/maybe-promise.ts";
import { exponentialBuckets } from "../std/metrics/buckets.ts";
import type { Counter, Histogram, MetricRegistry } from "../std/metrics/metrics.ts";
import type { Clock } from "../std/time/clock.ts";

/** Buckets that double from 1 ms. */
const SECONDS = exponentialBuckets(0.001, 2, 15);

/** Usernames with their own label value; all others share one. */
const LABELLED_USERS: ReadonlySet<string> = new Set([
  "admin",
  "client",
  "kube_proxy",
  "kubelet",
  "system:serviceaccount:kube-system:default",
]);

export function measureAuthenticator(
  authenticate: Authenticator,
  registry: MetricRegistry,
  clock: Clock,
): Authenticator {
  const outcomes = createOutcomes(registry, "authentication", ["success", "failure", "error"], {
    name: "authentication_attempts",
    help: "Counter of authenticated attempts.",
  });
  const users = registry.counter({
    name: "authenticated_user_requests",
    help: "Counter of authenticated requests broken out by username.",
    stability: "ALPHA",
    labels: ["username"],
  });
  const outcomeOf = (user: UserInfo | undefined): Outcome => {
    if (user === undefined) return outcomes.failure;
    users.with(usernameLabel(user.name)).inc();
    return outcomes.success;
  };
  return measured(authenticate, clock, outcomeOf, outcomes.error);
}

export function measureAuthorizer(authorizer: Authorizer, registry: MetricRegistry, clock: Clock): Authorizer {
  const outcomes = createOutcomes(registry, "authorization", ["allowed", "denied", "no-opinion", "error"], {
    name: "authorization_attempts_total",
    help:
      "Counter of authorization attempts broken down by result. It can be either 'allowed', " +
      "'denied', 'no-opinion' or 'error'.",
  });
  const outcomeOf = ({ decision }: Authorization): Outcome =>
    decision === "allow" ? outcomes.allowed : decision === "deny" ? outcomes.denied : outcomes["no-opinion"];
  return {
    authorize: measured((attributes) => authorizer.authorize(attributes), clock, outcomeOf, outcomes.error),
    ...(authorizer.rulesFor === undefined
      ? {}
      : { rulesFor: (user, namespace) => authorizer.rulesFor!(user, namespace) }),
  };
}

/** Counts the decisions of each authorizer, without those of no opinion. */
export function createDecisionCounter(registry: MetricRegistry): ObserveDecision {
  const decisions = registry.counter({
    name: "apiserver_authorization_decisions_total",
    help: "Total number of terminal decisions made by an authorizer split by authorizer type, name, " + "and decision.",
    stability: "ALPHA",
    labels: ["type", "name", "decision"],
  });
  return (mode, name, decision) => {
    decisions.with(mode, name, decision === "allow" ? "allowed" : "denied").inc();
  };
}

/** Records the outcome of each call and its duration: synchronously, unless it returns a promise. */
function measured<A, T>(
  call: (argument: A) => MaybePromise<T>,
  clock: Clock,
  outcomeOf: (result: T) => Outcome,
  onError: Outcome,
): (argument: A) => MaybePromise<T> {
  // Separate from the function below, in which each call would allocate what closures share.
  const measureLater = async (pending: Promise<T>, began: number): Promise<T> => {
    try {
      const result = await pending;
      outcomeOf(result).record(clock.monotonic() - began);
      return result;
    } catch (error) {
      onError.record(clock.monotonic() - began);
      throw error;
    }
  };
  return (argument) => {
    const began = clock.monotonic();
    let result: MaybePromise<T>;
    try {
      result = call(argument);
    } catch (error) {
      onError.record(clock.monotonic() - began);
      throw error;
    }
    if (result instanceof Promise) return measureLater(result, began);
    outcomeOf(result).record(clock.monotonic() - began);
    return result;
  };
}

class Outcome {
  readonly #attempts: Counter;
  readonly #seconds: Histogram;

  constructor(attempts: Counter, seconds: Histogram) {
    this.#attempts = attempts;
    this.#seconds = seconds;
  }

  record(milliseconds: number): void {
    this.#attempts.inc();
    this.#seconds.observe(milliseconds / 1000);
  }
}

function createOutcomes<R extends string>(
  registry: MetricRegistry,
  what: string,
  results: readonly R[],
  attempts: { readonly name: string; readonly help: string },
): Readonly<Record<R, Outcome>> {
  const labels = ["result"];
  const counter = registry.counter({ ...attempts, stability: "ALPHA", labels });
  const help = `${what[0]?.toUpperCase()}${what.slice(1)} duration in seconds broken out by result.`;
  const histogram = registry.histogram({ name: `${what}_duration_seconds`, help, stability: "ALPHA", labels }, SECONDS);
  const entries = results.map((result) => [result, new Outcome(counter.with(result), histogram.with(result))]);
  return Object.fromEntries(entries) as Readonly<Record<R, Outcome>>;
}

function usernameLabel(name: string): string {
  if (LABELLED_USERS.has(name)) return name;
  return name.includes("@") ? "email_id" : "other";
}
