import { andThen, type MaybePromise } from "../../std/async/maybe-promise.ts";
import type { Attributes, Authorization, Authorizer } from "../user.ts";
import { aggregateErrors } from "./reason.ts";

/**
 * Calls the authorizers in order; the first that allows or denies decides. Otherwise combines their reasons and errors.
 */
export function unionAuthorizer(authorizers: readonly Authorizer[]): Authorizer {
  return {
    authorize: (attributes) => firstDecision(authorizers, attributes, 0, []),
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

/** `previous`: the results of the authorizers before `index`, which have no opinion. */
function firstDecision(
  authorizers: readonly Authorizer[],
  attributes: Attributes,
  index: number,
  previous: readonly Authorization[],
): MaybePromise<Authorization> {
  const authorizer = authorizers[index];
  if (authorizer === undefined) return combine(previous);
  return andThen(authorizer.authorize(attributes), (answer) => {
    if (answer.decision !== "no-opinion") return answer;
    return firstDecision(authorizers, attributes, index + 1, [...previous, answer]);
  });
}

function combine(answers: readonly Authorization[]): Authorization {
  const reasons = answers.map(({ reason }) => reason).filter((reason) => reason !== "");
  const errors = answers.flatMap(({ error }) => error ?? []);
  const error = errors.length === 0 ? {} : { error: aggregateErrors(errors) };
  return { decision: "no-opinion", reason: reasons.join("\n"), ...error };
}
