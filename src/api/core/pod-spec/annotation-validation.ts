/** Rules for annotations that Kubernetes interprets; some precede fields that replaced them. */
import { list } from "../../../schema/define.ts";
import { errorsMax, type FieldError, invalidField, validateEach } from "../../../schema/validation/field-error.ts";
import { child, key } from "../../../schema/value/field-path.ts";
import type { ObjectMeta } from "../../meta/object-meta.ts";
import { decodeAnnotation, internalTypeProblem } from "../../meta/validation/json-annotation.ts";
import { validateAnnotationMatchesField } from "../container/security-context-validation.ts";
import { validateDescendingPath } from "../volume/file-validation.ts";
import { toleration } from "./affinity.ts";
import { containersWithPaths } from "./containers.ts";
import type { PodSpec } from "./schema.ts";
import { validateTolerations } from "./toleration-validation.ts";

export const APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/";
export const SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod";
export const SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/";
export const MIRROR = "kubernetes.io/config.mirror";
const DELETION_COST = "controller.kubernetes.io/pod-deletion-cost";
const TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations";

export interface AnnotationValidationOptions {
  /** For objects stored with an invalid deletion cost. */
  readonly allowInvalidDeletionCost?: boolean;
}

/** `path` is the path of the annotations. */
export function validatePodAnnotations(
  { annotations = {} }: ObjectMeta,
  spec: PodSpec,
  path: string,
  options: AnnotationValidationOptions,
): readonly FieldError[] {
  const errors: FieldError[] = [];
  const { [MIRROR]: mirror, [DELETION_COST]: cost, [TOLERATIONS]: tolerations } = annotations;
  if (mirror !== undefined && !spec.nodeName) {
    errors.push(invalidField(key(path, MIRROR), mirror, "must set spec.nodeName if mirror pod annotation is set"));
  }
  if (tolerations) errors.push(...validateTolerationsAnnotation(tolerations, path));
  if (cost !== undefined && options.allowInvalidDeletionCost !== true && !isInt32(cost)) {
    errors.push(invalidField(key(path, DELETION_COST), cost, "must be a 32bit integer"));
  }
  for (const [name, profile] of Object.entries(annotations)) {
    if (errors.length >= errorsMax) break;
    if (name === SECCOMP_POD || name.startsWith(SECCOMP_CONTAINER)) {
      errors.push(...validateSeccompAnnotation(profile, child(path, name)));
    }
  }
  return [...errors, ...validateAppArmorAnnotations(annotations, spec, path)];
}

export function hasInvalidDeletionCost(metadata: ObjectMeta | undefined): boolean {
  const cost = metadata?.annotations?.[DELETION_COST];
  return cost !== undefined && !isInt32(cost);
}

/** As Go's parser, without a plus sign and zeros in front of a positive number. */
function isInt32(text: string): boolean {
  return /^(?:0|[1-9]\d*|-\d+)$/.test(text) && Number(text) >= -(2 ** 31) && Number(text) < 2 ** 31;
}

function validateTolerationsAnnotation(text: string, path: string): readonly FieldError[] {
  const decoded = decodeAnnotation(list(toleration), text);
  if ("problem" in decoded) return [invalidField(path, TOLERATIONS, internalTypeProblem(decoded.problem))];
  return validateTolerations(decoded.value ?? [], child(path, TOLERATIONS));
}

function validateSeccompAnnotation(profile: string, path: string): readonly FieldError[] {
  if (["runtime/default", "docker/default", "unconfined"].includes(profile)) return [];
  if (profile.startsWith("localhost/")) return validateDescendingPath(profile.slice("localhost/".length), path);
  return [invalidField(path, profile, "must be a valid seccomp profile")];
}

function validateAppArmorAnnotations(
  annotations: Readonly<Record<string, string>>,
  spec: PodSpec,
  path: string,
): readonly FieldError[] {
  const names = new Set(containersWithPaths(spec, "").map(({ container }) => container.name));
  return validateEach(Object.entries(annotations), ([name, profile]) => {
    if (!name.startsWith(APP_ARMOR)) return [];
    const container = name.slice(APP_ARMOR.length);
    const isKnown = ["", "runtime/default", "unconfined"].includes(profile) || profile.startsWith("localhost/");
    return [
      ...(names.has(container) ? [] : [invalidField(key(path, name), container, "container not found")]),
      ...(isKnown ? [] : [invalidField(key(path, name), profile, `invalid AppArmor profile name: "${profile}"`)]),
    ];
  });
}

/** `path` is the path of the spec. */
export function validateSeccompAnnotationsMatchFields(
  metadata: ObjectMeta,
  spec: PodSpec,
  path: string,
): readonly FieldError[] {
  const { annotations = {} } = metadata;
  const at = child(path, "securityContext.seccompProfile");
  return [
    ...validateAnnotationMatchesField(annotations[SECCOMP_POD], spec.securityContext?.seccompProfile, at, "seccomp"),
    ...validateEach(containersWithPaths(spec, path), (each) => {
      const { container } = each;
      const annotation = annotations[`${SECCOMP_CONTAINER}${container.name}`];
      if (annotation === undefined) return [];
      const field = child(each.at, "securityContext.seccompProfile");
      return validateAnnotationMatchesField(annotation, container.securityContext?.seccompProfile, field, "seccomp");
    }),
  ];
}

/** For new pods only: existing ones may disagree. */
export function validateAppArmorAnnotationsMatchFields(
  metadata: ObjectMeta,
  spec: PodSpec,
  path: string,
): readonly FieldError[] {
  if (spec.os?.name === "windows") return [];
  const { annotations = {} } = metadata;
  return validateEach(containersWithPaths(spec, path), (each) => {
    const { container } = each;
    const annotation = annotations[`${APP_ARMOR}${container.name}`];
    if (annotation === undefined) return [];
    const field = child(each.at, "securityContext.appArmorProfile");
    return validateAnnotationMatchesField(annotation, container.securityContext?.appArmorProfile, field, "apparmor");
  });
}
