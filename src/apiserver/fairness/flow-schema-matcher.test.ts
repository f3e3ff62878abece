import t from "tap";
import type { FlowSchemaSpec, PolicyRulesWithSubjects, Subject } from "../../api/flowcontrol/flow-schema/schema.ts";
import { parseRequestInfo } from "../request/request-info.ts";
import { compileFlowSchema } from "./flow-schema-matcher.ts";

const everything = {
  resourceRules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"], clusterScope: true, namespaces: ["*"] }],
  nonResourceRules: [{ verbs: ["*"], nonResourceURLs: ["*"] }],
};
const anyone: Subject[] = [{ kind: "Group", group: { name: "*" } }];

function matches(rules: FlowSchemaSpec["rules"], line: string, name = "jo", groups: readonly string[] = []): boolean {
  const [method = "", path = ""] = line.split(" ");
  const schema = { spec: { priorityLevelConfiguration: { name: "x" }, rules } };
  const user = { name, uid: "", groups, extra: {} };
  return compileFlowSchema(schema)(parseRequestInfo({ method, path, query: "" }), user);
}

t.test("compileFlowSchema() matches subjects", async (t) => {
  const subject = (one: Subject, name: string, ...groups: string[]): boolean =>
    matches([{ subjects: [one], ...everything }], "GET /version", name, groups);
  t.ok(subject({ kind: "User", user: { name: "jo" } }, "jo"));
  t.notOk(subject({ kind: "User", user: { name: "jo" } }, "joe"));
  t.ok(subject({ kind: "User", user: { name: "*" } }, "joe"));
  t.ok(subject({ kind: "Group", group: { name: "a" } }, "jo", "b", "a"));
  t.notOk(subject({ kind: "Group", group: { name: "a" } }, "jo", "b"));
  t.ok(subject({ kind: "Group", group: { name: "*" } }, "jo"), "even without groups");
  const account = (name: string): Subject => ({ kind: "ServiceAccount", serviceAccount: { namespace: "ns", name } });
  t.ok(subject(account("one"), "system:serviceaccount:ns:one"));
  t.notOk(subject(account("one"), "system:serviceaccount:ns:two"));
  t.ok(subject(account("*"), "system:serviceaccount:ns:two"));
  t.notOk(subject(account("*"), "system:serviceaccount:nsx:two"));
  t.notOk(subject({ kind: "User" }, "jo"), "a subject without its member");
  t.notOk(matches(undefined, "GET /version"), "no rules");
  t.notOk(matches([{ subjects: [], ...everything }], "GET /version"));
});

t.test("compileFlowSchema() matches resources", async (t) => {
  type Rule = NonNullable<PolicyRulesWithSubjects["resourceRules"]>[number];
  const all: Rule = { verbs: ["*"], apiGroups: ["*"], resources: ["*"], clusterScope: true, namespaces: ["*"] };
  const rule = (change: Partial<Rule>, line: string): boolean =>
    matches([{ subjects: anyone, resourceRules: [{ ...all, ...change }] }], line);
  const PODS = "GET /api/v1/namespaces/a/pods";
  t.ok(rule({}, PODS));
  t.notOk(rule({}, "GET /version"));
  t.ok(rule({ verbs: ["get", "list"] }, PODS));
  t.notOk(rule({ verbs: ["get"] }, PODS));
  t.ok(rule({ resources: ["pods"] }, PODS));
  t.notOk(rule({ resources: ["pods"] }, `${PODS}/x/status`));
  t.ok(rule({ resources: ["nodes", "pods/status"] }, `${PODS}/x/status`));
  t.ok(rule({ apiGroups: [""] }, PODS));
  t.notOk(rule({ apiGroups: ["apps"] }, PODS));
  t.ok(rule({ apiGroups: ["events.k8s.io"] }, "GET /apis/events.svc.io/v1/events"), "either name of the group");
  t.ok(rule({ apiGroups: ["events.svc.io"] }, "GET /apis/events.k8s.io/v1/events"));
  t.ok(rule({ namespaces: ["b", "a"] }, PODS));
  t.notOk(rule({ namespaces: ["b"] }, PODS));
  t.notOk(rule({ clusterScope: false }, "GET /api/v1/pods"), "a star is no cluster scope");
  t.ok(rule({ namespaces: [] }, "GET /api/v1/nodes"));
  t.notOk(rule({ namespaces: ["a"] }, "GET /api/v1/namespaces/b/pods"));
});

t.test("compileFlowSchema() matches paths and what is below them", async (t) => {
  const path = (pattern: string, line: string): boolean =>
    matches([{ subjects: anyone, nonResourceRules: [{ verbs: ["get"], nonResourceURLs: ["/x", pattern] }] }], line);
  t.ok(path("/healthz", "GET /healthz"));
  t.ok(path("/healthz", "GET /healthz/ping"));
  t.notOk(path("/healthz", "GET /healthzz"));
  t.notOk(path("/healthz", "POST /healthz"));
  t.ok(path("/healthz/*", "GET /healthz/ping"));
  t.notOk(path("/healthz/*", "GET /healthz"));
  t.notOk(path("/api", "GET /api/v1/pods"), "a resource");
});
