import t from "tap";
import { validateStatefulSet } from "../../apps/stateful-set/validation.ts";
import type { ObjectMeta } from "../../meta/object-meta.ts";
import { validatePodStatusUpdate } from "../pod/status-validation.ts";
import { validatePodUpdate } from "../pod/update-validation.ts";
import { validateNewPod } from "../pod/validation.ts";
import { validatePodAnnotations } from "./annotation-validation.ts";
import type { PodSpec } from "./schema.ts";

const COST = "controller.kubernetes.io/pod-deletion-cost";
const TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations";
const spec: PodSpec = { containers: [{ name: "a", image: "web:1" }] };

function errorsOf(annotation: string, text: string): readonly string[] {
  return validatePodAnnotations({ annotations: { [annotation]: text } }, spec, "metadata.annotations", {}).map(
    ({ field, detail }) => `${field}: ${detail}`,
  );
}

t.test("validatePodAnnotations() reports any JSON that is no list of tolerations", async (t) => {
  const problem = (text: string): readonly string[] => [`metadata.annotations: json: cannot unmarshal ${text}`];
  for (const text of ["", "null", "[]", "[{}]".replace("{}", '{"operator":"Exists"}')]) {
    t.same(errorsOf(TOLERATIONS, text), [], text);
  }
  t.same(errorsOf(TOLERATIONS, "5"), problem("number into Go value of type []core.Toleration"));
  t.same(errorsOf(TOLERATIONS, "{}"), problem("object into Go value of type []core.Toleration"));
  t.same(errorsOf(TOLERATIONS, "[[]]"), problem("array into Go value of type core.Toleration"));
  t.same(errorsOf(TOLERATIONS, '[{"key":1}]'), problem("number into Go struct field Toleration.Key of type string"));
  t.match(errorsOf(TOLERATIONS, "[null]"), [/^metadata\.annotations\.scheduler.*\[0\]\.operator: operator must be/]);
  t.match(errorsOf(TOLERATIONS, "["), [/^metadata\.annotations: /]);
});

t.test("validatePodAnnotations() accepts the deletion costs that Go's parser accepts", async (t) => {
  for (const text of ["0", "-0", "-01", "10", "-2147483648", "2147483647"]) t.same(errorsOf(COST, text), [], text);
  for (const text of ["", "+1", "01", "1.5", "x", "-", "2147483648"]) {
    t.same(errorsOf(COST, text), [`metadata.annotations[${COST}]: must be a 32bit integer`], text);
  }
});

t.test("pods, their status and the templates of StatefulSets follow the rules for pod annotations", async (t) => {
  const metadata: ObjectMeta = { name: "a", labels: { app: "a" }, annotations: { [COST]: "x" } };
  const problem = "must be a 32bit integer";
  const details = (errors: readonly { readonly detail?: string | undefined }[]) =>
    errors.filter(({ detail }) => detail === problem).length;
  t.equal(details(validateNewPod({ metadata, spec })), 1);
  t.equal(details(validatePodStatusUpdate({ metadata, spec }, { metadata: { name: "a" }, spec })), 1);
  const set = { spec: { selector: { matchLabels: { app: "a" } }, serviceName: "", template: { metadata, spec } } };
  const errors = validateStatefulSet(set, undefined);
  t.same(
    errors.filter(({ detail }) => detail === problem).map(({ field }) => field),
    [`spec.template.annotations[${COST}]`],
  );
  // What was stored with an invalid value stays writable.
  const stored = { metadata, spec };
  t.equal(details(validatePodUpdate(stored, stored)), 0);
  t.equal(details(validatePodStatusUpdate(stored, stored)), 0);
  t.equal(details(validateStatefulSet(set, set)), 0);
});
