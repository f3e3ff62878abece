/**
 * Allocates a range of the node's uids and gids to each pod with a user namespace. A file of the pod records the range,
 * so that it survives a restart of the agent.
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
  /** Start and length are multiples of `idsPerPod`. */
  readonly readRange: () => Promise<IdRange>;
  readonly idsPerPod: number;
}

/** The user whose subordinate ids pods get, if the node configures some. */
const USER = "svclet";
const FILE = "userns";

export class UserNamespaces {
  readonly #options: UserNamespacesOptions;
  /** First ids by pod; as many as pods of the node. */
  #allocated: Promise<Map<string, number>> | undefined;
  #range: Promise<IdRange> | undefined;

  constructor(options: UserNamespacesOptions) {
    this.#options = options;
  }

  /** Returns the same range until it is released. Rejects when no range is free. */
  async allocate(uid: string): Promise<UserNamespace> {
    const { directories, idsPerPod } = this.#options;
    this.#allocated ??= this.#readAllocated();
    this.#range ??= this.#options.readRange();
    const [taken, range] = await Promise.all([this.#allocated, this.#range]);
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

  async release(uid: string): Promise<void> {
    await rm(join(podDir(this.#options.directories, uid), FILE), { force: true });
    (await this.#allocated)?.delete(uid);
  }

  /** Reads the ranges that an agent before this one allocated. */
  async #readAllocated(): Promise<Map<string, number>> {
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
 * The subordinate ids that the node's administrator configured for the agent, else as many as its pods can need, from
 * 65536 on. Rejects when the configured range is not usable: its bounds must be multiples of `idsPerPod`, and users and
 * groups must have the same range.
 */
export async function readHostIdRange(
  idsPerPod: number,
  maxPods: number,
  readSubordinateIds: (...words: string[]) => Promise<string | undefined> = runGetsubids,
): Promise<IdRange> {
  const [users, groups] = [await readSubordinateIds(USER), await readSubordinateIds("-g", USER)];
  if (users === undefined || groups === undefined) return { first: idsPerPod, length: idsPerPod * maxPods };
  const makeError = (why: string): Error => new Error(`cannot use the subordinate ids of user ${USER}: ${why}`);
  if (users !== groups) throw makeError("those of users and of groups differ");
  const lines = users.trim().split("\n");
  if (lines.length > 1) throw makeError("there is more than one range");
  const [, first = Number.NaN, length = Number.NaN] = (/ (\d+) (\d+)$/.exec(lines[0] ?? "") ?? []).map(Number);
  if (Number.isNaN(first) || Number.isNaN(length)) throw makeError(`there is no range in ${JSON.stringify(lines[0])}`);
  if (first < idsPerPod) throw makeError(`they must begin at ${idsPerPod} or above`);
  if (first % idsPerPod !== 0 || length % idsPerPod !== 0)
    throw makeError(`they must be whole multiples of ${idsPerPod}`);
  if (length < idsPerPod * maxPods) throw makeError(`${maxPods} pods need ${idsPerPod * maxPods} of them`);
  return { first, length };
}

/** Undefined when the node does not have the tool, or no range for the user. */
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

/** Parses Kubernetes' file format. Throws for an invalid file, because the ids in it may be in use. */
function parseFirstId(text: string, uid: string): number {
  const { uidMappings } = JSON.parse(text) as { readonly uidMappings?: readonly { readonly hostId?: unknown }[] };
  const hostId = uidMappings?.[0]?.hostId;
  if (typeof hostId !== "number") throw new Error(`cannot parse the user namespace of pod ${uid}`);
  return hostId;
}

async function writeMappings(file: string, ids: readonly IDMapping[]): Promise<void> {
  await mkdir(join(file, ".."), { recursive: true, mode: 0o750 });
  await writeFile(`${file}.new`, JSON.stringify({ uidMappings: ids, gidMappings: ids }), { mode: 0o600 });
  await rename(`${file}.new`, file);
}
