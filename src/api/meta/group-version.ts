export interface GroupVersion {
  readonly group: string;
  readonly version: string;
}

/**
 * Splits an apiVersion as Go's `ParseGroupVersion` does: `apps/` has no version, `/v1` no group. Undefined for more
 * than one slash.
 */
export function splitApiVersion(apiVersion: string): GroupVersion | undefined {
  const [first = "", second, ...more] = apiVersion.split("/");
  if (more.length > 0) return undefined;
  return second === undefined ? { group: "", version: first } : { group: first, version: second };
}
