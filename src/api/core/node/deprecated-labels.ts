/** Labels of nodes that have been given other names; the old ones are still understood. */

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

/** Undefined for labels that have kept their name. */
export function replacementLabel(label: string): string | undefined {
  return Object.hasOwn(replacements, label) ? replacements[label]?.to : undefined;
}

/** What a user of the old name is told. */
export function labelDeprecation(label: string): string | undefined {
  const found = Object.hasOwn(replacements, label) ? replacements[label] : undefined;
  return found === undefined ? undefined : `deprecated since ${found.since}; use "${found.to}" instead`;
}
