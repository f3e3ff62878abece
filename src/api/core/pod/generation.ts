import { semanticEqual } from "../../../schema/semantic-equal.ts";
import { updateGeneration } from "../../strategy.ts";
import { podSpec } from "../pod-spec/schema.ts";
import type { Pod } from "./schema.ts";

/** Increments `metadata.generation` when the spec changed. */
export function updatePodGeneration(next: Pod, previous: Pod): Pod {
  return updateGeneration(next, previous, !semanticEqual(podSpec, next.spec, previous.spec));
}
