import t from "tap";
import type { Attributes } from "../../user.ts";
import { abacAuthorizer } from "./abac.ts";
import { parseAbacFile } from "./policy-file.ts";

type RequestOptions = Partial<Attributes> & { readonly who?: string; readonly in?: readonly string[] };

function attributesOf({ who = "alice", in: groups = ["system:authenticated"], ...rest }: RequestOptions): Attributes {
  const user = { name: who, uid: "", groups, extra: {} };
  const target = { resource: "pods", subresource: "", name: "a", namespace: "ns", apiGroup: "", apiVersion: "v1" };
  return { user, verb: "get", isResourceRequest: true, path: "", ...target, ...rest };
}

const v1 = (spec: unknown): string =>
  JSON.stringify({ apiVersion: "abac.authorization.kubernetes.io/v1beta1", kind: "Policy", spec });

t.test("abacAuthorizer() allows requests that match a policy", async (t) => {
  const all = { namespace: "*", resource: "*", apiGroup: "*" };
  const cases: readonly (readonly [line: string, requested: RequestOptions, allowed: boolean])[] = [
    [v1({ user: "alice", ...all }), { verb: "delete" }, true],
    [v1({ user: "alice", ...all }), { who: "bob" }, false],
    [v1({ user: "alice", readonly: true, ...all }), { verb: "watch" }, true],
    [v1({ user: "alice", readonly: true, ...all }), { verb: "create" }, false],
    [v1({ user: "alice", group: "team", ...all }), {}, false],
    [v1({ user: "alice", group: "team", ...all }), { in: ["team"] }, true],
    [v1({ ...all }), {}, false],
    [v1({ user: "*", ...all }), {}, true],
    [v1({ user: "*", ...all }), { who: "system:anonymous", in: ["system:unauthenticated"] }, false],
    [v1({ user: "alice", namespace: "ns", resource: "pods" }), { subresource: "log" }, true],
    [v1({ user: "alice", namespace: "ns", resource: "pods" }), { apiGroup: "apps" }, false],
    [v1({ user: "alice", namespace: "other", resource: "pods" }), {}, false],
    [
      v1({ user: "alice", namespace: "*", resource: "leases", apiGroup: "coordination.k8s.io" }),
      { resource: "leases", apiGroup: "coordination.svc.io" },
      true,
    ],
    [v1({ user: "alice", nonResourcePath: "/logs*" }), { isResourceRequest: false, path: "/logs/x" }, true],
    [v1({ user: "alice", nonResourcePath: "/logs" }), { isResourceRequest: false, path: "/logs/x" }, false],
    [v1({ user: "alice", ...all }), { isResourceRequest: false, path: "/version" }, false],
    ['{"user":"alice"}', { isResourceRequest: false, path: "/version" }, true],
    ['{"user":"alice","resource":"pods"}', { apiGroup: "metrics.k8s.io" }, true],
    ['{"user":"alice","resource":"pods"}', { isResourceRequest: false, path: "/version" }, false],
    ["{}", {}, true],
    ["{}", { in: ["system:unauthenticated"] }, false],
    ['{"group":"*","readonly":true}', { verb: "list" }, true],
  ];
  for (const [line, requested, allowed] of cases) {
    const authorizer = abacAuthorizer(parseAbacFile("f", line).policies);
    const { decision, reason } = await authorizer.authorize(attributesOf(requested));
    t.equal(decision === "allow", allowed, `${line} ${JSON.stringify(requested)}`);
    if (!allowed) t.equal(reason, "No policy matched.");
  }
});

t.test("parseAbacFile() rejects an invalid file with its line", async (t) => {
  const bad: readonly (readonly [string, RegExp])[] = [
    ["# fine\n\n{", /policy file f, line 3: \{: /],
    ["[]", /line 1: \[\]: expected a JSON object/],
    ['{"user":1}', /line 1: .*user: expected a string/],
    [v1({ readonly: "yes" }), /spec\.readonly: expected true or false/],
    ['{"apiVersion":"v1","kind":"Policy"}', /no kind "Policy" is registered for version "v1"/],
    ['{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Role"}', /no kind "Role"/],
  ];
  for (const [text, message] of bad) t.throws(() => parseAbacFile("f", text), { message }, text);
});

t.test("parseAbacFile() warns about unknown fields and unversioned policies", async (t) => {
  const { policies, warnings } = parseAbacFile("f", `# c\n${v1({ user: "a", namespce: "x" })}\n{"user":"b"}\n`);
  t.equal(policies.length, 2);
  t.match(warnings, [/f:2: unknown field "spec.namespce"/, /unversioned policies \(lines 3\)/]);
});

t.test("abacAuthorizer() lists the rules of a user", async (t) => {
  const text = [
    v1({ user: "alice", namespace: "ns", resource: "pods", readonly: true }),
    v1({ user: "alice", namespace: "other", resource: "secrets" }),
    '{"group":"team"}',
  ].join("\n");
  const authorizer = abacAuthorizer(parseAbacFile("f", text).policies);
  t.same(authorizer.rulesFor!({ name: "alice", uid: "", groups: ["team"], extra: {} }, "ns").rules, [
    { verbs: ["get", "list", "watch"], apiGroups: [""], resources: ["pods"] },
    { verbs: ["*"], apiGroups: ["*"], resources: ["*"] },
    { verbs: ["*"], nonResourceURLs: ["*"] },
  ]);
});
