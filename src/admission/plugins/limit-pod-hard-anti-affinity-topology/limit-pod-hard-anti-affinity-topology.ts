/**
 * LimitPodHardAntiAffinityTopology: rejects pods with required anti-affinity for a topologyKey other than the hostname.
 */

import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { matchesResource, newForbidden } from "../../chain/attributes.ts";
import type { AdmissionPlugin } from "../../chain/plugin.ts";

const HOSTNAME = "kubernetes.io/hostname";

export function limitPodHardAntiAffinityTopology(): AdmissionPlugin {
  return {
    name: "LimitPodHardAntiAffinityTopology",
    handles: (attributes) => matchesResource(attributes, podKind, ["CREATE", "UPDATE"]),
    validate(request) {
      const { spec } = request.object as Pod;
      const terms = spec?.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
      const wide = terms.find(({ topologyKey }) => topologyKey !== HOSTNAME);
      if (wide === undefined) return;
      const found = `affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey ${wide.topologyKey}`;
      throw newForbidden(request, `${found} but only key ${HOSTNAME} is allowed`);
    },
  };
}
