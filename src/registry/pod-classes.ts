import { runtimeClassKind } from "../api/node/runtime-class-kind.ts";
import { priorityClassKind } from "../api/scheduling/priority-class-kind.ts";
import type { PodClasses } from "./pod-admission.ts";
import type { Registries } from "./registries.ts";

/** The stored classes that new pods name. */
export function storedPodClasses(registries: Registries): PodClasses {
  const priorities = registries.of(priorityClassKind);
  const runtimes = registries.of(runtimeClassKind);
  return {
    priority: {
      find: async (name, scope) => (await priorities.fresh(scope)).get(priorities.objects.key(undefined, name))?.object,
      list: async (scope) => {
        const { items } = (await priorities.fresh(scope)).list(priorities.objects.prefix());
        return items.map(({ object }) => object);
      },
    },
    runtime: {
      find: async (name, scope) => (await runtimes.fresh(scope)).get(runtimes.objects.key(undefined, name))?.object,
    },
  };
}
