/** Which kinds a PUT creates, and which it replaces without a resourceVersion, as in Kubernetes. */
import t from "tap";
import { everyKind } from "../../testing/api/every-kind.ts";

/** Kinds that a PUT to a name without an object creates. */
const CREATED_BY_UPDATES: ReadonlySet<string> = new Set([
  "endpoints",
  "events",
  "limitranges",
  "services",
  "leases",
  "leasecandidates",
  "roles",
  "rolebindings",
  "clusterroles",
  "clusterrolebindings",
]);

/** Kinds whose updates must name a resourceVersion. */
const CONDITIONAL: ReadonlySet<string> = new Set([
  "poddisruptionbudgets",
  "leases",
  "leasecandidates",
  "clustertrustbundles",
  "storageversions",
  "storageversionmigrations",
  "runtimeclasses",
  "csidrivers",
  "csinodes",
  "csistoragecapacities",
  "volumeattachments",
  "apiservices",
  "customresourcedefinitions",
  "validatingwebhookconfigurations",
  "mutatingwebhookconfigurations",
  "validatingadmissionpolicies",
  "validatingadmissionpolicybindings",
  "mutatingadmissionpolicies",
  "mutatingadmissionpolicybindings",
]);

t.test("kinds differ in what a PUT may do", async (t) => {
  let found = 0;
  for (const { plural, group, verbs, strategy } of everyKind().kinds()) {
    if (!verbs.includes("update")) continue;
    found++;
    t.equal(strategy.allowCreateOnUpdate === true, CREATED_BY_UPDATES.has(plural), `${plural}.${group} created`);
    t.equal(strategy.allowUnconditionalUpdate === false, CONDITIONAL.has(plural), `${plural}.${group} conditional`);
  }
  t.ok(found > 50, String(found));
});
