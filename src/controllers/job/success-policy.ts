import { countIndexes } from "../../api/batch/job/indexes.ts";
import type { SuccessPolicy } from "../../api/batch/job/schema.ts";
import { countShared, type Indexes, readIndexes } from "./completion-indexes.ts";

/** Returns the message of the condition for the first rule that the indexes fulfil. */
export function matchSuccessPolicy(
  policy: SuccessPolicy | undefined,
  completions: number,
  succeeded: Indexes,
): string | undefined {
  if (succeeded.length === 0) return undefined;
  const index = (policy?.rules ?? []).findIndex(({ succeededIndexes, succeededCount }) => {
    if (succeededIndexes === undefined) {
      return succeededCount !== undefined && countIndexes(succeeded) >= succeededCount;
    }
    const required = readIndexes(succeededIndexes, completions);
    if (required.length === 0) return false;
    const found = countShared(required, succeeded);
    return found === countIndexes(required) || (succeededCount !== undefined && found >= succeededCount);
  });
  return index === -1 ? undefined : `Matched rules at index ${index}`;
}
