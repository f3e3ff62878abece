/** Gates of Kubernetes 1.33 whose feature this build lacks: programs report them as off and refuse to enable them. */
import type { GateTable } from "../gates.ts";

/** By what is missing. The change that adds a feature removes its gate from here and the list in testdata. */
export const missingFeatures: Readonly<Record<string, readonly string[]>> = {};

/** Gates whose feature this build always has, by the reason why it cannot be without. */
export const permanentFeatures: Readonly<Record<string, readonly string[]>> = {};

const permanentReasonOf: ReadonlyMap<string, string> = new Map(
  Object.entries(permanentFeatures).flatMap(([reason, names]) => names.map((name) => [name, reason] as const)),
);

const reasonOf: ReadonlyMap<string, string> = new Map(
  Object.entries(missingFeatures).flatMap(([reason, names]) => names.map((name) => [name, reason] as const)),
);

/** The table with the reason of each gate whose feature is missing, or cannot be missing. */
export function markMissing(table: GateTable): GateTable {
  return Object.fromEntries(
    Object.entries(table).map(([name, gate]) => {
      const missing = reasonOf.get(name);
      const permanent = permanentReasonOf.get(name);
      return [name, { ...gate, ...(missing && { missing }), ...(permanent && { permanent }) }];
    }),
  );
}
