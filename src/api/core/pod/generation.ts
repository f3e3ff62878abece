import { semanticEqual } from "../../../schema/semantic-equal.ts";
import { podSpec } from "../pod-spec/schema.ts";
import type { Pod } from "./schema.ts";

/** Increments `metadata.generation` when the spec changed. */
export function updatePodGeneration(next: Pod, previous: Pod): Pod {
  const before = previous.metadata?.generation ?? 0;
  const generation = semanticEqual(podSpec, next.spec, previous.spec) ? before : before + 1;
  return generation === 0 ? next : { ...next, metadata: { ...next.metadata, generation } };
}
