import t from "tap";
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
