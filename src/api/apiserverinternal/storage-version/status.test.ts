import t from "tap";
import { hasEncodingCondition, withServerVersions } from "./status.ts";

const empty = { metadata: { name: "apps.deployments" }, spec: {} };
const server = (apiServerID: string, encodingVersion: string) => ({ apiServerID, encodingVersion });
const [first, later] = ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"];

t.test("withServerVersions() sets the common version while all servers have the same", async (t) => {
  const same = withServerVersions(empty, [server("a", "apps/v1"), server("b", "apps/v1")], first);
  t.equal(same.status?.commonEncodingVersion, "apps/v1");
  t.match(same.status?.conditions, [{ status: "True", lastTransitionTime: first }]);
  t.equal(hasEncodingCondition(empty), false);
  t.equal(hasEncodingCondition(same), true);
  const still = withServerVersions(same, [server("a", "apps/v1")], later);
  t.match(still.status?.conditions, [{ status: "True", lastTransitionTime: first }]);
  const differing = withServerVersions(same, [server("a", "apps/v1"), server("b", "apps/v2")], later);
  t.equal(differing.status?.commonEncodingVersion, undefined);
  t.match(differing.status?.conditions, [
    { status: "False", reason: "CommonEncodingVersionUnset", lastTransitionTime: later },
  ]);
});
