import { child } from "../../../schema/value/field-path.ts";
import { templateWarnings } from "../../apps/workload/strategy.ts";
import type { ApiObject } from "../../kind.ts";
import type { JobSpec } from "./schema.ts";

const COMPLETIONS_TRACKED = 100_000;
const PARALLELISM_TRACKED = 10_000;
const TOO_MANY =
  "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail";

/** Warnings for a new or changed job spec at `path`: settings that may not work as intended. */
export function jobWarnings(
  object: ApiObject,
  previous: ApiObject | undefined,
  spec: JobSpec | undefined,
  path: string,
): readonly string[] {
  const changed = previous === undefined || object.metadata?.generation !== previous.metadata?.generation;
  if (!changed || spec === undefined) return [];
  const { completionMode, completions = 0, parallelism = 0 } = spec;
  const large = completions > COMPLETIONS_TRACKED && parallelism > PARALLELISM_TRACKED;
  return [
    ...(completionMode === "Indexed" && large ? [TOO_MANY] : []),
    ...templateWarnings(object, previous, spec.template, child(path, "template")),
  ];
}
