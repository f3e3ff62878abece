import t from "tap";
import type { Attributes } from "../user.ts";
import { authorizerFor } from "./modes.ts";

function get(...groups: string[]): Attributes {
  const user = { name: "x", uid: "", groups, extra: {} };
  const about = { resource: "pods", subresource: "", name: "a", namespace: "b", apiGroup: "", apiVersion: "v1" };
  return { user, verb: "get", isResourceRequest: true, path: "/", ...about };
}

t.test("authorizerFor() asks the modes in order, after letting system:masters through", async (t) => {
  t.match(await authorizerFor(["AlwaysAllow"]).authorize(get()), { decision: "allow" });
  t.match(await authorizerFor(["AlwaysDeny"]).authorize(get()), {
    decision: "no-opinion",
    reason: "Everything is forbidden.",
  });
  t.match(await authorizerFor(["AlwaysDeny"]).authorize(get("system:masters")), { decision: "allow" });
  t.match(await authorizerFor(["Node", "RBAC"]).authorize(get()), { decision: "no-opinion", reason: "" });
  t.match(await authorizerFor(["RBAC", "AlwaysAllow"]).authorize(get()), { decision: "allow" });
});

t.test("authorizerFor() names the mode it cannot use", async (t) => {
  const bad: readonly (readonly [readonly string[], RegExp])[] = [
    [[], /at least one/],
    [["ABAC"], /--authorization-mode=ABAC: mode "ABAC" needs its file/],
    [["RBAC", "Webhook"], /"Webhook" needs its file/],
    [["rbac"], /"rbac" is unknown; there are AlwaysAllow, AlwaysDeny, Node, RBAC, ABAC, Webhook/],
    [["constructor"], /unknown/],
    [["RBAC", "RBAC"], /given twice/],
  ];
  for (const [modes, message] of bad) t.throws(() => authorizerFor(modes), { message }, modes.join());
});
