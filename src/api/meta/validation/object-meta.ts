/** Rules for `metadata` of every kind. */
import {
  type BadValue,
  errorsMax,
  type FieldError,
  forbiddenField,
  invalidField,
  requiredField,
  tooLong,
  unquoted,
  unquotedTime,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { index } from "../../../schema/value/field-path.ts";
import { goQuote } from "../../../schema/value/go-quote.ts";
import type { ApiObject, Kind } from "../../kind.ts";
import { splitApiVersion } from "../group-version.ts";
import type { ObjectMeta } from "../object-meta.ts";
import { validateNonNegative } from "./bounds.ts";
import { validateManagedFields } from "./field-manager.ts";
import {
  dns1035Label,
  dns1123Label,
  dns1123Subdomain,
  labelValue,
  type NameFormat,
  qualifiedName,
  validateName,
} from "./names.ts";

/** The maximum size of all annotations, keys and values, in bytes. */
const ANNOTATIONS_MAX = 262_144;

/** The properties of a kind that these rules depend on. */
type MetaRules = Pick<Kind, "namespaced" | "nameFormat" | "allowsAnyFinalizer">;

export function validateObjectMeta(meta: ObjectMeta, kind: MetaRules): readonly FieldError[] {
  const format = kind.nameFormat ?? dns1123Subdomain;
  const { name = "", generateName = "", namespace = "" } = meta;
  return [
    ...(generateName === ""
      ? []
      : validatePrefix(generateName, format).map((p) => invalidField("metadata.generateName", generateName, p))),
    ...(name === ""
      ? [requiredField("metadata.name", "name or generateName is required")]
      : format(name).map((problem) => invalidField("metadata.name", name, problem))),
    ...validateNamespace(namespace, kind.namespaced),
    ...validateNonNegative(meta.generation, "metadata.generation"),
    ...validateObjectMetaContent(meta, kind),
  ];
}

/** Formats that do not allow a trailing dash, which the generated part of a name follows. */
const MASKED: ReadonlySet<NameFormat> = new Set([dns1123Label, dns1123Subdomain, dns1035Label]);

/** The problems of a prefix of generated names. */
export function validatePrefix(prefix: string, format: NameFormat): readonly string[] {
  return format(MASKED.has(format) ? maskTrailingDash(prefix) : prefix);
}

/** Kubernetes replaces the last two bytes of `web-`: a valid `wea`. */
function maskTrailingDash(prefix: string): string {
  return prefix.length > 1 ? prefix.replace(/[\0-\x7f]?-$/, "a") : prefix;
}

/** Fields that clients may write at any time. */
function validateObjectMetaContent(meta: ObjectMeta, kind: MetaRules): readonly FieldError[] {
  return [...validateGenericContent(meta), ...validateFinalizerDomains(meta, kind)];
}

/** The rules for all kinds, also for those that allow any finalizer. */
export function validateGenericContent(meta: ObjectMeta): readonly FieldError[] {
  return [
    ...validateLabels(meta.labels),
    ...validateAnnotations(meta.annotations),
    ...validateOwners(meta.ownerReferences),
    ...validateFinalizerNames(meta.finalizers ?? []),
    ...validateManagedFields(meta.managedFields),
  ];
}

/** Kubernetes' own kinds allow finalizers with a domain, and standard ones. */
export function validateFinalizerDomains(
  { finalizers = [] }: ObjectMeta,
  { allowsAnyFinalizer = false }: Pick<MetaRules, "allowsAnyFinalizer">,
): readonly FieldError[] {
  if (allowsAnyFinalizer) return [];
  return validateEach(finalizers, (finalizer, i) => validateFinalizerDomain(finalizer, index(FINALIZERS, i)));
}

const FINALIZERS = "metadata.finalizers";
/** Finalizers of Kubernetes without a domain. */
export const STANDARD_FINALIZERS: ReadonlySet<string> = new Set(["kubernetes", "orphan", "foregroundDeletion"]);
const UNKNOWN_FINALIZER = "name is neither a standard finalizer name nor is it fully qualified";

/** Accepts names with a domain and Kubernetes' own finalizers. */
export function validateFinalizer(finalizer: string, path: string): readonly FieldError[] {
  return [...validateName(path, finalizer, qualifiedName), ...validateFinalizerDomain(finalizer, path)];
}

function validateFinalizerDomain(finalizer: string, path: string): readonly FieldError[] {
  const isKnown = finalizer.includes("/") || STANDARD_FINALIZERS.has(finalizer);
  return isKnown ? [] : [invalidField(path, finalizer, UNKNOWN_FINALIZER)];
}

function validateFinalizerNames(finalizers: readonly string[]): readonly FieldError[] {
  const both = finalizers.includes("orphan") && finalizers.includes("foregroundDeletion");
  return [
    ...validateEach(finalizers, (finalizer) => validateName(FINALIZERS, finalizer, qualifiedName)),
    ...(both
      ? [invalidField(FINALIZERS, finalizers, "finalizer orphan and foregroundDeletion cannot be both set")]
      : []),
  ];
}

function validateNamespace(namespace: string, namespaced: boolean): readonly FieldError[] {
  if (!namespaced) {
    return namespace === "" ? [] : [forbiddenField("metadata.namespace", "not allowed on this type")];
  }
  if (namespace === "") return [requiredField("metadata.namespace")];
  return dns1123Label(namespace).map((problem) => invalidField("metadata.namespace", namespace, problem));
}

export function validateLabels(
  labels: Readonly<Record<string, string>> | undefined,
  field = "metadata.labels",
): readonly FieldError[] {
  return validateEach(Object.entries(labels ?? {}), ([name, value]) => [
    ...qualifiedName(name).map((problem) => invalidField(field, name, problem)),
    ...labelValue(value).map((problem) => invalidField(field, value, problem)),
  ]);
}

export function validateAnnotations(
  annotations: Readonly<Record<string, string>> | undefined,
  field = "metadata.annotations",
): readonly FieldError[] {
  let bytes = 0;
  const errors: FieldError[] = [];
  for (const [name, value] of Object.entries(annotations ?? {})) {
    bytes += Buffer.byteLength(name) + Buffer.byteLength(value);
    // Annotation keys may contain upper-case letters.
    const problems = qualifiedName(name.toLowerCase());
    if (errors.length < errorsMax) errors.push(...problems.map((problem) => invalidField(field, name, problem)));
  }
  return bytes > ANNOTATIONS_MAX ? [...errors, tooLong(field, ANNOTATIONS_MAX)] : errors;
}

type Owners = ObjectMeta["ownerReferences"];

function validateOwners(owners: Owners = []): readonly FieldError[] {
  let controller: string | undefined;
  /** Written once: every further controller is an error with this text. */
  let all: BadValue;
  return validateEach(owners, (owner) => {
    const errors: FieldError[] = [];
    // Kubernetes' paths have no index here.
    const at = "metadata.ownerReferences";
    const { group, version } = splitApiVersion(owner.apiVersion ?? "") ?? { group: "", version: "" };
    if (version === "") errors.push(invalidField(`${at}.apiVersion`, owner.apiVersion, "version must not be empty"));
    if (!owner.kind) errors.push(invalidField(`${at}.kind`, owner.kind, "kind must not be empty"));
    if (!owner.name) errors.push(invalidField(`${at}.name`, owner.name, "name must not be empty"));
    if (!owner.uid) errors.push(invalidField(`${at}.uid`, owner.uid, "uid must not be empty"));
    if (group === "" && version === "v1" && owner.kind === "Event") {
      errors.push(
        invalidField(at, unquoted(goOwnerReference(owner)), "/v1, Kind=Event is disallowed from being an owner"),
      );
    }
    if (owner.controller !== true) return errors;
    if (controller !== undefined) {
      const detail = `Only one reference can have Controller set to true. Found "true" in references for ${controller} and ${owner.kind}/${owner.name}`;
      all ??= unquoted(`[]v1.OwnerReference{${owners.map(goOwnerReference).join(", ")}}`);
      errors.push(invalidField(at, all, detail));
    }
    controller = `${owner.kind}/${owner.name}`;
    return errors;
  });
}

/** As Go prints it, with the addresses of pointers. */
function goOwnerReference(owner: NonNullable<Owners>[number]): string {
  const pointer = (flag: boolean | undefined): string => `(*bool)(${flag === undefined ? "nil" : "0xc000000000"})`;
  const texts = [
    `APIVersion:${goQuote(owner.apiVersion)}, Kind:${goQuote(owner.kind)}, Name:${goQuote(owner.name)}`,
    `UID:${goQuote(owner.uid)}, Controller:${pointer(owner.controller)}`,
    `BlockOwnerDeletion:${pointer(owner.blockOwnerDeletion)}`,
  ];
  return `v1.OwnerReference{${texts.join(", ")}}`;
}

/** Rules for updates of `metadata`: immutable fields, and the format of the others. */
export function validateObjectMetaUpdate(next: ApiObject, previous: ApiObject): readonly FieldError[] {
  const errors: FieldError[] = [];
  if (previous.metadata?.deletionTimestamp !== undefined) {
    const before = new Set(previous.metadata.finalizers ?? []);
    const added = new Set((next.metadata?.finalizers ?? []).filter((finalizer) => !before.has(finalizer)));
    if (added.size > 0) {
      const found = `[]string{${[...added].sort().map(goQuote).join(", ")}}`;
      const detail = `no new finalizers can be added if the object is being deleted, found new finalizers ${found}`;
      errors.push(forbiddenField("metadata.finalizers", detail));
    }
  }
  const immutable = "field is immutable";
  const fields = [
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
  ] as const;
  for (const field of fields) {
    if (next.metadata?.[field] === previous.metadata?.[field]) continue;
    const value = next.metadata?.[field];
    const shown = field.endsWith("Timestamp") && typeof value === "string" ? unquotedTime(value) : value;
    errors.push(invalidField(`metadata.${field}`, shown, immutable));
  }
  const { labels, annotations, ownerReferences, managedFields } = next.metadata ?? {};
  return [
    ...errors,
    ...validateLabels(labels),
    ...validateAnnotations(annotations),
    ...validateOwners(ownerReferences),
    ...validateManagedFields(managedFields),
  ];
}
