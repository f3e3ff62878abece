import t from "tap";
import { bindingKind } from "../../../api/core/binding/kind.ts";
import { nodeKind } from "../../../api/core/node/kind.ts";
import { podKind } from "../../../api/core/pod/kind.ts";
import { pluginDeps, runPlugin } from "../../../testing/admission/admission-fixture.ts";
import { podTopologyLabels } from "./pod-topology-labels.ts";

const zone = "topology.kubernetes.io/zone";
const labels = { [zone]: "z1", "topology.kubernetes.io/region": "r1", other: "o" };
const plugin = podTopologyLabels(pluginDeps([[nodeKind, { metadata: { name: "n", labels } }]]));

t.test(
  "podTopologyLabels() copies the topology labels of the node to a binding, or to a pod with nodeName",
  async (t) => {
    const { other: _, ...topologyLabels } = labels;
    const bound = async (target: object, own?: Readonly<Record<string, string>>) => {
      const binding = { metadata: { name: "web", ...(own === undefined ? {} : { labels: own }) }, target };
      return (await runPlugin(plugin, bindingKind, binding as never)).object.metadata?.labels;
    };
    t.same(await bound({ kind: "Node", name: "n" }), topologyLabels);
    t.same(await bound({ kind: "Node", name: "n" }, { [zone]: "mine" }), { ...topologyLabels, [zone]: "mine" });
    t.same(await bound({ kind: "Node", name: "gone" }), undefined);
    t.same(await bound({ kind: "Shelf", name: "n" }), undefined);
    const pod = (spec: object) => ({ metadata: { name: "web", namespace: "default" }, spec }) as never;
    t.same(
      (await runPlugin(plugin, podKind, pod({ containers: [], nodeName: "n" }))).object.metadata?.labels,
      topologyLabels,
    );
    t.same((await runPlugin(plugin, podKind, pod({ containers: [] }))).object.metadata?.labels, undefined);
  },
);
