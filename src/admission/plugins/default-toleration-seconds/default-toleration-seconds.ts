/** Pods stay a while on a node that is in trouble, unless they say themselves. */

import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { PodSpec } from "../../../api/core/pod-spec/schema.ts";
import { matchesResource } from "../../chain/attributes.ts";
import type { AdmissionPlugin } from "../../chain/plugin.ts";

export interface TolerationSeconds {
  readonly notReady: number;
  readonly unreachable: number;
}

export function defaultTolerationSeconds(deps: { readonly tolerationSeconds: TolerationSeconds }): AdmissionPlugin {
  const { notReady, unreachable } = deps.tolerationSeconds;
  const wanted = [
    ["node.kubernetes.io/not-ready", notReady],
    ["node.kubernetes.io/unreachable", unreachable],
  ] as const;
  return {
    name: "DefaultTolerationSeconds",
    handles: (attributes) => matchesResource(attributes, podKind, ["CREATE", "UPDATE"]),
    mutate({ object }) {
      const pod = object as Pod;
      const { spec } = pod;
      if (spec === undefined) return undefined;
      const missing = wanted.filter(([key]) => !tolerates(spec, key));
      if (missing.length === 0) return undefined;
      const added = missing.map(([key, tolerationSeconds]) => ({
        key,
        operator: "Exists" as const,
        effect: "NoExecute" as const,
        tolerationSeconds,
      }));
      return { ...pod, spec: { ...spec, tolerations: [...(spec.tolerations ?? []), ...added] } } as Pod;
    },
  };
}

function tolerates({ tolerations = [] }: PodSpec, key: string): boolean {
  return tolerations.some((each) => (each.key === key || !each.key) && (each.effect === "NoExecute" || !each.effect));
}
