import t from "tap";
import type { Endpoint } from "../../../api/discovery/endpoint-slice/schema.ts";
import { keepNetworkFields } from "./network-objects.ts";

t.test("keepNetworkFields() drops what no part of an agent reads", async (t) => {
  const metadata = { name: "web-1", namespace: "default" };
  const address = { addresses: ["10.1.0.1"], nodeName: "n1", zone: "z1", hostname: "web-0" };
  const conditions = () => ({ ready: true, serving: true, terminating: false });
  const endpoints: readonly Endpoint[] = [
    { ...address, conditions: conditions(), targetRef: { kind: "Pod", name: "web-0" } },
    { ...address, conditions: conditions() },
    address,
  ];
  const slice = keepNetworkFields({ metadata: { ...metadata, managedFields: [{ manager: "m" }] }, endpoints });
  t.same(slice, {
    metadata,
    endpoints: [{ ...address, conditions: conditions() }, { ...address, conditions: conditions() }, address],
  });
  t.equal(slice.endpoints[0]?.conditions, slice.endpoints[1]?.conditions, "equal conditions are one object");
  const service = { metadata, spec: { clusterIP: "10.96.0.1" } };
  t.equal(keepNetworkFields(service), service);
});
