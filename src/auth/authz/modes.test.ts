import t from "tap";
import type { Attributes } from "../user.ts";
import { createModeAuthorizer } from "./modes.ts";

function attributesOf(...groups: string[]): Attributes {
  const user = { name: "x", uid: "", groups, extra: {} };
  const target = { resource: "pods", subresource: "", name: "a", namespace: "b", apiGroup: "", apiVersion: "v1" };
  return { user, verb: "get", isResourceRequest: true, path: "/", ...target };
}

t.test("createModeAuthorizer() tries the modes in order, after allowing system:masters", async (t) => {
  t.match(await createModeAuthorizer(["AlwaysAllow"]).authorize(attributesOf()), { decision: "allow" });
  t.match(await createModeAuthorizer(["AlwaysDeny"]).authorize(attributesOf()), {
    decision: "no-opinion",
    reason: "Everything is forbidden.",
  });
  t.match(await createModeAuthorizer(["AlwaysDeny"]).authorize(attributesOf("system:masters")), { decision: "allow" });
  t.match(await createModeAuthorizer(["Node", "RBAC"]).authorize(attributesOf()), {
    decision: "no-opinion",
    reason: "",
  });
  t.match(await createModeAuthorizer(["RBAC", "AlwaysAllow"]).authorize(attributesOf()), { decision: "allow" });
});

t.test("createModeAuthorizer() rejects invalid modes", async (t) => {
  const bad: readonly (readonly [readonly string[], RegExp])[] = [
    [[], /at least one/],
    [["ABAC"], /--authorization-mode=ABAC: mode "ABAC" needs a file/],
    [["RBAC", "Webhook"], /"Webhook" needs a file/],
    [["rbac"], /"rbac" is unknown; valid modes are AlwaysAllow, AlwaysDeny, Node, RBAC, ABAC, Webhook/],
    [["constructor"], /unknown/],
    [["RBAC", "RBAC"], /is a duplicate/],
  ];
  for (const [modes, message] of bad) t.throws(() => createModeAuthorizer(modes), { message }, modes.join());
});
