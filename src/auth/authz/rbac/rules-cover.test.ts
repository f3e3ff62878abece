import t from "tap";
import type { PolicyRule } from "../../../api/rbac/policy-rule.ts";
import { compactRules, countCombinations, findUncovered, findUncoveredInSteps } from "./rules-cover.ts";

const rule = (verbs: string, resources: string, more: Partial<PolicyRule> = {}): PolicyRule => ({
  verbs: verbs.split(" "),
  apiGroups: [""],
  resources: resources.split(" "),
  ...more,
});

t.test("findUncovered() returns the requested rules that are not covered", async (t) => {
  const owned = [
    rule("get list", "pods"),
    rule("get", "*/status"),
    rule("*", "events", { apiGroups: ["events.k8s.io"] }),
  ];
  const all = (expected: PolicyRule) =>
    findUncovered(owned, [expected]).map(({ verbs, resources }) => `${verbs} ${resources}`);
  t.same(all(rule("get", "pods")), []);
  t.same(all(rule("get list watch", "pods secrets")), ["get secrets", "list secrets", "watch pods", "watch secrets"]);
  t.same(all(rule("get", "nodes/status")), []);
  t.same(all(rule("get", "nodes")), ["get nodes"]);
  t.same(all(rule("get", "pods", { resourceNames: ["a"] })), []);
  t.same(all(rule("patch", "events", { apiGroups: ["events.svc.io"] })), [], "aliases of a group are equal");
  t.same(all(rule("*", "*")), ["* *"]);
});

t.test("findUncovered() stops after a thousand parts, and compares in steps", async (t) => {
  const resourceNames = Array.from({ length: 5000 }, (_, index) => `n${index}`);
  const requested = [rule("get", "pods", { resourceNames })];
  t.equal(findUncovered([], requested).length, 1000);
  const all = [rule("get", "pods")];
  let steps = 0;
  for (const comparison = findUncoveredInSteps(all, requested); comparison.next().done !== true; ) steps++;
  t.equal(steps, 50);
  t.same(findUncovered(all, requested), []);
});

t.test("uncovered() distinguishes named objects from all, and paths from subpaths", async (t) => {
  const named = [rule("get", "pods", { resourceNames: ["a"] })];
  t.equal(findUncovered(named, [rule("get", "pods")]).length, 1);
  t.equal(findUncovered(named, [rule("get", "pods", { resourceNames: ["a", "b"] })]).length, 1);
  const paths = [{ verbs: ["get"], nonResourceURLs: ["/healthz", "/apis/*"] }];
  t.same(findUncovered(paths, [{ verbs: ["get"], nonResourceURLs: ["/apis/x", "/healthz/log"] }]), [
    { verbs: ["get"], nonResourceURLs: ["/healthz/log"] },
  ]);
  t.same(findUncovered([{ verbs: ["*"], nonResourceURLs: ["*"] }], [{ verbs: ["get"], nonResourceURLs: ["/x"] }]), []);
});

t.test("compactRules() merges verbs, and countCombinations() counts simple rules", async (t) => {
  const path = { verbs: ["get", "head"], nonResourceURLs: ["/x", "/y"] };
  const rules = [rule("get list", "pods secrets"), path, rule("get", "pods", { resourceNames: ["a", "b"] })];
  t.equal(countCombinations(rules), 4 + 4 + 2);
  t.same(
    compactRules(findUncovered([], rules)).map(({ verbs, resources = [], nonResourceURLs = [], resourceNames = [] }) =>
      [...verbs, ...resources, ...nonResourceURLs, ...resourceNames].join(" "),
    ),
    ["get /x", "get /y", "head /x", "head /y", "get list pods", "get list secrets", "get pods a", "get pods b"],
  );
});
