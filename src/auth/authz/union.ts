import type { Authorizer } from "../user.ts";
import { aggregate } from "./reason.ts";

/** Asks in order; the first that allows or denies decides. What the others said is collected. */
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
      return { decision: "no-opinion", reason, ...(errors.length === 0 ? {} : { error: aggregate(errors) }) };
    },
    rulesFor(user, namespace) {
      const answers = authorizers.flatMap((authorizer) => authorizer.rulesFor?.(user, namespace) ?? []);
      const errors = answers.flatMap(({ error }) => error ?? []);
      return {
        rules: answers.flatMap(({ rules }) => rules),
        incomplete: answers.some(({ incomplete }) => incomplete),
        error: errors.length === 0 ? undefined : aggregate(errors),
      };
    },
  };
}
