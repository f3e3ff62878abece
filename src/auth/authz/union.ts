import type { MaybePromise } from "../../std/async/maybe-promise.ts";
import type { Attributes, Authorization, Authorizer } from "../user.ts";
import { aggregateErrors } from "./reason.ts";

/**
 * Calls the authorizers in order; the first that allows or denies decides. Otherwise combines their reasons and errors.
 */
export function unionAuthorizer(authorizers: readonly Authorizer[]): Authorizer {
  return {
    authorize: (attributes) => firstDecision(authorizers, attributes),
    rulesFor(user, namespace) {
      const answers = authorizers.flatMap((authorizer) => authorizer.rulesFor?.(user, namespace) ?? []);
      const errors = answers.flatMap(({ error }) => error ?? []);
      return {
        rules: answers.flatMap(({ rules }) => rules),
        incomplete: answers.some(({ incomplete }) => incomplete),
        error: errors.length === 0 ? undefined : aggregateErrors(errors),
      };
    },
  };
}

/** `previous`: the results of the authorizers before `first`, which have no opinion; undefined for none. */
function firstDecision(
  authorizers: readonly Authorizer[],
  attributes: Attributes,
  first = 0,
  previous?: Authorization[],
): MaybePromise<Authorization> {
  let undecided = previous;
  for (let index = first; index < authorizers.length; index++) {
    const answer = authorizers[index]!.authorize(attributes);
    if (answer instanceof Promise) return decideLater(authorizers, attributes, index, answer, undecided);
    if (answer.decision !== "no-opinion") return answer;
    if (undecided === undefined) undecided = [answer];
    else undecided.push(answer);
  }
  return combine(undecided ?? []);
}

async function decideLater(
  authorizers: readonly Authorizer[],
  attributes: Attributes,
  index: number,
  pending: Promise<Authorization>,
  previous: readonly Authorization[] = [],
): Promise<Authorization> {
  const answer = await pending;
  if (answer.decision !== "no-opinion") return answer;
  return await firstDecision(authorizers, attributes, index + 1, [...previous, answer]);
}

function combine(answers: readonly Authorization[]): Authorization {
  const reasons = answers.map(({ reason }) => reason).filter((reason) => reason !== "");
  const errors = answers.flatMap(({ error }) => error ?? []);
  const error = errors.length === 0 ? {} : { error: aggregateErrors(errors) };
  return { decision: "no-opinion", reason: reasons.join("\n"), ...error };
}
