import t from "tap";
import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { PodSpec } from "../../../api/core/pod-spec/schema.ts";
import { rejectionOf, runPlugin } from "../../../testing/admission/admission-fixture.ts";
import { limitPodHardAntiAffinityTopology } from "./limit-pod-hard-anti-affinity-topology.ts";

const pod = (spec: Partial<PodSpec>, namespace = "default"): Pod => ({
  metadata: { name: "web", namespace },
  spec: { containers: [], ...spec },
});

t.test(
  "limitPodHardAntiAffinityTopology() rejects required anti-affinity with a topologyKey other than the hostname",
  async (t) => {
    const podWithAntiAffinity = (topologyKey: string) =>
      pod({
        affinity: {
          podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey, labelSelector: {} }] },
        },
      });
    const plugin = limitPodHardAntiAffinityTopology();
    t.equal(await rejectionOf(runPlugin(plugin, podKind, podWithAntiAffinity("kubernetes.io/hostname"))), "");
    t.equal(
      await rejectionOf(runPlugin(plugin, podKind, podWithAntiAffinity("zone"))),
      'pods "web" is forbidden: affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone but only key kubernetes.io/hostname is allowed',
    );
  },
);
