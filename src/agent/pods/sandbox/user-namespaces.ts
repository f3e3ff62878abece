/**
 * Which ids of the node stand for those of pods with a user namespace of their own: a range for each pod, which nobody
 * else has, written down so that it outlives the agent.
 */
import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { IDMapping, UserNamespace } from "../../runtime/cri/shared.ts";
import { type Directories, podDir, podsDir } from "../directories.ts";

export interface IdRange {
  readonly first: number;
  readonly length: number;
}

export interface UserNamespacesOptions {
  readonly directories: Directories;
  /** Whole multiples of what a pod has. */
  readonly range: () => Promise<IdRange>;
  readonly idsPerPod: number;
}

/** Whose subordinate ids pods get, where the node has set some apart. */
const USER = "svclet";
const FILE = "userns";

export class UserNamespaces {
  readonly #options: UserNamespacesOptions;
  /** First ids by pod; as many as pods of the node. */
  #taken: Promise<Map<string, number>> | undefined;
  #range: Promise<IdRange> | undefined;

  constructor(options: UserNamespacesOptions) {
    this.#options = options;
  }

  /** The pod's own; the same until it is released. Rejects when there are none left. */
  async allocate(uid: string): Promise<UserNamespace> {
    const { directories, idsPerPod } = this.#options;
    this.#taken ??= this.#written();
    this.#range ??= this.#options.range();
    const [taken, range] = await Promise.all([this.#taken, this.#range]);
    let first = taken.get(uid);
    if (first === undefined) {
      first = findFreeRange(range, idsPerPod, new Set(taken.values()));
      taken.set(uid, first);
      try {
        await writeMappings(join(podDir(directories, uid), FILE), makeMappings(first, idsPerPod));
      } catch (error) {
        taken.delete(uid);
        throw error;
      }
    }
    const ids = makeMappings(first, idsPerPod);
    return { mode: "POD", uids: ids, gids: ids };
  }

  /** Nothing of the pod runs any more. */
  async release(uid: string): Promise<void> {
    await rm(join(podDir(this.#options.directories, uid), FILE), { force: true });
    (await this.#taken)?.delete(uid);
  }

  /** What an agent before this one gave away. */
  async #written(): Promise<Map<string, number>> {
    const { directories } = this.#options;
    const taken = new Map<string, number>();
    for (const uid of await readdir(podsDir(directories)).catch(() => [])) {
      const text = await readFile(join(podDir(directories, uid), FILE), "utf8").catch(() => undefined);
      if (text !== undefined) taken.set(uid, parseFirstId(text, uid));
    }
    return taken;
  }
}

/**
 * The ids that the node's administrator set apart for the agent, or as many as its pods can need, from 65536 on.
 * Rejects when those set apart are of no use: ranges must begin and end between pods, and be the same for users and
 * groups.
 */
export async function readHostIdRange(
  idsPerPod: number,
  maxPods: number,
  readSubordinateIds: (...words: string[]) => Promise<string | undefined> = runGetsubids,
): Promise<IdRange> {
  const [users, groups] = [await readSubordinateIds(USER), await readSubordinateIds("-g", USER)];
  if (users === undefined || groups === undefined) return { first: idsPerPod, length: idsPerPod * maxPods };
  const refuse = (why: string): Error => new Error(`cannot use the subordinate ids of user ${USER}: ${why}`);
  if (users !== groups) throw refuse("those of users and of groups differ");
  const lines = users.trim().split("\n");
  if (lines.length > 1) throw refuse("there is more than one range");
  const [, first = Number.NaN, length = Number.NaN] = (/ (\d+) (\d+)$/.exec(lines[0] ?? "") ?? []).map(Number);
  if (Number.isNaN(first) || Number.isNaN(length)) throw refuse(`there is no range in ${JSON.stringify(lines[0])}`);
  if (first < idsPerPod) throw refuse(`they must begin at ${idsPerPod} or above`);
  if (first % idsPerPod !== 0 || length % idsPerPod !== 0) throw refuse(`they must be whole multiples of ${idsPerPod}`);
  if (length < idsPerPod * maxPods) throw refuse(`${maxPods} pods need ${idsPerPod * maxPods} of them`);
  return { first, length };
}

/** Undefined when the node has no such tool, or nothing for the user. */
async function runGetsubids(...words: string[]): Promise<string | undefined> {
  return await promisify(execFile)("getsubids", words).then(
    ({ stdout }) => stdout,
    () => undefined,
  );
}

function findFreeRange({ first, length }: IdRange, idsPerPod: number, taken: ReadonlySet<number>): number {
  for (let at = first; at + idsPerPod <= first + length; at += idsPerPod) if (!taken.has(at)) return at;
  throw new Error("could not find an empty slot to allocate a user namespace");
}

function makeMappings(hostId: number, length: number): readonly IDMapping[] {
  return [{ hostId, containerId: 0, length }];
}

/** In the form that Kubernetes' agents write. A file that cannot be read might hide ids that are in use. */
function parseFirstId(text: string, uid: string): number {
  const { uidMappings } = JSON.parse(text) as { readonly uidMappings?: readonly { readonly hostId?: unknown }[] };
  const hostId = uidMappings?.[0]?.hostId;
  if (typeof hostId !== "number") throw new Error(`cannot read the user namespace of pod ${uid}`);
  return hostId;
}

async function writeMappings(file: string, ids: readonly IDMapping[]): Promise<void> {
  await mkdir(join(file, ".."), { recursive: true, mode: 0o750 });
  await writeFile(`${file}.new`, JSON.stringify({ uidMappings: ids, gidMappings: ids }), { mode: 0o600 });
  await rename(`${file}.new`, file);
}
