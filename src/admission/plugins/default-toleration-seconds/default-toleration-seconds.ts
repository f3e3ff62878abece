/** DefaultTolerationSeconds: adds tolerations for the not-ready and unreachable taints to pods without them. */

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
  const defaults = [
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
      const missing = defaults.filter(([key]) => !tolerates(spec, key));
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
