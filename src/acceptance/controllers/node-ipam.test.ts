import t from "tap";
import { eventKind } from "../../api/core/event/kind.ts";
import { nodeKind } from "../../api/core/node/kind.ts";
import type { Node } from "../../api/core/node/schema.ts";
import { startInMemoryCluster, waitForObject } from "../../testing/apiserver/in-memory-cluster.ts";

const controllerOptions = { clusterCidrs: ["10.244.0.0/23", "fd00:244::/56"], serviceCidrs: ["10.244.1.128/25"] };

t.test("nodes get a pod CIDR of each family, and one that is too many gets an event", async (t) => {
  const client = await startInMemoryCluster(t, { embeddedControllers: ["nodeipam"], controllerOptions });
  const cidrs = async (name: string, isWanted: (node: Node | undefined) => boolean) =>
    (await waitForObject(client, nodeKind, name, undefined, isWanted))?.spec?.podCIDRs;
  const hasCidr = (node: Node | undefined): boolean => node?.spec?.podCIDR !== undefined;
  await client.create(nodeKind, { metadata: { name: "a" } });
  t.same(await cidrs("a", hasCidr), ["10.244.0.0/24", "fd00:244::/64"]);
  await client.create(nodeKind, { metadata: { name: "b" } });
  // The other block contains addresses of services.
  for (let tries = 0; tries < 100; tries++) {
    const { items } = await client.list(eventKind);
    const event = items.find(({ reason }) => reason === "CIDRNotAvailable");
    if (event !== undefined) {
      t.equal(event.message, "Node b status is now: CIDRNotAvailable");
      break;
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await client.delete(nodeKind, { name: "a" });
  t.match(await cidrs("b", hasCidr), ["10.244.0.0/24", /^fd00:244:/], "the block of a deleted node");
});

t.test("a node that has pod CIDRs keeps them, and no other node gets them", async (t) => {
  const client = await startInMemoryCluster(t, {
    embeddedControllers: ["nodeipam"],
    controllerOptions: { clusterCidrs: ["10.1.0.0/16"] },
  });
  await client.create(nodeKind, {
    metadata: { name: "old" },
    spec: { podCIDR: "10.1.0.0/24", podCIDRs: ["10.1.0.0/24"] },
  });
  await client.create(nodeKind, { metadata: { name: "new" } });
  const found = await waitForObject(client, nodeKind, "new", undefined, (node) => node?.spec?.podCIDR !== undefined);
  t.equal(found?.spec?.podCIDR, "10.1.1.0/24");
  t.equal((await client.get(nodeKind, { name: "old" })).spec?.podCIDR, "10.1.0.0/24");
});

t.test("a node gets the pod CIDR that is configured for it, which no other node gets", async (t) => {
  const client = await startInMemoryCluster(t, {
    embeddedControllers: ["nodeipam"],
    controllerOptions: { clusterCidrs: ["10.1.0.0/16", "fd00:1::/56"], nodeCidrs: { own: ["10.1.0.0/24"] } },
  });
  const hasCidr = (node: Node | undefined): boolean => node?.spec?.podCIDR !== undefined;
  for (const [name, cidrs] of [
    ["other", ["10.1.1.0/24", "fd00:1::/64"]],
    ["own", ["10.1.0.0/24", "fd00:1:0:1::/64"]],
  ] as const) {
    await client.create(nodeKind, { metadata: { name } });
    t.same((await waitForObject(client, nodeKind, name, undefined, hasCidr))?.spec?.podCIDRs, cidrs);
  }
});
