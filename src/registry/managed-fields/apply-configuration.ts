/** What server-side apply makes of the stored object and a configuration: the merged object with its managedFields. */
import type { ApiObject, Kind } from "../../api/kind.ts";
import { formatApiVersion, parseApiVersion } from "../../api/scheme.ts";
import { badRequest, StatusError } from "../../api/status.ts";
import { difference, isEmptySet, setOfPaths } from "../../schema/apply/fieldpath/field-set.ts";
import { apply as applyFields, type Conflict, ConflictError, type ManagedFields } from "../../schema/apply/managers.ts";
import { IdentityError, shapeOf } from "../../schema/apply/shape.ts";
import { ShapeError, validateTyped } from "../../schema/apply/typed-validation.ts";
import { decode } from "../../schema/decode/decode.ts";
import { areLong } from "../../schema/value/check-values.ts";
import { isPlainObject } from "../../schema/value/plain-object.ts";
import type { Steps } from "../../std/async/steps.ts";
import { checkName, setNamespace } from "../write/name-and-namespace.ts";
import { metadataOf } from "../write/object-metadata.ts";
import type { WriteOptions, WriteRequest } from "../write/request.ts";
import { applyConflict } from "./apply-conflict.ts";
import type { Conversions } from "./conversions.ts";
import {
  BEFORE_FIRST,
  identityOf,
  type Manager,
  readManagers,
  versionOf,
  withManagedFields,
  writeManagers,
} from "./entries.ts";
import { KUBECTL, lastAppliedFields, withLastApplied } from "./last-applied.ts";
import { managerContext, managersAfterUpdate, newManager, toFieldsValue } from "./track-managed-fields.ts";

export interface ApplyOptions<T extends ApiObject = ApiObject> extends WriteOptions<T> {
  readonly fieldManager: string;
  /** Takes conflicting fields from the managers that own them. */
  readonly force: boolean;
  /** Called once the configuration is merged without conflicts, before the write; may throw to reject it. */
  readonly onMerged?: () => void;
}

export interface ApplyRequest<T extends ApiObject> extends WriteRequest<T> {
  readonly options: ApplyOptions<T>;
}

/** The applied object as JSON; it has only the fields that its manager wants. */
export type Configuration = Readonly<Record<string, unknown>>;

/** `previous` is undefined when there is no stored object. Throws a 400, 409 or 500. */
export function* mergeConfiguration<T extends ApiObject>(
  request: ApplyRequest<T>,
  configuration: Configuration,
  previous: T | undefined,
  conversions?: Conversions,
): Steps<T> {
  const { registry, scope, name, options } = request;
  const isLong = areLong(configuration, previous);
  checkConfiguration(registry.kind, scope.group, configuration);
  if (isLong) yield;
  const live = previous ?? ({} as T);
  const managers = yield* liveManagers(request, live, conversions, isLong);
  const { value, managers: after } = yield* mergeFields(request, configuration, live, managers, conversions, isLong);
  options.onMerged?.();
  const object = value === undefined ? live : objectFromJson(registry.kind, value, configuration);
  if (isLong) yield;
  const written = setApplyTime(request, after, value === undefined ? managers : undefined);
  const entries = yield* writeManagers(written, isLong);
  const annotated = options.fieldManager === KUBECTL ? withLastApplied(object, configuration) : object;
  return setNamespace(request, withManagedFields(checkName(annotated, name), entries));
}

/**
 * Throws a 400 for a configuration of another kind; a 500, as Kubernetes does, for one that does not fit the schema.
 */
export function checkConfiguration(expected: Kind, group: string, configuration: Configuration): void {
  const { metadata } = configuration;
  const { apiVersion, kind } = typeOf(configuration);
  if (kind !== expected.kind || versionOf(apiVersion) !== versionOf(formatApiVersion(group, expected.version))) {
    throw badRequest(`invalid object type: ${formatType(configuration)}`);
  }
  if (isPlainObject(metadata) && Array.isArray(metadata.managedFields)) {
    throw badRequest("metadata.managedFields must be nil");
  }
  try {
    validateTyped(shapeOf(expected.schema), configuration);
  } catch (error) {
    if (!(error instanceof ShapeError)) throw error;
    const why = `failed to create typed patch object (${formatName(configuration)}): ${error.message}`;
    throw new StatusError(500, "", why);
  }
}

/** Kind and version of a configuration; both are empty when the version is not one. */
function typeOf({ apiVersion, kind }: Configuration): { readonly apiVersion: string; readonly kind: string } {
  const version = typeof apiVersion === "string" ? apiVersion : "";
  if (parseApiVersion(version) === undefined && version !== "") return { apiVersion: "", kind: "" };
  return { apiVersion: version, kind: typeof kind === "string" ? kind : "" };
}

/** As Go prints it: `apps/v1, Kind=Deployment`. */
function formatType(configuration: Configuration): string {
  const { apiVersion, kind } = typeOf(configuration);
  const { group, version } = parseApiVersion(apiVersion) ?? { group: "", version: "" };
  return `${group}/${version}, Kind=${kind}`;
}

/** Namespace, name and type, as errors show them. */
function formatName(configuration: Configuration): string {
  const { name, namespace } = isPlainObject(configuration.metadata) ? configuration.metadata : {};
  const textOf = (value: unknown): string => (typeof value === "string" ? value : "");
  return `${textOf(namespace)}/${textOf(name)}; ${formatType(configuration)}`;
}

/** Throws a 500 for entries that cannot be decoded. */
export function* storedManagers(live: ApiObject, isLong: boolean): Steps<ManagedFields<Manager>> {
  const managers = yield* readManagers(metadataOf(live).managedFields, isLong);
  if (managers === undefined) throw new StatusError(500, "", "failed to decode managed fields");
  return managers;
}

/** The managers of the stored object; `before-first-apply` owns all fields of an object without managedFields. */
function* liveManagers<T extends ApiObject>(
  request: ApplyRequest<T>,
  live: T,
  conversions: Conversions | undefined,
  isLong: boolean,
): Steps<ManagedFields<Manager>> {
  const managers = yield* storedManagers(live, isLong);
  if (isLong) yield;
  if (managers.size > 0) return managers;
  const first = { fieldManager: BEFORE_FIRST, conversions, isLong };
  return yield* managersAfterUpdate(request, managers, {} as T, live, first);
}

/** `value` is undefined when the object does not change. */
function* mergeFields<T extends ApiObject>(
  request: ApplyRequest<T>,
  configuration: Configuration,
  live: T,
  managers: ManagedFields<Manager>,
  conversions: Conversions | undefined,
  isLong: boolean,
): Steps<{ readonly value: unknown; readonly managers: ManagedFields<Manager> }> {
  const { fieldManager, force } = request.options;
  const manager = newManager(request, "Apply", fieldManager);
  const context = managerContext(request, managers, live, manager, conversions, isLong);
  if (isLong) yield;
  // Objects in memory have no kind and apiVersion.
  const { apiVersion: _, kind: __, ...fields } = configuration;
  try {
    return yield* applyFields(context, fields, force);
  } catch (error) {
    if (error instanceof IdentityError) throw new StatusError(500, "", error.message);
    if (!(error instanceof ConflictError)) throw error;
    // kubectl owns what it applied on the client side.
    const { kind } = request.registry;
    const left = fieldManager === KUBECTL ? withoutLastApplied(kind, live, manager, error.conflicts) : error.conflicts;
    if (left.length > 0) throw applyConflict(left, managers);
    return yield* applyFields(context, fields, true);
  }
}

function withoutLastApplied<T extends ApiObject>(
  kind: Kind<T>,
  live: T,
  { apiVersion }: Manager,
  conflicts: readonly Conflict[],
): readonly Conflict[] {
  const value = { ...(toFieldsValue(kind, live) as object), apiVersion, kind: kind.kind };
  const applied = lastAppliedFields(shapeOf(kind.schema), value, metadataOf(live).annotations, apiVersion);
  if (applied === undefined) return conflicts;
  return conflicts.filter(({ path }) => !isEmptySet(difference(setOfPaths(path), applied)));
}

/** Throws a 500 for what fits the types of apply, but not those of the kind, as Kubernetes does. */
export function objectFromJson<T extends ApiObject>(kind: Kind<T>, value: unknown, configuration: Configuration): T {
  // Kubernetes removes the nulls of a custom resource when it decodes one, and only validates what apply has merged.
  const options = { unknownFields: "drop", converter: true, keepNulls: true } as const;
  const { value: object, errors } = decode(kind.schema, value ?? {}, options);
  const error = errors[0];
  if (error?.isInteger === true) throw badRequest(`${error.path}: ${error.message}`);
  if (error !== undefined) {
    const why = `unable to convert unstructured object to ${formatType(configuration)}: ${error.message}`;
    throw new StatusError(
      500,
      "",
      `failed to convert new object (${formatName(configuration)}) to proper version: ${why}`,
    );
  }
  const { kind: _kind, apiVersion: _apiVersion, ...rest } = object as ApiObject;
  return rest as T;
}

/** Sets the time of the applier's entry; when nothing changed, to that in `unchanged`. */
function setApplyTime<T extends ApiObject>(
  request: ApplyRequest<T>,
  managers: ManagedFields<Manager>,
  unchanged: ManagedFields<Manager> | undefined,
): ManagedFields<Manager> {
  const identity = identityOf(newManager(request, "Apply", request.options.fieldManager));
  const applier = managers.get(identity);
  if (applier === undefined) return managers;
  const time = unchanged ? unchanged.get(identity)?.time : request.registry.timestamp();
  return new Map(managers).set(identity, { ...applier, time });
}
