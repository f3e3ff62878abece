/** Updates of an object through a subresource of another kind: a Deployment through its Scale. */
import type { Scale } from "../../api/autoscaling/scale/schema.ts";
import type { ApiObject, SubresourceView } from "../../api/kind.ts";
import { badRequest, conflict, invalid } from "../../api/status.ts";
import { renderFieldError } from "../../schema/validation/field-error.ts";
import { isPlainObject } from "../../schema/value/plain-object.ts";
import { runSteps } from "../../std/async/steps.ts";
import {
  type ApplyOptions,
  type Configuration,
  checkConfiguration,
  objectFromJson,
  storedManagers,
} from "../managed-fields/apply-configuration.ts";
import { withManagedFields, writeManagers } from "../managed-fields/entries.ts";
import { countOf, ScaleManagers } from "../managed-fields/scale-managers.ts";
import { newManager } from "../managed-fields/track-managed-fields.ts";
import { applyPatch, objectToJson, type Patch } from "../patches/apply-patch.ts";
import { type DecodeFailure, describeDecodeFailure } from "../patches/decode-failure.ts";
import type { Registry } from "../registry.ts";
import type { Scope } from "../scope.ts";
import { guaranteedUpdate, type UpdateFunction } from "../write/guaranteed-update.ts";
import { checkName } from "../write/name-and-namespace.ts";
import { metadataOf } from "../write/object-metadata.ts";
import { pipeline } from "../write/pipeline.ts";
import type { WriteOptions, WriteRequest } from "../write/request.ts";

export interface ViewOptions<T extends ApiObject> extends Omit<WriteOptions<T>, "subresourceStrategy"> {
  readonly view: SubresourceView<T>;
}

export interface PatchViewOptions<T extends ApiObject> extends ViewOptions<T> {
  /** Decodes patched JSON as an object of the view's kind. */
  readonly decode: (value: unknown, describe: (message: string) => DecodeFailure) => ApiObject;
}

export interface ApplyViewOptions<T extends ApiObject> extends Omit<ApplyOptions<T>, "subresourceStrategy"> {
  readonly view: SubresourceView<T>;
}

/** Resolves with the view of the updated object. */
export async function updateView<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  name: string,
  sent: ApiObject,
  options: ViewOptions<T>,
): Promise<ApiObject> {
  // Before the object is read, which may not exist.
  checkName(sent, name);
  return await updateThroughView({ registry, scope, name, options }, options.view, () => sent);
}

export async function patchView<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  name: string,
  patch: Patch,
  options: PatchViewOptions<T>,
): Promise<ApiObject> {
  const { kind } = options.view;
  return await updateThroughView({ registry, scope, name, options }, options.view, (view) => {
    const current = (): unknown => objectToJson(kind, kind.group, view);
    const value = applyPatch(kind, current(), patch);
    return options.decode(value, (message) => describeDecodeFailure(patch, current(), value, message));
  });
}

/** An apply through a view never creates an object. */
export async function applyView<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  name: string,
  configuration: Configuration,
  options: ApplyViewOptions<T>,
): Promise<ApiObject> {
  const { view } = options;
  checkConfiguration(view.kind, view.kind.group, configuration);
  const sent: Scale = objectFromJson(view.kind, configuration, configuration);
  const hasSpec = isPlainObject(configuration.spec);
  const hasCount = isPlainObject(configuration.spec) && Object.hasOwn(configuration.spec, "replicas");
  const request = { registry, scope, name, options, hasDefaults: true, hasManagedFields: true };
  const writer = newManager(request, "Apply", options.fieldManager);
  const update: UpdateFunction<T> = (previous, store) => {
    const managers = runSteps(storedManagers(previous, false));
    const live = view.toView(previous);
    const applied = { applied: hasCount ? countOf(sent) : undefined, hasSpec };
    const scale = new ScaleManagers(registry, managers);
    const { count, managers: after } = scale.apply(writer, countOf(live), applied, options.force);
    options.onMerged?.();
    const merged = { ...live, metadata: { ...live.metadata, ...sent.metadata }, spec: { replicas: count } };
    const changed = checkView(request, view, checkName(merged, name), previous);
    const next = withManagedFields(view.fromView(previous, changed), runSteps(writeManagers(after, false)));
    return pipeline(request, next)(previous, store);
  };
  return view.toView(await guaranteedUpdate(request, update));
}

async function updateThroughView<T extends ApiObject>(
  { registry, scope, name, options }: WriteRequest<T>,
  view: SubresourceView<T>,
  change: (view: ApiObject) => ApiObject,
): Promise<ApiObject> {
  const request = { registry, scope, name, options, hasDefaults: true };
  const update: UpdateFunction<T> = (previous, store) => {
    const changed = checkView(request, view, checkName(change(view.toView(previous)), name), previous);
    return pipeline(request, view.fromView(previous, changed))(previous, store);
  };
  return view.toView(await guaranteedUpdate(request, update));
}

/** Throws a 400, 409 or 422 for a view that the object cannot have. */
function checkView<T extends ApiObject>(
  { registry, scope, name }: Pick<WriteRequest<T>, "registry" | "scope" | "name">,
  { kind }: SubresourceView<T>,
  changed: ApiObject,
  previous: T,
): ApiObject {
  const { namespace, uid } = metadataOf(changed);
  if (namespace && namespace !== metadataOf(previous).namespace) {
    throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
  }
  const errors = kind.strategy.validate?.(changed) ?? [];
  if (errors.length > 0) throw invalid({ group: kind.group, resource: kind.kind, name }, errors, renderFieldError);
  if (uid && uid !== metadataOf(previous).uid) {
    const why = `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${metadataOf(previous).uid}`;
    throw conflict(registry.subject(scope, name), why);
  }
  return changed;
}
