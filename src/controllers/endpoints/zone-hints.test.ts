import t from "tap";
import type { Node } from "../../api/core/node/schema.ts";
import type { Service } from "../../api/core/service/schema.ts";
import type { Endpoint, EndpointSlice } from "../../api/discovery/endpoint-slice/schema.ts";
import type { SliceDrafts } from "./slice-draft.ts";
import { TopologyHints } from "./topology-hints.ts";

const endpoint: Endpoint = { addresses: ["10.0.0.1"], conditions: { ready: true }, zone: "za", nodeName: "n1" };
const service = (trafficDistribution: string): Service => ({
  metadata: { name: "web", namespace: "default" },
  spec: { trafficDistribution },
});

function hintsOf(allowsSame: boolean, distribution: string) {
  const slice: EndpointSlice = { addressType: "IPv4", endpoints: [endpoint] };
  const drafts: SliceDrafts = { create: [], update: [], unchanged: [slice] };
  new TopologyHints(allowsSame).assign(service(distribution), "IPv4", drafts);
  return [...drafts.update, ...drafts.unchanged][0]?.endpoints[0]?.hints;
}

t.test("PreferSameTrafficDistribution decides whether endpoints get hints for nodes", async (t) => {
  const forZones = [{ name: "za" }];
  t.strictSame(hintsOf(true, "PreferSameNode"), { forZones, forNodes: [{ name: "n1" }] });
  t.strictSame(hintsOf(true, "PreferSameZone"), { forZones });
  t.strictSame(hintsOf(true, "PreferClose"), { forZones });
  t.equal(hintsOf(false, "PreferSameNode"), undefined);
  t.strictSame(hintsOf(false, "PreferClose"), { forZones });
});

t.test("the events about topology are of the service, whichever of its address types changes first", async (t) => {
  const node = (name: string, zone: string): Node => ({
    metadata: { name, labels: { "topology.kubernetes.io/zone": zone } },
    status: { allocatable: { cpu: "1" }, conditions: [{ type: "Ready", status: "True" }] },
  });
  const hints = new TopologyHints();
  hints.setNodes([node("n1", "za"), node("n2", "zb")]);
  const both = [endpoint, { ...endpoint, zone: "zb", nodeName: "n2" }];
  const assign = (mode: string | undefined, type: "IPv4" | "IPv6", endpoints: readonly Endpoint[]) => {
    const annotations = mode === undefined ? {} : { "service.kubernetes.io/topology-mode": mode };
    const drafts: SliceDrafts = {
      create: [],
      update: [],
      unchanged: [{ addressType: type, endpoints: [...endpoints] }],
    };
    const found = hints.assign({ metadata: { name: "web", namespace: "default", annotations } }, type, drafts);
    return found.map(({ reason, message }) => `${reason} ${message.replace(/.* /, "")}`);
  };
  t.same(assign("Auto", "IPv4", both), ["TopologyAwareHintsEnabled IPv4"]);
  t.same(assign("Auto", "IPv6", both), []);
  t.same(assign("Auto", "IPv6", [endpoint]), ["TopologyAwareHintsDisabled IPv6"]);
  t.same(assign("Auto", "IPv4", both), ["TopologyAwareHintsEnabled IPv4"]);
  t.same(assign(undefined, "IPv4", both), ["TopologyAwareHintsDisabled IPv4"]);
  t.same(assign(undefined, "IPv6", both), []);
});
