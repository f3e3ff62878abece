/**
 * ExtendedResourceToleration: adds a toleration for each extended resource that a pod requests, so that nodes with such
 * devices can be tainted with the resource's name.
 */

import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { Toleration } from "../../../api/core/pod-spec/affinity.ts";
import { isExtendedResource } from "../../../api/core/resources/names.ts";
import { matchesResource } from "../../chain/attributes.ts";
import type { AdmissionPlugin } from "../../chain/plugin.ts";

export function extendedResourceToleration(): AdmissionPlugin {
  return {
    name: "ExtendedResourceToleration",
    handles: (attributes) => matchesResource(attributes, podKind, ["CREATE", "UPDATE"]),
    mutate({ object }) {
      const pod = object as Pod;
      const { containers = [], initContainers = [], tolerations = [] } = pod.spec ?? {};
      const names = [...containers, ...initContainers].flatMap(({ resources }) =>
        Object.keys(resources?.requests ?? {}).filter(isExtendedResource),
      );
      const missing = [...new Set(names)].sort().filter((name) => !tolerations.some((one) => tolerates(one, name)));
      if (missing.length === 0) return undefined;
      const added = missing.map((key) => ({ key, operator: "Exists" as const }));
      return { ...pod, spec: { ...pod.spec, tolerations: [...tolerations, ...added] } } as Pod;
    },
  };
}

function tolerates({ key, operator, effect, value }: Toleration, name: string): boolean {
  return key === name && operator === "Exists" && !effect && !value;
}
