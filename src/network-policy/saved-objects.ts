/**
 * The policies, namespaces and pods of the last run, so that pods that start while the API server is away have their
 * policies. A line per object.
 */
import { readFile, rename, writeFile } from "node:fs/promises";
import type { Namespace } from "../api/core/namespace/schema.ts";
import type { Pod } from "../api/core/pod/schema.ts";
import type { NetworkPolicy } from "../api/networking/network-policy/schema.ts";
import { TimeSlice } from "../std/async/time-slice.ts";

const HEADER = "svc network policies 1";

export interface SavedObjects {
  readonly policies: readonly NetworkPolicy[];
  readonly namespaces: readonly Namespace[];
  readonly pods: readonly Pod[];
}

type Line =
  | readonly [kind: "policy", object: NetworkPolicy]
  | readonly [kind: "namespace", object: Namespace]
  | readonly [kind: "pod", object: Pod];

/** The file is replaced as a whole. */
export async function writeSavedObjects(path: string, { policies, namespaces, pods }: SavedObjects): Promise<void> {
  const slice = new TimeSlice();
  const lines: string[] = [HEADER];
  const all: readonly Line[] = [
    ...policies.map((object): Line => ["policy", object]),
    ...namespaces.map((object): Line => ["namespace", object]),
    ...pods.map((object): Line => ["pod", object]),
  ];
  for (const line of all) {
    lines.push(JSON.stringify(line));
    await slice.yield();
  }
  const temporary = `${path}.new`;
  await writeFile(temporary, `${lines.join("\n")}\n`, { mode: 0o600 });
  await rename(temporary, path);
}

/** Undefined when there is no file. Rejects when it is not one of this version, or cannot be read. */
export async function readSavedObjects(path: string): Promise<SavedObjects | undefined> {
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  const [header, ...lines] = text.trimEnd().split("\n");
  if (header !== HEADER) throw new Error(`${path} does not start with ${JSON.stringify(HEADER)}`);
  const slice = new TimeSlice();
  const policies: NetworkPolicy[] = [];
  const namespaces: Namespace[] = [];
  const pods: Pod[] = [];
  for (const line of lines) {
    const [kind, object] = JSON.parse(line) as Line;
    if (kind === "policy") policies.push(object);
    else if (kind === "namespace") namespaces.push(object);
    else pods.push(object);
    await slice.yield();
  }
  return { policies, namespaces, pods };
}
