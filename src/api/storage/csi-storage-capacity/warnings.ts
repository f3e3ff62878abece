import { child, index } from "../../../schema/value/field-path.ts";
import { labelDeprecation } from "../../core/node/deprecated-labels.ts";
import type { CSIStorageCapacity } from "./schema.ts";

export function csiStorageCapacityWarnings({ nodeTopology }: CSIStorageCapacity): readonly string[] {
  const { matchExpressions = [], matchLabels = {} } = nodeTopology ?? {};
  const warn = (label: string, text: (why: string) => string): readonly string[] => {
    const renamed = labelDeprecation(label);
    return renamed === undefined ? [] : [text(renamed)];
  };
  return [
    ...matchExpressions.flatMap(({ key: label }, i) =>
      warn(label, (why) => `${child(index("nodeTopology.matchExpressions", i), "key")}: ${label} is ${why}`),
    ),
    ...Object.keys(matchLabels).flatMap((label) => warn(label, (why) => `nodeTopology.matchLabels.${label}: ${why}`)),
  ];
}
