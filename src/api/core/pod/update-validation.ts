/** Rules for updates of pods: few fields are mutable, a few more while the pod has scheduling gates. */

import { list } from "../../../schema/define.ts";
import { semanticEqual } from "../../../schema/semantic-equal.ts";
import {
  type BadValue,
  type FieldError,
  forbiddenField,
  invalidField,
  invalidMap,
  requiredField,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { formatGoDiff } from "../../../schema/validation/go-diff.ts";
import { goStruct } from "../../../schema/validation/go-syntax.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { child, index, key } from "../../../schema/value/field-path.ts";
import type { ObjectMeta } from "../../meta/object-meta.ts";
import { containsAll } from "../../meta/validation/repeated.ts";
import type { Container } from "../container/schema.ts";
import { validateImageWhitespace } from "../container/validation.ts";
import { type NodeSelectorTerm, nodeSelectorTerm } from "../node/selector.ts";
import { type NodeAffinity, nodeAffinity, type Toleration } from "../pod-spec/affinity.ts";
import { APP_ARMOR, MIRROR, validatePodAnnotations } from "../pod-spec/annotation-validation.ts";
import { type PodSchedulingGate, type PodSpec, podSpec } from "../pod-spec/schema.ts";
import { validateTolerations } from "../pod-spec/toleration-validation.ts";
import { validationOptionsFrom } from "../pod-spec/validation-options.ts";
import type { Pod } from "./schema.ts";
import { validatePod } from "./validation.ts";

const MUTABLE =
  "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
const NO_SPEC: PodSpec = { containers: [] };

export function validatePodUpdate(next: Pod, previous: Pod): readonly FieldError[] {
  const { spec = NO_SPEC } = next;
  const { spec: old = NO_SPEC } = previous;
  const options = validationOptionsFrom(previous);
  const errors = [
    ...validatePod(next, options),
    ...validateAnnotationUpdate(next.metadata, previous.metadata),
    // An update reports these a second time.
    ...validatePodAnnotations(next.metadata ?? {}, spec, "metadata.annotations", options),
  ];
  for (const list of ["containers", "initContainers"] as const) {
    const [now, before] = [spec[list] ?? [], old[list] ?? []];
    if (now.length !== before.length) {
      return [...errors, forbiddenField(`spec.${list}`, "pod updates may not add or remove containers")];
    }
    errors.push(...validateImages(now, `spec.${list}`));
  }
  const deadline = validateDeadline(spec.activeDeadlineSeconds, old.activeDeadlineSeconds);
  errors.push(...deadline.errors);
  if (deadline.stop) return errors;
  errors.push(
    ...validateAddedTolerations(spec.tolerations ?? [], old.tolerations ?? []),
    ...validateRemovedGates(spec.schedulingGates ?? [], old.schedulingGates ?? []),
  );
  if (semanticEqual(podSpec, spec, old)) return errors;
  return [...errors, ...validateImmutableFields(spec, old)];
}

/** An update reports errors of images a second time. */
function validateImages(containers: readonly Container[], path: string): readonly FieldError[] {
  return validateEach(containers, (container, i) => [
    ...(container.image ? [] : [requiredField(child(index(path, i), "image"))]),
    ...validateImageWhitespace(container, index(path, i)),
  ]);
}

/** The annotations for AppArmor profiles and for mirror pods are immutable. */
export function validateAnnotationUpdate(
  next: ObjectMeta | undefined,
  previous: ObjectMeta | undefined,
): readonly FieldError[] {
  const [now, before] = [next?.annotations ?? {}, previous?.annotations ?? {}];
  const names = new Set([...Object.keys(before), ...Object.keys(now)]);
  return validateEach(names, (name) => {
    const what = name === MIRROR ? "mirror pod annotation" : name.startsWith(APP_ARMOR) ? "AppArmor annotations" : "";
    if (what === "" || now[name] === before[name]) return [];
    const verb = before[name] === undefined ? "add" : "remove or update";
    return [forbiddenField(key("metadata.annotations", name), `may not ${verb} ${what}`)];
  });
}

const DEADLINE_MAX = 2147483647;

/** A deadline may be set or shortened. */
function validateDeadline(
  next: number | undefined,
  previous: number | undefined,
): { readonly errors: readonly FieldError[]; readonly stop: boolean } {
  const field = "spec.activeDeadlineSeconds";
  const fail = (value: BadValue, detail: string, stop: boolean) => ({
    errors: [invalidField(field, value, detail)],
    stop,
  });
  if (next === undefined) {
    if (previous === undefined) return { errors: [], stop: false };
    return fail(null, "must not update from a positive integer to nil value", false);
  }
  if (next < 0 || next > DEADLINE_MAX) return fail(next, `must be between 0 and ${DEADLINE_MAX}, inclusive`, true);
  if (previous !== undefined && previous < next) {
    return fail(next, "must be less than or equal to previous value", true);
  }
  return { errors: [], stop: false };
}

function validateAddedTolerations(next: readonly Toleration[], previous: readonly Toleration[]): readonly FieldError[] {
  const bare = ({ tolerationSeconds: _, ...rest }: Toleration) => rest;
  if (containsAll(next.map(bare), previous.map(bare))) return validateTolerations(next, "spec.tolerations");
  return [forbiddenField("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")];
}

function validateRemovedGates(
  next: readonly PodSchedulingGate[],
  previous: readonly PodSchedulingGate[],
): readonly FieldError[] {
  const before = new Set(previous.map(({ name }) => name));
  return validateEach(next, ({ name }, i) => {
    if (before.has(name)) return [];
    const detail = `only deletion is allowed, but found new scheduling gate '${name}'`;
    return [forbiddenField(child(index("spec.schedulingGates", i), "name"), detail)];
  });
}

function validateImmutableFields(next: PodSpec, previous: PodSpec): readonly FieldError[] {
  const masked = maskMutableFields(next, previous);
  const gated = (previous.schedulingGates ?? []).length > 0;
  const errors = gated ? validateGatedChanges(masked, previous) : [];
  const fixed = gated ? maskNodeSelection(masked, previous) : masked;
  if (semanticEqual(podSpec, fixed, previous)) return errors;
  const difference = formatGoDiff(podSpec, "core.PodSpec", previous, fixed);
  return [...errors, forbiddenField("spec", `${MUTABLE}\n${difference}`)];
}

/** Returns `next` with the mutable fields of `previous`; any difference that remains is invalid. */
function maskMutableFields(next: PodSpec, previous: PodSpec): PodSpec {
  const restore = (containers: readonly Container[], old: readonly Container[] = []): Container[] =>
    containers.map((container, i) => setOrDelete(container, "image", old[i]?.image));
  const grace = previous.terminationGracePeriodSeconds ?? 0;
  const shortened = next.terminationGracePeriodSeconds === 1 && grace < 0;
  let result: PodSpec = { ...next, containers: restore(next.containers, previous.containers) };
  if (next.initContainers !== undefined) {
    result = { ...result, initContainers: restore(next.initContainers, previous.initContainers) };
  }
  for (const field of ["activeDeadlineSeconds", "schedulingGates", "tolerations"] as const) {
    result = setOrDelete(result, field, previous[field]);
  }
  return shortened ? { ...result, terminationGracePeriodSeconds: grace } : result;
}

/** A gated pod may be restricted to fewer nodes, but not sent to others. */
function validateGatedChanges(next: PodSpec, previous: PodSpec): readonly FieldError[] {
  const [now, before] = [next.nodeSelector ?? {}, previous.nodeSelector ?? {}];
  const kept = Object.entries(before).every(([name, value]) => now[name] === value);
  const detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
  return [
    ...(kept ? [] : [invalidMap("spec.nodeSelector", now, detail)]),
    ...validateNodeAffinityNarrowing(next.affinity?.nodeAffinity, previous.affinity?.nodeAffinity),
  ];
}

function validateNodeAffinityNarrowing(
  next: NodeAffinity | undefined,
  previous: NodeAffinity | undefined,
): readonly FieldError[] {
  const before = previous?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  if (before.length === 0 || semanticEqual(nodeAffinity, next, previous)) return [];
  const now = next?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  const path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
  if (now.length !== before.length) {
    return [
      invalidField(
        path,
        goStruct(list(nodeSelectorTerm), now),
        "no additions/deletions to non-empty NodeSelectorTerms list are allowed",
      ),
    ];
  }
  return validateEach(now, (term, i) =>
    addsOnly(term, before[i]!)
      ? []
      : [
          invalidField(
            index(path, i),
            goStruct(nodeSelectorTerm, term),
            "only additions are allowed (no mutations or deletions)",
          ),
        ],
  );
}

/** Additions come last. An empty term matches no node, so that requirements must not be added to it. */
function addsOnly(next: NodeSelectorTerm, previous: NodeSelectorTerm): boolean {
  const lists = ["matchExpressions", "matchFields"] as const;
  const sizeOf = (term: NodeSelectorTerm): number => lists.reduce((sum, list) => sum + (term[list] ?? []).length, 0);
  if (sizeOf(previous) === 0 && sizeOf(next) > 0) return false;
  return lists.every((list) => {
    const before = previous[list] ?? [];
    return deepEqual((next[list] ?? []).slice(0, before.length), before);
  });
}

function maskNodeSelection(next: PodSpec, previous: PodSpec): PodSpec {
  const selected = setOrDelete(next, "nodeSelector", previous.nodeSelector);
  const affinity = setOrDelete(next.affinity ?? {}, "nodeAffinity", previous.affinity?.nodeAffinity);
  const empty = Object.keys(affinity).length === 0 && previous.affinity === undefined;
  return setOrDelete(selected, "affinity", empty ? undefined : affinity);
}

/** Returns the object with the field set, or without it if the value is undefined. */
function setOrDelete<T extends object, K extends keyof T>(object: T, field: K, value: T[K] | undefined): T {
  const { [field]: _, ...rest } = object;
  return (value === undefined ? rest : { ...rest, [field]: value }) as T;
}
