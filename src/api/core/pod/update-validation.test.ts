import t from "tap";
import type { PodSpec } from "../pod-spec/schema.ts";
import { setPodDefaults } from "./defaults.ts";
import type { Pod } from "./schema.ts";
import { validatePodUpdate } from "./update-validation.ts";

const container = { name: "a", image: "web:1" };
const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";

function pod(spec: Partial<PodSpec>, annotations?: Readonly<Record<string, string>>): Pod {
  return setPodDefaults({
    metadata: { name: "web", ...(annotations && { annotations }) },
    spec: { containers: [container], ...spec },
  });
}

function errorsOf(previous: Pod, next: Pod): readonly string[] {
  return validatePodUpdate(next, previous).map(({ type, field }) => `${type} ${field}`);
}

function terms(...keys: readonly string[]): NonNullable<PodSpec["affinity"]> {
  const matchExpressions = keys.map((key) => ({ key, operator: "Exists" as const }));
  return { nodeAffinity: { [REQUIRED]: { nodeSelectorTerms: [{ matchExpressions }] } } };
}

t.test("validatePodUpdate() accepts only narrower node selection of a gated pod", async (t) => {
  const gates = [{ name: "example.com/a" }, { name: "example.com/b" }];
  const gated = pod({ schedulingGates: gates, nodeSelector: { disk: "ssd" }, affinity: terms("zone") });
  const change = (spec: Partial<PodSpec>): readonly string[] =>
    errorsOf(gated, pod({ ...gated.spec, ...spec } as Partial<PodSpec>));
  t.same(change({ schedulingGates: [] }), []);
  t.same(change({ nodeSelector: { disk: "ssd", arch: "arm" } }), []);
  t.same(change({ nodeSelector: { disk: "hdd" } }), ["FieldValueInvalid spec.nodeSelector"]);
  t.same(change({ affinity: terms("zone", "rack") }), []);
  const at = `spec.affinity.nodeAffinity.${REQUIRED}.nodeSelectorTerms`;
  t.same(change({ affinity: terms("rack") }), [`FieldValueInvalid ${at}[0]`]);
  t.same(change({ schedulingGates: [...gates, { name: "example.com/c" }] }), [
    "FieldValueForbidden spec.schedulingGates[2].name",
  ]);
  t.same(change({ hostname: "h" }), ["FieldValueForbidden spec"]);
});

t.test("validatePodUpdate() rejects changes of node selection without scheduling gates", async (t) => {
  t.same(errorsOf(pod({}), pod({ nodeSelector: { disk: "ssd" } })), ["FieldValueForbidden spec"]);
});

t.test("validatePodUpdate() rejects changes of AppArmor and mirror annotations", async (t) => {
  const armor = "container.apparmor.security.beta.kubernetes.io/a";
  const confined = pod({}, { [armor]: "unconfined" });
  t.same(errorsOf(confined, pod({}, { [armor]: "unconfined" })), []);
  t.same(errorsOf(confined, pod({})), [`FieldValueForbidden metadata.annotations[${armor}]`]);
  t.same(errorsOf(pod({}), confined), [`FieldValueForbidden metadata.annotations[${armor}]`]);
});

t.test("validatePodUpdate() accepts a shorter deadline, not a longer one", async (t) => {
  const limited = pod({ activeDeadlineSeconds: 10 });
  t.same(errorsOf(limited, pod({ activeDeadlineSeconds: 9 })), []);
  t.same(errorsOf(limited, pod({ activeDeadlineSeconds: 11 })), ["FieldValueInvalid spec.activeDeadlineSeconds"]);
  t.same(errorsOf(limited, pod({})), ["FieldValueInvalid spec.activeDeadlineSeconds"]);
});

t.test("validatePodUpdate() accepts invalid values that the stored pod has already", async (t) => {
  const sysctls = [{ name: "net.core.somaxconn", value: "1" }];
  const old = pod({ hostNetwork: true, securityContext: { sysctls } });
  const next = pod({ hostNetwork: true, securityContext: { sysctls }, activeDeadlineSeconds: 5 });
  t.same(errorsOf(old, next), []);
});

t.test("validatePodUpdate() accepts a resourceFieldRef with or without the zero divisor", async (t) => {
  const withRef = (divisor: object): Pod => {
    const resourceFieldRef = { resource: "limits.cpu", containerName: "a", ...divisor };
    const env = [{ name: "A", valueFrom: { resourceFieldRef } }];
    const volumes = [{ name: "v", downwardAPI: { items: [{ path: "x", resourceFieldRef }] } }];
    return pod({ containers: [{ ...container, env }], volumes });
  };
  const [absent, zero, one] = [withRef({}), withRef({ divisor: "0" }), withRef({ divisor: "1" })];
  t.same(errorsOf(absent, zero), []);
  t.same(errorsOf(zero, absent), []);
  t.same(errorsOf(zero, one), ["FieldValueForbidden spec"]);
});
