import t from "tap";
import { builtinKinds, builtinScheme } from "./builtin.ts";
import { leaseKind } from "./coordination/lease/kind.ts";
import { nodeKind } from "./core/node/kind.ts";
import { formatApiVersion, kubernetesGroup, parseApiVersion, Scheme, svcGroup } from "./scheme.ts";

t.test("builtinScheme() finds kinds by either alias of a group", async (t) => {
  const scheme = builtinScheme();
  t.equal(scheme.byResource("coordination.k8s.io", "v1", "leases"), leaseKind);
  t.equal(scheme.byResource("coordination.svc.io", "v1", "leases"), leaseKind);
  t.equal(scheme.byKind("", "v1", "Node"), nodeKind);
  t.equal(scheme.byResource("", "v2", "nodes"), undefined);
  t.ok(scheme.kinds().length > 0);
});

t.test("Scheme.register() throws when the kind is registered already", async (t) => {
  const scheme = new Scheme();
  scheme.register(nodeKind);
  t.throws(() => scheme.register(nodeKind), /twice/);
});

t.test("kubernetesGroup() and svcGroup() convert between the aliases of a group", async (t) => {
  t.equal(kubernetesGroup("events.svc.io"), "events.k8s.io");
  t.equal(svcGroup("events.k8s.io"), "events.svc.io");
  for (const group of ["", "apps", "example.com"]) t.same([kubernetesGroup(group), svcGroup(group)], [group, group]);
});

t.test("parseApiVersion() parses VERSION and GROUP/VERSION and rejects other text", async (t) => {
  t.same(parseApiVersion("v1"), { group: "", version: "v1" });
  t.same(parseApiVersion("apps/v1"), { group: "apps", version: "v1" });
  for (const bad of ["", "/v1", "apps/", "a/b/c"]) t.equal(parseApiVersion(bad), undefined, bad);
  t.equal(formatApiVersion("apps", "v1"), "apps/v1");
  t.equal(formatApiVersion("", "v1"), "v1");
});

t.test("returnsDeletedObject is set for the kinds that Kubernetes 1.33 returns after a delete", async (t) => {
  const returned = builtinKinds.filter((kind) => kind.returnsDeletedObject).map(({ kind }) => kind);
  t.equal(returned.length, 11);
  t.ok(returned.includes("Pod"));
  t.notOk(returned.includes("Deployment"));
});
