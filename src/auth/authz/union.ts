import type { Authorizer } from "../user.ts";
import { aggregateErrors } from "./reason.ts";

/**
 * Calls the authorizers in order; the first that allows or denies decides. Otherwise combines their reasons and errors.
 */
export function unionAuthorizer(authorizers: readonly Authorizer[]): Authorizer {
  return {
    async authorize(attributes) {
      const reasons: string[] = [];
      const errors: string[] = [];
      for (const authorizer of authorizers) {
        const answer = await authorizer.authorize(attributes);
        if (answer.decision !== "no-opinion") return answer;
        if (answer.reason !== "") reasons.push(answer.reason);
        if (answer.error !== undefined) errors.push(answer.error);
      }
      const reason = reasons.join("\n");
      return { decision: "no-opinion", reason, ...(errors.length === 0 ? {} : { error: aggregateErrors(errors) }) };
    },
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
