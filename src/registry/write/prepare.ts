/** The strategy's own changes to an object, as in Kubernetes' rest.BeforeCreate and rest.BeforeUpdate. */
import type { ApiObject } from "../../api/kind.ts";
import type { WriteRequest } from "./request.ts";

export function prepareForCreate<T extends ApiObject>({ registry, scope, options }: WriteRequest<T>, sent: T): T {
  const { strategy } = registry.kind;
  const object = registry.dropDisabledFields?.(sent, undefined) ?? sent;
  options.warn?.(strategy.warningsBeforePrepare?.(object) ?? []);
  return strategy.prepareForCreate?.(object, registry.timestamp(), scope.user) ?? object;
}

export function prepareForUpdate<T extends ApiObject>({ registry, options }: WriteRequest<T>, sent: T, previous: T): T {
  const object = registry.dropDisabledFields?.(sent, previous) ?? sent;
  const strategy = options.subresourceStrategy ?? registry.kind.strategy;
  return strategy.prepareForUpdate?.(object, previous, registry.timestamp()) ?? object;
}
