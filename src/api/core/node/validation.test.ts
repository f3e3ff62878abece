import t from "tap";
import type { FieldError } from "../../../schema/validation/field-error.ts";
import type { Node } from "./schema.ts";
import { validateNode, validateNodeUpdate } from "./validation.ts";

const TAINTS = "scheduler.alpha.kubernetes.io/taints";
const AVOID_PODS = "scheduler.alpha.kubernetes.io/preferAvoidPods";

function lines(errors: readonly FieldError[]): readonly string[] {
  return errors.map(({ type, field, detail }) => `${type} ${field} ${detail ?? ""}`.trim());
}

t.test("validateNode() validates the annotations for taints and for pods to avoid", async (t) => {
  const at = "metadata.annotations";
  const controller = JSON.stringify({ preferAvoidPods: [{ podSignature: { podController: { controller: true } } }] });
  const unsure = JSON.stringify({ preferAvoidPods: [{}, { podSignature: { podController: { name: "a" } } }] });
  const decoding = "FieldValueInvalid metadata.annotations json: cannot unmarshal";
  const table: readonly (readonly [annotation: string, text: string, errors: readonly string[]])[] = [
    [TAINTS, "", []],
    [TAINTS, "null", []],
    [TAINTS, '[{"key":"a","effect":"NoSchedule"}]', []],
    [TAINTS, "{}", [`${decoding} object into Go value of type []core.Taint`]],
    [TAINTS, '["a"]', [`${decoding} string into Go value of type core.Taint`]],
    [TAINTS, '[{"key":5}]', [`${decoding} number into Go struct field Taint.Key of type string`]],
    [TAINTS, '[{"key":"a"}]', [`FieldValueRequired ${at}.${TAINTS}[0].effect`]],
    [AVOID_PODS, controller, []],
    [
      AVOID_PODS,
      "[]",
      [`FieldValueInvalid ${at}.AvoidPods json: cannot unmarshal array into Go value of type v1.AvoidPods`],
    ],
    [
      AVOID_PODS,
      unsure,
      [
        `FieldValueRequired ${at}.${AVOID_PODS}[0].PodSignature`,
        `FieldValueInvalid ${at}.${AVOID_PODS}[1].PodSignature.PodController.Controller must point to a controller`,
      ],
    ],
  ];
  for (const [annotation, text, errors] of table) {
    const node: Node = { metadata: { name: "a", annotations: { [annotation]: text } } };
    t.same(lines(validateNode(node)), errors, `${annotation} ${text}`);
    t.same(lines(validateNodeUpdate(node, {})), errors, `an update with ${annotation} ${text}`);
  }
  const text = lines(validateNode({ metadata: { annotations: { [TAINTS]: "x" } } }));
  t.match(text, [/^FieldValueInvalid metadata\.annotations /]);
});

t.test("validateNodeUpdate() reports errors in Kubernetes' order", async (t) => {
  const previous: Node = { spec: { podCIDRs: ["10.0.0.0/24"], providerID: "a", externalID: "a" } };
  const next: Node = {
    spec: { podCIDRs: ["10.0.1.0/24"], providerID: "b", taints: [{ key: "a", effect: "x" as "NoSchedule" }] },
    status: { capacity: { cpu: "-1" } },
  };
  t.same(
    validateNodeUpdate(next, previous).map(({ field }) => field),
    ["status.capacity.cpu", "spec.podCIDRs", "spec.providerID", "metadata.taints[0].effect", "spec.externalID"],
  );
});
