import type { ApiObject, UpdateCheck } from "../../api/kind.ts";
import {
  validateFinalizerDomains,
  validateGenericContent,
  validateObjectMeta,
  validateObjectMetaUpdate,
} from "../../api/meta/validation/object-meta.ts";
import { invalid } from "../../api/status.ts";
import { type FieldError, renderFieldError } from "../../schema/validation/field-error.ts";
import { validateWithRatcheting } from "../../schema/validation/ratcheting.ts";
import { validate as validateSchema } from "../../schema/validation/validate.ts";
import { andThen, type MaybePromise } from "../../std/async/maybe-promise.ts";
import { runInSlices, type Steps } from "../../std/async/steps.ts";
import type { Registry } from "../registry.ts";
import { metadataOf } from "./object-metadata.ts";
import type { WriteRequest } from "./request.ts";

/** Validates by metadata, schema, strategy and cluster policy, in this order; then warns. Throws a 422. */
export function validate<T extends ApiObject>(
  request: WriteRequest<T>,
  object: T,
  previous: T | undefined,
  isLong: boolean,
): MaybePromise<void> {
  const { registry, scope, options } = request;
  const steps =
    previous === undefined ? createErrors(request, object, isLong) : updateErrors(request, object, previous, isLong);
  return andThen(runInSlices(steps), (errors) => {
    if (errors.length > 0) {
      throw invalid(registry.kindSubject(scope, metadataOf(object).name ?? ""), errors, renderFieldError);
    }
    const { warn } = options;
    if (warn === undefined) return;
    return andThen(unenforcedWarning(request, object), (unenforced) => {
      if (unenforced !== undefined) warn([unenforced]);
      if (previous === undefined) warn(registry.kind.strategy.warnings?.(object, undefined) ?? []);
      else warn((options.subresourceStrategy ?? registry.kind.strategy).warnings?.(object, previous) ?? []);
    });
  });
}

function unenforcedWarning<T extends ApiObject>(
  { registry, options }: WriteRequest<T>,
  object: T,
): MaybePromise<string | undefined> {
  if (options.subresourceStrategy !== undefined) return undefined;
  return registry.deps.unenforcedWarning?.(registry.kind, object);
}

/** Adds without passing each error as an argument, of which there may be too many. */
function addErrors(to: FieldError[], errors: readonly FieldError[]): void {
  for (const error of errors) to.push(error);
}

function* createErrors<T extends ApiObject>(
  { registry }: WriteRequest<T>,
  object: T,
  isLong: boolean,
): Steps<readonly FieldError[]> {
  const { kind, deps } = registry;
  const errors = [...validateObjectMeta(metadataOf(object), kind)];
  if (isLong) yield;
  addErrors(errors, validateSchema(kind.schema, object));
  if (isLong) yield;
  addErrors(errors, yield* validateFields(registry, object));
  if (isLong) yield;
  addErrors(errors, deps.validatePolicy?.(kind, object, undefined) ?? []);
  return errors;
}

function* updateErrors<T extends ApiObject>(
  request: WriteRequest<T>,
  object: T,
  previous: T,
  isLong: boolean,
): Steps<readonly FieldError[]> {
  const { registry, options } = request;
  const { kind, deps } = registry;
  const { subresourceStrategy } = options;
  const metadata = metadataOf(object);
  const content = validateGenericContent(metadata);
  const change = validateObjectMetaUpdate(object, previous);
  const domains = validateFinalizerDomains(metadata, kind);
  if (isLong) yield;
  const spec = [...validateWithRatcheting(kind.schema, object, previous)];
  if (isLong) yield;
  if (subresourceStrategy === undefined) addErrors(spec, yield* validateFields(registry, object, previous));
  else addErrors(spec, registry.validateGated?.(object, previous) ?? []);
  if (isLong) yield;
  const found: Readonly<Record<UpdateCheck, readonly FieldError[]>> = {
    metadata: [...content, ...domains],
    metadataUpdate: [...change, ...domains],
    spec,
    change: yield* validateChange(request, object, previous),
  };
  const errors = [...content, ...change];
  const checks = subresourceStrategy === undefined ? kind.updateChecks : undefined;
  for (const check of checks ?? UPDATE_CHECKS) addErrors(errors, found[check]);
  if (checks?.includes("change") !== true) addErrors(errors, found.change);
  if (isLong) yield;
  addErrors(errors, deps.validatePolicy?.(kind, object, previous) ?? []);
  return errors;
}

function* validateChange<T extends ApiObject>(
  { registry, options: { subresourceStrategy } }: WriteRequest<T>,
  object: T,
  previous: T,
): Steps<readonly FieldError[]> {
  if (subresourceStrategy?.validateUpdateInSteps !== undefined) {
    return yield* subresourceStrategy.validateUpdateInSteps(object, previous);
  }
  return (subresourceStrategy ?? registry.kind.strategy).validateUpdate?.(object, previous, registry.features) ?? [];
}

function* validateFields<T extends ApiObject>(
  { kind, features, validateGated }: Registry<T>,
  object: T,
  previous?: T,
): Steps<readonly FieldError[]> {
  const { strategy } = kind;
  const errors =
    strategy.validateInSteps === undefined
      ? (strategy.validate?.(object, previous, features) ?? [])
      : yield* strategy.validateInSteps(object, previous);
  return validateGated === undefined ? errors : [...errors, ...validateGated(object, previous)];
}

/** The checks of most kinds. */
const UPDATE_CHECKS: readonly UpdateCheck[] = ["metadata", "spec", "metadataUpdate"];
