/** The list of recorded cases, by area, in which the agent matches kubelet, or differs by design. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../cluster.ts";

export const listFile = "testdata/recorded-agent.json";

/** The ids of the listed cases of an area. */
export function listedCases(area: string): readonly string[] {
  return read()[area] ?? [];
}

export function writeListedCases(area: string, ids: readonly string[]): void {
  const all = { ...read(), [area]: [...new Set(ids)].sort() };
  writeFileSync(join(root, listFile), `${JSON.stringify(all, undefined, 2)}\n`);
}

function read(): Readonly<Record<string, readonly string[]>> {
  return JSON.parse(readFileSync(join(root, listFile), "utf8"));
}
