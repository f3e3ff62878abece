/** The list of recorded cases in which our agent does as Kubernetes' did, or otherwise on purpose: by area. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../cluster.ts";

export const agreedFile = "testdata/recorded-agent.json";

/** Ids of an area's cases. */
export function agreed(area: string): readonly string[] {
  return read()[area] ?? [];
}

export function writeAgreed(area: string, ids: readonly string[]): void {
  const all = { ...read(), [area]: [...new Set(ids)].sort() };
  writeFileSync(join(root, agreedFile), `${JSON.stringify(all, undefined, 2)}\n`);
}

function read(): Readonly<Record<string, readonly string[]>> {
  return JSON.parse(readFileSync(join(root, agreedFile), "utf8"));
}
