import type { ApiObject, Kind } from "../api/kind.ts";
import { formatApiVersion, parseApiVersion } from "../api/scheme.ts";
import { badRequest, conflict, StatusError } from "../api/status.ts";
import { difference, isEmptySet, setOfPaths } from "../schema/apply/field-set.ts";
import { apply as applyFields, type Conflict, ConflictError, type ManagedFields } from "../schema/apply/managers.ts";
import { formatPath } from "../schema/apply/path-element.ts";
import { IdentityError, shapeOf } from "../schema/apply/shape.ts";
import { validateTyped, ShapeError } from "../schema/apply/typed-validation.ts";
import { decode } from "../schema/decode/decode.ts";
import { isPlainObject } from "../schema/value/plain-object.ts";
import { guaranteedUpdate, type UpdateFunction } from "./write/guaranteed-update.ts";
import { withConversions } from "./managed-fields/conversions.ts";
import { createFromApply } from "./create.ts";
import { afterUpdate, changeOf, toJson, managerOf, withEntries, keepUnchangedTimes } from "./managed-fields/track-managed-fields.ts";
import { KUBECTL, lastAppliedFields, withLastApplied } from "./managed-fields/last-applied.ts";
import { identityOf, type Manager, readManagers, versionOf, writeManagers } from "./managed-fields/entries.ts";
import type { Registry, Scope } from "./registry.ts";
import { revised } from "./write/pipeline.ts";
import { setName, type UpdateOptions, type UpdateResult } from "./update.ts";
import { applyDefaults, setNamespace, metadataOf } from "./write/prepare.ts";

export interface ApplyOptions<T extends ApiObject = ApiObject> extends UpdateOptions<T> {
  readonly fieldManager: string;
  /** Takes fields from their managers where these want something else. */
  readonly force: boolean;
  /** Called once an apply is possible, before it is written; may throw to forbid it. */
  readonly onChecked?: () => void;
}

export type Configuration = Readonly<Record<string, unknown>>;

/** Who manages the fields of an object on which nobody kept book until it is first applied. */
const BEFORE_FIRST = "before-first-apply";

/**
 * Makes the object be as `configuration` wants it, as far as it says; creates it where there is none. Throws 409 with a
 * cause for each field that another manager wants otherwise.
 */
export async function apply<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  name: string,
  configuration: Configuration,
  options: ApplyOptions<T>,
): Promise<UpdateResult<T>> {
  const { subresourceStrategy: part } = options;
  const next: UpdateFunction<T> = async (previous, allocate) => {
    const object = await withConversions(registry.kind, (conversions) => {
      return mergeConfiguration(registry, scope, name, configuration, previous, { ...options, conversions });
    });
    return keepUnchangedTimes(await revised(registry, scope, object, previous, options, allocate), previous);
  };
  try {
    return { object: await guaranteedUpdate(registry, scope, name, next, options), created: false };
  } catch (error) {
    if (!(error instanceof StatusError) || error.status.code !== 404 || part !== undefined) throw error;
  }
  const object = await withConversions(registry.kind, (conversions) => {
    return mergeConfiguration(registry, scope, name, configuration, undefined, { ...options, conversions });
  });
  const { uid } = metadataOf(object);
  if (uid) {
    const why = `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`;
    throw conflict(registry.subject(scope, name), why);
  }
  return { object: await createFromApply(registry, scope, object, options), created: true };
}

/** The object that the configuration makes of `previous`, its book brought up to date. */
export function mergeConfiguration<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  name: string,
  configuration: Configuration,
  previous: T | undefined,
  options: ApplyOptions<T>,
): T {
  checkConfiguration(registry.kind, scope.group, configuration);
  const live = previous ?? ({} as T);
  const managers = managersOf(registry, scope, live, options);
  const { value, managers: after } = applyFieldsOf(registry, scope, configuration, live, managers, options);
  options.onChecked?.();
  const object = value === undefined ? live : fromJson(registry, value);
  const entries = writeManagers(setApplyTime(registry, scope, after, value === undefined ? managers : undefined, options));
  const synced = options.fieldManager === KUBECTL ? withLastApplied(object, configuration) : object;
  const booked = withEntries(setName(synced, name), entries);
  return applyDefaults(registry, setNamespace(registry, scope, booked));
}

/** Throws a 400 for a configuration of another kind; a 500, as Kubernetes does, for one that the kind cannot hold. */
export function checkConfiguration(wanted: Kind, group: string, configuration: Configuration): void {
  const { apiVersion = "", kind = "", metadata } = configuration;
  const expected = formatApiVersion(group, wanted.version);
  if (kind !== wanted.kind || typeof apiVersion !== "string" || versionOf(apiVersion) !== versionOf(expected)) {
    const { group, version } = parseApiVersion(String(apiVersion)) ?? { group: "", version: "" };
    throw badRequest(`invalid object type: ${group}/${version}, Kind=${String(kind)}`);
  }
  if (isPlainObject(metadata) && metadata.managedFields !== undefined && metadata.managedFields !== null) {
    throw badRequest("metadata.managedFields must be nil");
  }
  try {
    validateTyped(shapeOf(wanted.schema), configuration);
  } catch (error) {
    if (!(error instanceof ShapeError)) throw error;
    const { name = "", namespace = "" } = isPlainObject(metadata) ? metadata : {};
    const { group, version } = parseApiVersion(apiVersion)!;
    const what = `${String(namespace)}/${String(name)}; ${group}/${version}, Kind=${kind}`;
    throw new StatusError(500, "", `failed to create typed patch object (${what}): ${error.message}`);
  }
}

/** Those of the live object; where nobody kept book, one manager has all that is there. */
function managersOf<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  live: T,
  { subresource = "", conversions }: ApplyOptions<T>,
): ManagedFields<Manager> {
  const managers = readManagers(metadataOf(live).managedFields);
  if (managers === undefined) throw new StatusError(500, "", "failed to decode managed fields");
  if (managers.size > 0) return managers;
  return afterUpdate(registry, scope, managers, {} as T, live, {
    fieldManager: BEFORE_FIRST,
    subresource,
    conversions,
  });
}

/** `value` is undefined when the object stays as it is. */
function applyFieldsOf<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  configuration: Configuration,
  live: T,
  managers: ManagedFields<Manager>,
  { fieldManager, force, subresource = "", conversions }: ApplyOptions<T>,
): { readonly value: unknown; readonly managers: ManagedFields<Manager> } {
  const manager = managerOf(registry, scope, "Apply", fieldManager, subresource);
  const change = changeOf(registry, managers, live, manager, conversions);
  // Objects in memory do not say what they are.
  const { apiVersion: _, kind: __, ...wanted } = configuration;
  try {
    return applyFields(change, wanted, force);
  } catch (error) {
    if (error instanceof IdentityError) throw new StatusError(500, "", error.message);
    if (!(error instanceof ConflictError)) throw error;
    // What kubectl applied without the server's help is kubectl's already.
    const left = fieldManager === KUBECTL ? notLastApplied(registry, live, manager, error.conflicts) : error.conflicts;
    if (left.length > 0) throw applyConflict(left, managers);
    return applyFields(change, wanted, true);
  }
}

function notLastApplied<T extends ApiObject>(
  registry: Registry<T>,
  live: T,
  { apiVersion }: Manager,
  conflicts: readonly Conflict[],
): readonly Conflict[] {
  const shape = shapeOf(registry.kind.schema);
  const form = { ...(toJson(registry, live) as object), apiVersion, kind: registry.kind.kind };
  const own = lastAppliedFields(shape, form, metadataOf(live).annotations, apiVersion);
  if (own === undefined) return conflicts;
  return conflicts.filter(({ path }) => !isEmptySet(difference(setOfPaths(path), own)));
}

function fromJson<T extends ApiObject>(registry: Registry<T>, value: unknown): T {
  const { value: object, errors } = decode(registry.kind.schema, value ?? {}, { unknownFields: "drop" });
  const error = errors[0];
  if (error !== undefined) throw new StatusError(500, "", error.message);
  const { kind: _kind, apiVersion: _apiVersion, ...rest } = object as ApiObject;
  return rest as T;
}

/** The applier's entry gets the time of an apply that changed something. `unchanged` are given for others. */
function setApplyTime<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  managers: ManagedFields<Manager>,
  unchanged: ManagedFields<Manager> | undefined,
  { fieldManager, subresource = "" }: ApplyOptions<T>,
): ManagedFields<Manager> {
  const identity = identityOf(managerOf(registry, scope, "Apply", fieldManager, subresource));
  const own = managers.get(identity);
  if (own === undefined) return managers;
  const time = unchanged ? unchanged.get(identity)?.time : registry.timestamp();
  return new Map(managers).set(identity, { ...own, time });
}

/** Causes by manager, then by field. */
function applyConflict(conflicts: readonly Conflict[], managers: ManagedFields<Manager>): StatusError {
  const causes = conflicts.map(({ manager, path }) => ({
    reason: "FieldManagerConflict",
    message: `conflict with ${managerText(managers.get(manager))}`,
    field: formatPath(path),
  }));
  return new StatusError(409, "Conflict", conflictText(conflicts, managers), { details: { causes } });
}

function conflictText(conflicts: readonly Conflict[], managers: ManagedFields<Manager>): string {
  const [first] = conflicts;
  if (conflicts.length === 1 && first !== undefined) {
    const who = managerText(managers.get(first.manager));
    return `Apply failed with 1 conflict: conflict with ${who}: ${formatPath(first.path)}`;
  }
  const byManager = Map.groupBy(conflicts, ({ manager }) => manager);
  const texts = [...byManager.keys()].sort().map((manager) => {
    const paths = byManager.get(manager)!.map(({ path }) => `- ${formatPath(path)}`);
    return [`conflicts with ${managerText(managers.get(manager))}:`, ...paths].join("\n");
  });
  return `Apply failed with ${conflicts.length} conflicts: ${texts.join("\n")}`;
}

function managerText(manager: Manager | undefined): string {
  if (manager === undefined) return '""';
  const { manager: name, operation, apiVersion, subresource } = manager;
  const through = subresource === "" ? "" : ` with subresource ${JSON.stringify(subresource)}`;
  return `${JSON.stringify(name)}${through}${operation === "Update" ? ` using ${apiVersion}` : ""}`;
}
