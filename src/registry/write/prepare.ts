/** What all writes share: defaults, the system's own metadata, validation. */
import type { ApiObject, Kind, SubresourceStrategy, SubresourceView } from "../../api/kind.ts";
import type { ObjectMeta } from "../../api/meta/object-meta.ts";
import {
  validateObjectMeta,
  validateObjectMetaContent,
  validateObjectMetaUpdate,
} from "../../api/meta/validation/object-meta.ts";
import { badRequest, conflict, invalid, StatusError } from "../../api/status.ts";
import { canonicalJson } from "../../schema/json/canonical-json.ts";
import { applyDefaults as applySchemaDefaults } from "../../schema/defaults.ts";
import { type FieldError, invalidUnquoted, renderFieldError } from "../../schema/validation/field-error.ts";
import { validateWithRatcheting } from "../../schema/validation/ratcheting.ts";
import { validate } from "../../schema/validation/validate.ts";
import type { Allocate } from "./allocation.ts";
import type { Registry, Scope, WriteOptions } from "../registry.ts";

export function metadataOf(object: ApiObject): ObjectMeta {
  return object.metadata ?? {};
}

export function withMetadata<T extends ApiObject>(object: T, metadata: ObjectMeta): T {
  return { ...object, metadata };
}

/** For the warning about owners that plugins name twice. */
export const AFTER_ADMISSION = " after mutating admission happens";

/** The same owner named twice counts once, and the client is told. */
export function dedupOwnerReferences<T extends ApiObject>(object: T, { warn }: WriteOptions, when = ""): T {
  const owners = metadataOf(object).ownerReferences ?? [];
  if (owners.length < 2) return object;
  const seen = new Set<string>();
  const isRepeated = owners.map((owner) => seen.size === seen.add(canonicalJson(owner)).size);
  if (!isRepeated.includes(true)) return object;
  const once = owners.filter((_, i) => !isRepeated[i]);
  const twice = new Set(owners.filter((_, i) => isRepeated[i]).map(({ uid }) => uid));
  warn?.([
    `.metadata.ownerReferences contains duplicate entries${when}; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: ${[...twice].join(", ")}`,
  ]);
  return withMetadata(object, { ...metadataOf(object), ownerReferences: once });
}

/** A decoded object with the defaults of its schema and of its kind. */
export function applyDefaults<T extends ApiObject>(registry: Registry<T>, object: T): T {
  const filled = applySchemaDefaults(registry.kind.schema, object);
  return registry.kind.strategy.setDefaults?.(filled) ?? filled;
}

/** Fills in the namespace of the request; what has none forgets it. Throws a 400 when the object names another. */
export function setNamespace<T extends ApiObject>(registry: Registry<T>, scope: Scope, object: T): T {
  const metadata = metadataOf(object);
  const wanted = registry.kind.namespaced ? scope.namespace : "";
  const namespace = metadata.namespace ?? "";
  if (namespace === wanted) return object;
  if (wanted === "") {
    const { namespace: _, ...rest } = metadata;
    return withMetadata(object, rest);
  }
  if (namespace !== "") {
    throw badRequest(`the namespace of the provided object does not match the namespace sent on the request`);
  }
  return withMetadata(object, { ...metadata, namespace: wanted });
}

export function checkNew<T extends ApiObject>(registry: Registry<T>, scope: Scope, object: T): void {
  const { kind } = registry;
  const metadata = metadataOf(object);
  refuse(registry, scope, object, [
    ...validateObjectMeta(metadata, kind),
    ...validate(kind.schema, object),
    ...(kind.strategy.validate?.(object) ?? []),
    ...(registry.deps.validatePolicy?.(kind as unknown as Kind, object, undefined) ?? []),
  ]);
}

export interface RevisionOptions<T extends ApiObject> extends WriteOptions {
  /** The part that a subresource may change; the whole object when absent. */
  readonly part?: SubresourceStrategy<T> | undefined;
  /** The form in which plugins are shown the object; its own when absent. */
  readonly view?: SubresourceView<T> | undefined;
}

/**
 * The object that an update makes of `previous` and what the client sent: the system's members kept, the kind's rules
 * heard, checked. Throws 400, 409 or 422.
 */
export async function updated<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  sent: T,
  previous: T,
  { part, warn }: RevisionOptions<T>,
  allocate: Allocate<T> | undefined,
): Promise<T> {
  const { strategy, schema } = registry.kind;
  const name = metadataOf(previous).name ?? "";
  const version = requestedResourceVersion(sent);
  if (version !== undefined && version !== metadataOf(previous).resourceVersion) {
    const why = "the object has been modified; please apply your changes to the latest version and try again";
    throw conflict(registry.subject(scope, name), why);
  }
  const given = part === undefined ? ((await allocate?.(sent, previous)) ?? sent) : sent;
  const kept = withMetadata(given, keepSystemMetadata(metadataOf(given), metadataOf(previous)));
  const rules = part ?? strategy;
  const next = rules.prepareForUpdate?.(kept, previous, registry.timestamp()) ?? kept;
  refuse(registry, scope, next, [
    ...metadataErrors(next, previous, registry.kind),
    ...validateWithRatcheting(schema, next, previous),
    ...(part === undefined ? (strategy.validate?.(next, previous) ?? []) : []),
    ...(rules.validateUpdate?.(next, previous) ?? []),
    ...(registry.deps.validatePolicy?.(registry.kind as unknown as Kind, next, previous) ?? []),
  ]);
  warn?.(rules.warnings?.(next, previous) ?? []);
  return next;
}

/**
 * The version that the client has seen; undefined where it asks to overwrite whatever is there. Throws a 500, as
 * Kubernetes does, for text that is no version.
 */
export function requestedResourceVersion(sent: ApiObject): string | undefined {
  const version = metadataOf(sent).resourceVersion ?? "";
  if (version !== "" && !/^\d+$/.test(version)) {
    throw new StatusError(500, "", `strconv.ParseUint: parsing ${JSON.stringify(version)}: invalid syntax`);
  }
  return /^0*$/.test(version) ? undefined : version;
}

/** For kinds that nobody may overwrite unseen. */
export function resourceVersionRequired<T extends ApiObject>(registry: Registry<T>, scope: Scope, name: string): StatusError {
  const error = invalidUnquoted("metadata.resourceVersion", "0x0", "must be specified for an update");
  // Of all invalid objects only these are named by their resource.
  return invalid(registry.subject(scope, name), [error], renderFieldError);
}

/** Twice, as in Kubernetes, where what all kinds share and the kind itself look at the metadata. */
function metadataErrors(next: ApiObject, previous: ApiObject, kind: Kind): readonly FieldError[] {
  const content = validateObjectMetaContent(metadataOf(next), kind);
  const change = validateObjectMetaUpdate(next, previous);
  return [...content, ...change, ...change, ...content];
}

/** What an update cannot change, or need not repeat. */
function keepSystemMetadata(sent: ObjectMeta, previous: ObjectMeta): ObjectMeta {
  const { deletionTimestamp, deletionGracePeriodSeconds, generation, ...rest } = sent;
  return {
    ...rest,
    uid: sent.uid || previous.uid,
    resourceVersion: previous.resourceVersion,
    creationTimestamp: previous.creationTimestamp,
    ...optional("generation", previous.generation),
    ...optional("deletionTimestamp", previous.deletionTimestamp ?? deletionTimestamp),
    ...optional("deletionGracePeriodSeconds", deletionGracePeriodSeconds ?? previous.deletionGracePeriodSeconds),
  };
}

function optional<K extends string, V>(name: K, value: V | undefined): { readonly [P in K]?: V } {
  return (value === undefined ? {} : { [name]: value }) as { readonly [P in K]?: V };
}

function refuse<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  object: T,
  errors: readonly FieldError[],
): void {
  if (errors.length === 0) return;
  throw invalid(registry.kindSubject(scope, metadataOf(object).name ?? ""), errors, renderFieldError);
}
