/**
 * The policies, namespaces and pods of the last run, so that pods that start while the API server is away have their
 * policies. A line per object.
 */
import type { Namespace } from "../api/core/namespace/schema.ts";
import type { Pod } from "../api/core/pod/schema.ts";
import type { NetworkPolicy } from "../api/networking/network-policy/schema.ts";
import { readLineFile, writeLineFile } from "../std/fs/line-file.ts";

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

export async function writeSavedObjects(path: string, { policies, namespaces, pods }: SavedObjects): Promise<void> {
  const lines: readonly Line[] = [
    ...policies.map((object): Line => ["policy", object]),
    ...namespaces.map((object): Line => ["namespace", object]),
    ...pods.map((object): Line => ["pod", object]),
  ];
  await writeLineFile(path, HEADER, lines);
}

/** Undefined when there is no file. Rejects when it is not one of this version, or cannot be read. */
export async function readSavedObjects(path: string): Promise<SavedObjects | undefined> {
  const lines = await readLineFile(path, HEADER);
  if (lines === undefined) return undefined;
  const policies: NetworkPolicy[] = [];
  const namespaces: Namespace[] = [];
  const pods: Pod[] = [];
  for (const [kind, object] of lines as readonly Line[]) {
    if (kind === "policy") policies.push(object);
    else if (kind === "namespace") namespaces.push(object);
    else pods.push(object);
  }
  return { policies, namespaces, pods };
}
