/** Deprecated node labels and their replacements. The deprecated labels still work. */

interface Replacement {
  readonly to: string;
  readonly since: string;
}

const replacements: Readonly<Record<string, Replacement>> = {
  "beta.kubernetes.io/arch": { to: "kubernetes.io/arch", since: "v1.14" },
  "beta.kubernetes.io/os": { to: "kubernetes.io/os", since: "v1.14" },
  "failure-domain.beta.kubernetes.io/region": { to: "topology.kubernetes.io/region", since: "v1.17" },
  "failure-domain.beta.kubernetes.io/zone": { to: "topology.kubernetes.io/zone", since: "v1.17" },
  "beta.kubernetes.io/instance-type": { to: "node.kubernetes.io/instance-type", since: "v1.17" },
};

/** The label's replacement; undefined for labels that are not deprecated. */
export function replacementLabel(label: string): string | undefined {
  return Object.hasOwn(replacements, label) ? replacements[label]?.to : undefined;
}

/** The deprecation message of a label; undefined for labels that are not deprecated. */
export function labelDeprecation(label: string): string | undefined {
  const replacement = Object.hasOwn(replacements, label) ? replacements[label] : undefined;
  return replacement === undefined
    ? undefined
    : `deprecated since ${replacement.since}; use "${replacement.to}" instead`;
}
