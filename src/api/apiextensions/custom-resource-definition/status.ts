/**
 * Computes the status of a definition: accepted names, the Established condition, API approval. Pure functions:
 * controllers call them and write the result before they serve the kind.
 */
import { deepEqual } from "../../../schema/value/equal.ts";
import { goQuote } from "../../../schema/value/go-quote.ts";
import { svcGroup } from "../../scheme.ts";
import { type ApprovalState, approvalOf, isProtected } from "./approval.ts";
import type {
  CustomResourceDefinition,
  CustomResourceDefinitionCondition,
  CustomResourceDefinitionNames,
  CustomResourceDefinitionStatus,
  CustomResourceDefinitionVersion,
} from "./schema.ts";

type Condition = Omit<CustomResourceDefinitionCondition, "lastTransitionTime">;

const none: CustomResourceDefinitionNames = { plural: "", kind: "" };

/**
 * Accepts the names that no other definition of the group uses; conflicting names keep their accepted value. `now` is
 * an RFC 3339 time.
 */
export function acceptNames(
  definition: CustomResourceDefinition,
  others: readonly CustomResourceDefinition[],
  now: string,
): CustomResourceDefinition {
  const { spec, status = {} } = definition;
  const used = others
    .filter((other) => other.metadata?.name !== definition.metadata?.name)
    // Both aliases of a group share one set of names.
    .filter((other) => svcGroup(other.spec.group) === svcGroup(spec.group))
    .map((other) => other.status?.acceptedNames ?? none);
  const { names, conflict } = checkNames(spec.names, status.acceptedNames ?? none, used);
  const found: Condition[] = [conflict ?? NO_CONFLICTS, establishedCondition(definition, conflict === undefined)];
  if (isProtected(spec.group)) found.push(approvalCondition(definition));
  return updateStatus(definition, {
    ...status,
    acceptedNames: names,
    conditions: mergeCondition(status.conditions, found, now),
  });
}

/** Sets Established, once requests for the kind are served. No change while the names are not accepted. */
export function markEstablished(definition: CustomResourceDefinition, now: string): CustomResourceDefinition {
  const { status = {} } = definition;
  if (!isConditionTrue(definition, "NamesAccepted") || isConditionTrue(definition, "Established")) return definition;
  const reason = "InitialNamesAccepted";
  const found = [{ type: "Established", status: "True", reason, message: INSTALLED } as const];
  return updateStatus(definition, { ...status, conditions: mergeCondition(status.conditions, found, now) });
}

/** The finalizer that keeps a definition until its custom resources are deleted. */
export const CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io";

/** Marks a deleted definition as terminating: no new custom resources are accepted. */
export function markTerminating(definition: CustomResourceDefinition, now: string): CustomResourceDefinition {
  const { finalizers = [], ...metadata } = definition.metadata ?? {};
  const waiting = finalizers.includes(CLEANUP_FINALIZER) ? finalizers : [...finalizers, CLEANUP_FINALIZER];
  const marked = { ...definition, metadata: { ...metadata, deletionTimestamp: now, finalizers: waiting } };
  const message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
  return setCondition(marked, { type: "Terminating", status: "True", reason: "InstanceDeletionPending", message }, now);
}

export function setCondition(
  definition: CustomResourceDefinition,
  condition: Condition,
  now: string,
): CustomResourceDefinition {
  const { status = {} } = definition;
  return updateStatus(definition, { ...status, conditions: mergeCondition(status.conditions, [condition], now) });
}

const INSTALLED = "the initial names have been accepted";
const NO_CONFLICTS: Condition = {
  type: "NamesAccepted",
  status: "True",
  reason: "NoConflicts",
  message: "no conflicts found",
};

interface NameAcceptance {
  readonly names: CustomResourceDefinitionNames;
  /** The last conflict. */
  readonly conflict: Condition | undefined;
}

/** Checks resource names and kinds against those of other definitions; they are separate namespaces. */
function checkNames(
  requested: CustomResourceDefinitionNames,
  before: CustomResourceDefinitionNames,
  used: readonly CustomResourceDefinitionNames[],
): NameAcceptance {
  const resources = new Set(used.flatMap((names) => [names.plural, names.singular, ...(names.shortNames ?? [])]));
  const kinds = new Set(used.flatMap((names) => [names.kind, names.listKind]));
  let conflict: Condition | undefined;
  const isFree = (name: string | undefined, used: ReadonlySet<string | undefined>, reason: string): boolean => {
    if (!name || !used.has(name)) return true;
    conflict = { type: "NamesAccepted", status: "False", reason, message: `${goQuote(name)} is already in use` };
    return false;
  };
  const areShortNamesFree = (): boolean =>
    (requested.shortNames ?? []).map((name) => isFree(name, resources, "ShortNamesConflict")).every((one) => one);
  const names = {
    plural: isFree(requested.plural, resources, "PluralConflict") ? requested.plural : before.plural,
    singular: isFree(requested.singular, resources, "SingularConflict") ? requested.singular : before.singular,
    shortNames: areShortNamesFree() ? requested.shortNames : before.shortNames,
    kind: isFree(requested.kind, kinds, "KindConflict") ? requested.kind : before.kind,
    listKind: isFree(requested.listKind, kinds, "ListKindConflict") ? requested.listKind : before.listKind,
    categories: requested.categories,
  };
  return { names, conflict };
}

/** An established definition stays established, even when its names conflict. */
function establishedCondition(definition: CustomResourceDefinition, accepted: boolean): Condition {
  const type = "Established";
  const before = definition.status?.conditions?.find((condition) => condition.type === type);
  if (before?.status === "True") return before;
  if (accepted) return { type, status: "False", reason: "Installing", message: INSTALLED };
  return before ?? { type, status: "False", reason: "NotAccepted", message: "not all names are accepted" };
}

const approvals: Readonly<Record<ApprovalState, readonly [status: "True" | "False", reason: string]>> = {
  approved: ["True", "ApprovedAnnotation"],
  bypassed: ["False", "UnapprovedAnnotation"],
  missing: ["False", "MissingAnnotation"],
  invalid: ["False", "InvalidAnnotation"],
};

function approvalCondition(definition: CustomResourceDefinition): Condition {
  const { state, reason: message } = approvalOf(definition);
  const [status, reason] = approvals[state];
  return { type: "KubernetesAPIApprovalPolicyConformant", status, reason, message };
}

/** The version for lists and watches: the storage version needs no conversion. Undefined when no version is served. */
export function versionForReading(definition: CustomResourceDefinition): CustomResourceDefinitionVersion | undefined {
  if (!isConditionTrue(definition, "Established")) return undefined;
  const served = definition.spec.versions.filter((version) => version.served);
  return served.find(({ storage }) => storage) ?? served[0];
}

/** Whether the condition has the status True. */
export function isConditionTrue(definition: CustomResourceDefinition, type: string): boolean {
  return definition.status?.conditions?.some((one) => one.type === type && one.status === "True") === true;
}

/** Keeps lastTransitionTime while the status is unchanged. */
function mergeCondition(
  before: CustomResourceDefinitionStatus["conditions"] = [],
  found: readonly Condition[],
  now: string,
): readonly CustomResourceDefinitionCondition[] {
  const previousTypes = new Set(before.map(({ type }) => type));
  const fresh = found.map((condition): CustomResourceDefinitionCondition => {
    const old = before.find(({ type }) => type === condition.type);
    const since = old?.status === condition.status ? old.lastTransitionTime : now;
    return { ...condition, lastTransitionTime: since };
  });
  return [
    ...before.map((old) => fresh.find(({ type }) => type === old.type) ?? old),
    ...fresh.filter(({ type }) => !previousTypes.has(type)),
  ];
}

/** Returns the same object when the status is unchanged, so that no write is needed. */
function updateStatus(
  definition: CustomResourceDefinition,
  status: CustomResourceDefinitionStatus,
): CustomResourceDefinition {
  return deepEqual(definition.status, status) ? definition : { ...definition, status };
}
