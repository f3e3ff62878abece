import t from "tap";
import { type AuditAttributes, type AuditPolicy, createPolicyEvaluator, type PolicyRule } from "./policy.ts";

const anything: PolicyRule = {
  level: "Metadata",
  users: [],
  userGroups: [],
  verbs: [],
  resources: [],
  namespaces: [],
  nonResourceURLs: [],
  omitStages: [],
  omitManagedFields: undefined,
};
const getPod: AuditAttributes = {
  user: { name: "jo", groups: ["staff"] },
  verb: "get",
  isResourceRequest: true,
  namespace: "shop",
  group: "",
  resource: "pods",
  subresource: "",
  name: "web",
  path: "/api/v1/namespaces/shop/pods/web",
};
const getVersion: AuditAttributes = {
  ...getPod,
  isResourceRequest: false,
  namespace: "",
  resource: "",
  name: "",
  path: "/version",
};
const stored = { ...getPod, group: "apps.k8s.io", resource: "things" };

function evaluate(rule: Partial<PolicyRule>, attributes: AuditAttributes, policy: Partial<AuditPolicy> = {}) {
  const rules = [{ ...anything, ...rule }];
  return createPolicyEvaluator({ omitStages: [], omitManagedFields: false, ...policy, rules })(attributes);
}

t.test("a rule matches by all of its lists", async (t) => {
  const core = (...resources: string[]) => ({ resources: [{ group: "", resources, resourceNames: [] }] });
  const rows: readonly (readonly [Partial<PolicyRule>, AuditAttributes, boolean])[] = [
    [{}, getPod, true],
    [{}, getVersion, true],
    [{ users: ["jo"] }, getPod, true],
    [{ users: ["al"] }, getPod, false],
    [{ users: ["jo"] }, { ...getPod, user: undefined }, false],
    [{ userGroups: ["staff"] }, getPod, true],
    [{ userGroups: ["boss"] }, getPod, false],
    [{ users: ["jo"], userGroups: ["boss"] }, getPod, false],
    [{ verbs: ["list", "get"] }, getPod, true],
    [{ verbs: ["list"] }, getPod, false],
    [{ namespaces: ["shop"] }, getPod, true],
    [{ namespaces: [""] }, getPod, false],
    [{ namespaces: [""] }, { ...getPod, namespace: "" }, true],
    [{ namespaces: [""] }, getVersion, false],
    [core(), getPod, true],
    [core("pods"), getPod, true],
    [core("pods"), { ...getPod, subresource: "log" }, false],
    [core("pods/log"), { ...getPod, subresource: "log" }, true],
    [core("pods/*"), { ...getPod, subresource: "log" }, true],
    [core("*/log"), { ...getPod, subresource: "log" }, true],
    [core("*/log"), getPod, false],
    [core("*"), { ...getPod, subresource: "log" }, true],
    [core("pods"), getVersion, false],
    [core("pods"), { ...getPod, group: "apps" }, false],
    [{ resources: [{ group: "", resources: ["pods"], resourceNames: ["web"] }] }, getPod, true],
    [{ resources: [{ group: "", resources: ["pods"], resourceNames: ["db"] }] }, getPod, false],
    [{ resources: [{ group: "apps.svc.io", resources: [], resourceNames: [] }] }, stored, true],
    [{ nonResourceURLs: ["/version"] }, getVersion, true],
    [{ nonResourceURLs: ["/ver*"] }, getVersion, true],
    [{ nonResourceURLs: ["*"] }, getVersion, true],
    [{ nonResourceURLs: ["/healthz"] }, getVersion, false],
    [{ nonResourceURLs: ["*"] }, getPod, false],
  ];
  for (const [rule, attributes, matches] of rows) {
    t.equal(evaluate(rule, attributes).level, matches ? "Metadata" : "None", JSON.stringify([rule, attributes.path]));
  }
});

t.test("stages are omitted by policy or rule, and a rule overrides managed fields", async (t) => {
  const policy = { omitStages: ["Panic"], omitManagedFields: true } as const;
  const { omitStages, omitManagedFields } = evaluate({ omitStages: ["RequestReceived"] }, getPod, policy);
  t.same([...omitStages], ["Panic", "RequestReceived"]);
  t.equal(omitManagedFields, true);
  t.equal(evaluate({ omitManagedFields: false }, getPod, policy).omitManagedFields, false);
});
