import { labelDeprecation } from "../../core/node/deprecated-labels.ts";
import type { RuntimeClass } from "./schema.ts";

export function runtimeClassWarnings({ scheduling }: RuntimeClass): readonly string[] {
  return Object.keys(scheduling?.nodeSelector ?? {}).flatMap((label) => {
    const renamed = labelDeprecation(label);
    return renamed === undefined ? [] : [`scheduling.nodeSelector: ${renamed}`];
  });
}
