import { semanticEqual } from "../../../schema/semantic-equal.ts";
import { goQuote } from "../../../schema/value/go-quote.ts";
import { podTemplateSpec } from "../../core/pod-template/schema.ts";
import type { Strategy } from "../../kind.ts";
import { validateImmutableSelector } from "../../meta/validation/immutable.ts";
import { badRequest } from "../../status.ts";
import { createPrepareForUpdate, prepareForCreate, templateWarnings } from "../workload/strategy.ts";
import { setDaemonSetDefaults } from "./defaults.ts";
import { type DaemonSet, daemonSetSpec } from "./schema.ts";
import { validateDaemonSetSpec } from "./validation.ts";

/** Counts the templates; was a field of the spec before apps/v1. */
const TEMPLATE_GENERATION = "deprecated.daemonset.template.generation";

/** Throws a 400 for a text that is no integer: Kubernetes converts the annotation to a field. */
function templateGeneration(object: DaemonSet): bigint {
  const text = object.metadata?.annotations?.[TEMPLATE_GENERATION];
  if (text === undefined) return 0n;
  const value = parseInt64(text);
  if (typeof value === "bigint") return value;
  const reason = `strconv.ParseInt: parsing ${goQuote(text)}: ${value}`;
  throw badRequest(`DaemonSet in version "v1" cannot be handled as a DaemonSet: ${reason}`);
}

function parseInt64(text: string): bigint | "invalid syntax" | "value out of range" {
  if (!/^[+-]?\d+$/.test(text)) return "invalid syntax";
  const value = BigInt(text.replace(/^\+/, ""));
  return BigInt.asIntN(64, value) === value ? value : "value out of range";
}

function setTemplateGeneration(object: DaemonSet, generation: bigint): DaemonSet {
  const annotations = { ...object.metadata?.annotations, [TEMPLATE_GENERATION]: String(generation) };
  return { ...object, metadata: { ...object.metadata, annotations } };
}

const countChanges = createPrepareForUpdate<DaemonSet>(daemonSetSpec);

/** Clients cannot change the template generation. */
function prepareForUpdate(next: DaemonSet, previous: DaemonSet): DaemonSet {
  const changed = !semanticEqual(podTemplateSpec, next.spec?.template, previous.spec?.template);
  const generation = templateGeneration(previous) + (changed ? 1n : 0n);
  return setTemplateGeneration(countChanges(next, previous), generation);
}

export const daemonSetStrategy: Strategy<DaemonSet> = {
  // Sets the annotation in defaulting, so that the writer manages it, whether the client sent it or not.
  setDefaults: (object) => setTemplateGeneration(setDaemonSetDefaults(object), templateGeneration(object)),
  prepareForCreate: (object) => {
    const generation = templateGeneration(object);
    return setTemplateGeneration(prepareForCreate(object), generation < 1n ? 1n : generation);
  },
  prepareForUpdate: prepareForUpdate,
  validate: (object, previous) => (object.spec === undefined ? [] : validateDaemonSetSpec(object.spec, previous?.spec)),
  validateUpdate: (next, previous) => validateImmutableSelector(next.spec?.selector, previous.spec?.selector),
  warnings: (object, previous) => templateWarnings(object, previous, object.spec?.template, "spec.template"),
};
