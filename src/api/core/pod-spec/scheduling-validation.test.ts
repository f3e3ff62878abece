import t from "tap";
import { validateScheduling } from "./scheduling-validation.ts";
import type { PodSpec } from "./schema.ts";

function errorsOf(spec: Omit<PodSpec, "containers">): readonly string[] {
  return validateScheduling({ containers: [], ...spec }, "spec").map((error) => `${error.type} ${error.field}`);
}

const required = "requiredDuringSchedulingIgnoredDuringExecution";
const preferred = "preferredDuringSchedulingIgnoredDuringExecution";

t.test("validateScheduling() accepts valid affinity and spread constraints", async (t) => {
  const term = { matchExpressions: [{ key: "disk", operator: "In" as const, values: ["ssd"] }] };
  t.same(errorsOf({}), []);
  t.same(
    errorsOf({
      affinity: {
        nodeAffinity: { [required]: { nodeSelectorTerms: [term] }, [preferred]: [{ weight: 1, preference: term }] },
        podAntiAffinity: { [required]: [{ topologyKey: "kubernetes.io/hostname", labelSelector: {} }] },
      },
      topologySpreadConstraints: [
        { maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "DoNotSchedule", minDomains: 2 },
      ],
    }),
    [],
  );
});

t.test("validateScheduling() reports each error of an affinity", async (t) => {
  const node = `spec.affinity.nodeAffinity.${required}.nodeSelectorTerms`;
  t.same(errorsOf({ affinity: { nodeAffinity: { [required]: { nodeSelectorTerms: [] } } } }), [
    `FieldValueRequired ${node}`,
  ]);
  const wrong = { matchExpressions: [{ key: "", operator: "Exists" as const, values: ["x"] }] };
  t.same(errorsOf({ affinity: { nodeAffinity: { [required]: { nodeSelectorTerms: [wrong] } } } }), [
    `FieldValueForbidden ${node}[0].matchExpressions[0].values`,
    `FieldValueInvalid ${node}[0].matchExpressions[0].key`,
    `FieldValueInvalid ${node}[0].matchExpressions[0].key`,
  ]);
  const pods = `spec.affinity.podAffinity.${preferred}[0]`;
  const term = { topologyKey: "", labelSelector: { matchExpressions: [{ key: "a", operator: "Near" }] } };
  t.same(errorsOf({ affinity: { podAffinity: { [preferred]: [{ weight: 101, podAffinityTerm: term }] } } }), [
    `FieldValueInvalid ${pods}.weight`,
    `FieldValueInvalid ${pods}.podAffinityTerm.labelSelector.matchExpressions[0].operator`,
    `FieldValueRequired ${pods}.podAffinityTerm.topologyKey`,
    `FieldValueInvalid ${pods}.podAffinityTerm.topologyKey`,
    `FieldValueInvalid ${pods}.podAffinityTerm.topologyKey`,
  ]);
});

t.test("validateScheduling() reports each error of a spread constraint", async (t) => {
  const one = { maxSkew: 0, topologyKey: "zone", whenUnsatisfiable: "ScheduleAnyway" as const, minDomains: 1 };
  const at = "spec.topologySpreadConstraints";
  t.same(errorsOf({ topologySpreadConstraints: [one, { ...one, maxSkew: 1, matchLabelKeys: ["a"] }] }), [
    `FieldValueInvalid ${at}[0].maxSkew`,
    `FieldValueDuplicate ${at}[0].{topologyKey, whenUnsatisfiable}`,
    `FieldValueInvalid ${at}[0].minDomains`,
    `FieldValueInvalid ${at}[1].minDomains`,
    `FieldValueForbidden ${at}[1].matchLabelKeys`,
  ]);
});
