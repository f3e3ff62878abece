/** Nodes that join, are lost, and are removed. */
import { nodeKind } from "../../../api/core/node/kind.ts";
import { podKind } from "../../../api/core/pod/kind.ts";
import type { Story } from "./story.ts";

const UNREACHABLE = "node.kubernetes.io/unreachable";
const TTL = "node.alpha.kubernetes.io/ttl";

export const nodesStory: Story = {
  title: "nodes that join, are lost and are removed",
  controllers: ["node-lifecycle", "nodeipam", "podgc", "ttl"],
  embedded: ["garbage-collector", "namespace", "serviceaccount"],
  options: { clusterCidrs: ["10.77.0.0/16"] },
  nodes: 3,
  async play(scene) {
    const { client, namespace, nodes } = scene;
    const [lost = "", ...others] = nodes;
    const tolerations = [{ key: UNREACHABLE, operator: "Exists", effect: "NoExecute", tolerationSeconds: 5 }] as const;
    for (const nodeName of nodes) {
      const spec = { nodeName, tolerations, containers: [{ name: "c", image: "img:1" }] };
      await client.create(podKind, { metadata: { name: `on-${nodes.indexOf(nodeName)}`, namespace }, spec });
    }
    const own = async () =>
      (await client.list(nodeKind)).items.filter(({ metadata }) => nodes.includes(metadata?.name ?? ""));
    const pods = async () => (await client.list(podKind, { namespace })).items;
    const read = async () => ({
      nodes: (await own()).map(({ metadata, spec, status }) => ({
        name: nodes.indexOf(metadata?.name ?? ""),
        blocks: spec?.podCIDRs?.length ?? 0,
        ttl: metadata?.annotations?.[TTL],
        taints: (spec?.taints ?? []).map(({ key, effect }) => `${key} ${effect}`).sort(),
        ready: status?.conditions?.find(({ type }) => type === "Ready")?.status,
      })),
      blocks: new Set((await own()).flatMap(({ spec }) => spec?.podCIDRs ?? [])).size,
      pods: (await pods()).map(({ metadata, status }) => {
        const condition = status?.conditions?.find(({ type }) => type === "DisruptionTarget");
        return `${metadata?.name} ${metadata?.deletionTimestamp !== undefined} ${condition?.reason}`;
      }),
    });
    await scene.step(read, async () =>
      (await own()).every(({ spec }) => spec?.podCIDRs !== undefined && (spec.taints ?? []).length === 0),
    );
    await scene.setHeartbeats(lost, false);
    await scene.step(read, async () =>
      (await pods()).some(({ metadata }) => metadata?.deletionTimestamp !== undefined),
    );
    await client.delete(nodeKind, { name: lost });
    await scene.step(read, async () => (await pods()).length === 2);
    for (const name of others) await client.delete(nodeKind, { name });
    await scene.step(read, async () => (await pods()).length === 0);
  },
};
