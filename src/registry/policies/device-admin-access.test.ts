import t from "tap";
import { flatResourceClaimKinds } from "../../api/resource/flat-versions/kinds.ts";
import { resourceClaimKind } from "../../api/resource/resource-claim/kind.ts";
import { resourceClaimTemplateKind } from "../../api/resource/resource-claim-template/kind.ts";
import type { ResourceClaim, ResourceClaimTemplate } from "../../api/resource/schemas.ts";
import { combinePolicies, requireAdminLabel } from "./device-admin-access.ts";

const labels = { "resource.k8s.io/admin-access": "true" };
const policy = requireAdminLabel((name) => (name === "admins" ? { metadata: { name, labels } } : undefined));

t.test("requireAdminLabel() rejects claims and templates in other namespaces", async (t) => {
  const exactly = { deviceClassName: "x", adminAccess: true };
  const spec = { devices: { requests: [{ name: "r", exactly }] } };
  const claim = (namespace: string): ResourceClaim => ({ metadata: { namespace }, spec });
  const template: ResourceClaimTemplate = { metadata: { namespace: "users" }, spec: { spec } };
  t.match(policy(resourceClaimKind, claim("users"), undefined), [
    { detail: /requires the .* label on the containing/ },
  ]);
  t.same(policy(resourceClaimKind, claim("admins"), undefined), []);
  t.same(policy(resourceClaimKind, claim("users"), claim("users")), [], "a stored claim keeps its access");
  t.equal(policy(resourceClaimTemplateKind, template, undefined).length, 1);
  const flat = { metadata: { namespace: "users" }, spec: { devices: { requests: [{ name: "r", ...exactly }] } } };
  t.equal(policy(flatResourceClaimKinds[0]!, flat, undefined).length, 1, "in any version");
});

t.test("combinePolicies() returns the errors of all", async (t) => {
  const failing = () => [{ type: "FieldValueForbidden", field: "a", detail: "no" }] as const;
  t.equal(combinePolicies(undefined), undefined);
  t.equal(combinePolicies(failing, undefined, failing)?.(resourceClaimKind, {}, undefined).length, 2);
});
