import t from "tap";
import { definitionOf } from "../../../testing/api/definition-fixture.ts";
import type { CustomResourceDefinition, CustomResourceDefinitionNames } from "./schema.ts";
import { acceptNames, markEstablished } from "./status.ts";

const schema = { openAPIV3Schema: { type: "object" } };
const then = "2024-01-01T00:00:00Z";
const now = "2024-01-01T00:01:00Z";

function named(names: Partial<CustomResourceDefinitionNames>): CustomResourceDefinition {
  const { spec, ...rest } = definitionOf({ schema });
  const metadata = { name: `${names.plural ?? "widgets"}.example.com` };
  return { ...rest, metadata, spec: { ...spec, names: { ...spec.names, ...names } } };
}

function conditionsOf(definition: CustomResourceDefinition): readonly string[] {
  return (definition.status?.conditions ?? []).map(
    ({ type, status, reason, lastTransitionTime }) => `${type}=${status} ${reason} ${lastTransitionTime}`,
  );
}

t.test("acceptNames() accepts free names, and markEstablished() sets the Established condition", async (t) => {
  const accepted = acceptNames(named({}), [], then);
  t.match(accepted.status?.acceptedNames, { plural: "widgets", singular: "widget", kind: "Widget" });
  t.same(conditionsOf(accepted), [`NamesAccepted=True NoConflicts ${then}`, `Established=False Installing ${then}`]);
  const established = markEstablished(accepted, now);
  t.same(conditionsOf(established), [
    `NamesAccepted=True NoConflicts ${then}`,
    `Established=True InitialNamesAccepted ${now}`,
  ]);
  t.equal(acceptNames(established, [established], now), established, "nothing is new");
  t.equal(markEstablished(established, now), established);
});

t.test("acceptNames() rejects names that another definition uses", async (t) => {
  const first = acceptNames(named({ shortNames: ["w"] }), [], then);
  const second = acceptNames(named({ plural: "gadgets", singular: "w", listKind: "GadgetList" }), [first], now);
  t.match(second.status?.acceptedNames, { plural: "gadgets", singular: undefined, kind: "", listKind: "GadgetList" });
  t.same(conditionsOf(second), [`NamesAccepted=False KindConflict ${now}`, `Established=False NotAccepted ${now}`]);
  t.equal(markEstablished(second, now), second);
  const elsewhere = { ...second, spec: { ...second.spec, group: "other.com" } };
  t.match(conditionsOf(acceptNames(elsewhere, [first], now))[0], /NoConflicts/);
});

t.test("acceptNames() sets the approval condition for Kubernetes' groups", async (t) => {
  const { spec, ...rest } = named({});
  const inGroup = { ...rest, spec: { ...spec, group: "x.k8s.io" } };
  t.match(conditionsOf(acceptNames(inGroup, [], now))[2], /^KubernetesAPIApprovalPolicyConformant=False Missing/);
});
