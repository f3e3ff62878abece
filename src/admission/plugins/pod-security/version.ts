/** The Kubernetes release whose rules apply: its minor version, or the latest. */
export type PolicyVersion = number | "latest";

export const LATEST = "latest";

/** Undefined if the text is neither `latest` nor `v1.` and a number. */
export function parseVersion(text: string): PolicyVersion | undefined {
  if (text === LATEST) return LATEST;
  const minor = /^v1\.(0|[1-9]\d{0,8})$/.exec(text)?.[1];
  return minor === undefined ? undefined : Number(minor);
}

export function formatVersion(version: PolicyVersion): string {
  return version === LATEST ? LATEST : `v1.${version}`;
}
