/** Of all priority classes, one at most may be given to pods that name none. */
import type { PriorityClass } from "../api/scheduling/priority-class.ts";
import { priorityClassKind } from "../api/scheduling/priority-class-kind.ts";
import { forbidden } from "../api/status.ts";
import type { Registries } from "../registry/registries.ts";
import type { Confirm } from "../registry/registry.ts";

export function oneDefaultPriorityClass(registries: Registries): Confirm {
  return async (scope, next) => {
    const { globalDefault, metadata } = next as PriorityClass;
    if (globalDefault !== true) return;
    const name = metadata?.name ?? "";
    const registry = registries.of(priorityClassKind);
    const cache = await registry.fresh(scope);
    for (const { object } of cache.list(registry.prefix(scope)).items) {
      const other = object.metadata?.name ?? "";
      if (object.globalDefault !== true || other === name) continue;
      const why = `PriorityClass ${other} is already marked as default. Only one default can exist`;
      throw forbidden(registry.subject(scope, name), why);
    }
  };
}
