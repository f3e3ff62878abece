/** Objects read and written in the form of another kind: a Deployment as its Scale. */
import type { ApiObject, SubresourceStrategy, SubresourceView } from "../../api/kind.ts";
import { formatApiVersion } from "../../api/scheme.ts";
import { badRequest, conflict, invalid } from "../../api/status.ts";
import { renderFieldError } from "../../schema/validation/field-error.ts";
import { type ApplyOptions, apply, type Configuration, checkConfiguration } from "../apply.ts";
import { guaranteedUpdate, type UpdateFunction } from "../write/guaranteed-update.ts";
import { trackManagedFields } from "../managed-fields/track-managed-fields.ts";
import { toJsonValue, type Patch, applyPatch } from "../patch.ts";
import type { Registry, Scope } from "../registry.ts";
import { revised } from "../write/pipeline.ts";
import { type DecodeFailure, describeDecodeFailure } from "../patches/decode-failure.ts";
import { setName, type UpdateOptions } from "../update.ts";
import { metadataOf } from "../write/prepare.ts";

export interface ViewOptions<T extends ApiObject> extends Omit<UpdateOptions<T>, "part"> {
  readonly view: SubresourceView<T>;
}

export interface PatchViewOptions<T extends ApiObject> extends ViewOptions<T> {
  /** From patched JSON to an object of the kind shown. */
  readonly decode: (value: unknown, show: (why: string) => DecodeFailure) => ApiObject;
}

/** Resolves with the object as it is shown after the update. */
export async function updateView<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  name: string,
  sent: ApiObject,
  options: ViewOptions<T>,
): Promise<ApiObject> {
  return await changeView(registry, scope, name, () => sent, options);
}

export async function patchView<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  name: string,
  patch: Patch,
  options: PatchViewOptions<T>,
): Promise<ApiObject> {
  const { kind } = options.view;
  const next = (shown: ApiObject): ApiObject => {
    const current = (): unknown => toJsonValue(kind, kind.group, shown);
    const value = applyPatch(kind, current(), patch);
    return options.decode(value, (why) => describeDecodeFailure(patch, current(), value, why));
  };
  return await changeView(registry, scope, name, next, options);
}

export interface ApplyViewOptions<T extends ApiObject> extends Omit<ApplyOptions<T>, "part"> {
  readonly view: SubresourceView<T>;
}

/** An apply never creates an object through a view. */
export async function applyView<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  name: string,
  configuration: Configuration,
  options: ApplyViewOptions<T>,
): Promise<ApiObject> {
  const { kind } = registry;
  const { view } = options;
  checkConfiguration(view.kind, view.kind.group, configuration);
  const identity = { apiVersion: formatApiVersion(scope.group, kind.version), kind: kind.kind };
  const { prepareForUpdate, validate, validateUpdate, warnings } = kind.strategy;
  const part: SubresourceStrategy<T> = {
    prepareForUpdate: (next, previous, now) => {
      checked(registry, scope, name, view.toView(next), previous, view);
      return prepareForUpdate?.(next, previous, now) ?? next;
    },
    validateUpdate: (next, previous) => [
      ...(validate?.(next, previous) ?? []),
      ...(validateUpdate?.(next, previous) ?? []),
    ],
    warnings: (next, previous) => warnings?.(next, previous) ?? [],
  };
  const wanted = { ...identity, ...view.configurationFromView(configuration) };
  return view.toView((await apply(registry, scope, name, wanted, { ...options, subresourceStrategy: part })).object);
}

async function changeView<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  name: string,
  wanted: (shown: ApiObject) => ApiObject,
  options: ViewOptions<T>,
): Promise<ApiObject> {
  const { view } = options;
  const next: UpdateFunction<T> = async (previous, allocate) => {
    const shown = checked(registry, scope, name, setName(wanted(view.toView(previous)), name), previous, view);
    const writer = { ...options, untimed: true };
    const object = await trackManagedFields(registry, scope, view.fromView(previous, shown), previous, writer);
    return await revised(registry, scope, object, previous, options, allocate);
  };
  return view.toView(await guaranteedUpdate(registry, scope, name, next, options));
}

/** Throws 400, 409 or 422 for what cannot stand for the object. */
function checked<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  name: string,
  shown: ApiObject,
  previous: T,
  { kind }: SubresourceView<T>,
): ApiObject {
  const { namespace, uid } = metadataOf(shown);
  if (namespace && namespace !== metadataOf(previous).namespace) {
    throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
  }
  const errors = kind.strategy.validate?.(shown) ?? [];
  if (errors.length > 0) throw invalid({ group: kind.group, resource: kind.kind, name }, errors, renderFieldError);
  if (uid && uid !== metadataOf(previous).uid) {
    const why = `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${metadataOf(previous).uid}`;
    throw conflict(registry.subject(scope, name), why);
  }
  return shown;
}
