/** Events about the node, other than those of its conditions. */
import { readFile } from "node:fs/promises";
import type { Node } from "../../api/core/node/schema.ts";
import { goQuote } from "../../schema/value/go-quote.ts";
import { NAME_CHARACTERS_MAX, parseResolvConf, SEARCH_CHARACTERS_MAX, SEARCHES_MAX } from "../pods/sandbox/dns.ts";

export type RecordNodeEvent = (type: "Normal" | "Warning", reason: string, message: string) => void;

export interface MachineFacts {
  readonly cgroupV1: boolean;
  readonly swapEnabled: boolean;
  /** Whether the kernel supports `noswap` of tmpfs. */
  readonly supportsNoswap: boolean;
  /** The resolv.conf for pods; empty: none. */
  readonly resolvConf: string;
  /** Empty: pods have no search paths of the cluster, which count as well. */
  readonly clusterDomain: string;
}

/** Records what on the machine may affect pods, once at the start. Never rejects. */
export async function recordMachineEvents(facts: MachineFacts, recordEvent: RecordNodeEvent): Promise<void> {
  if (facts.cgroupV1) {
    recordEvent("Warning", "CgroupV1", "cgroup v1 support is in maintenance mode, please migrate to cgroup v2");
  }
  if (facts.swapEnabled && !facts.supportsNoswap) {
    const text =
      "The tmpfs noswap option is not supported. Memory-backed volumes (e.g. secrets, emptyDirs, etc.) " +
      "might be swapped to disk and should no longer be considered secure.";
    recordEvent("Warning", "PossibleMemoryBackedVolumesOnDisk", text);
  }
  const problem =
    facts.resolvConf === "" ? undefined : await findResolverProblem(facts.resolvConf, facts.clusterDomain);
  if (problem !== undefined) recordEvent("Warning", "CheckLimitsForResolvConf", problem);
}

/** The search paths of a pod's namespace, of services and of the cluster. */
const CLUSTER_SEARCHES = 3;

/** How the file exceeds the limits of resolvers; undefined when it does not. */
async function findResolverProblem(path: string, clusterDomain: string): Promise<string | undefined> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    return `open ${path}: ${(error as NodeJS.ErrnoException).code === "ENOENT" ? "no such file or directory" : error}`;
  }
  const { searches } = parseResolvConf(text);
  const file = `Resolv.conf file '${path}' contains`;
  const most = clusterDomain === "" ? SEARCHES_MAX : SEARCHES_MAX - CLUSTER_SEARCHES;
  if (searches.length > most) return `${file} search line consisting of more than ${most} domains!`;
  if (searches.some((each) => each.length > NAME_CHARACTERS_MAX)) {
    const quoted = goQuote(path);
    return `Resolv.conf file ${quoted} contains a search path which length is more than allowed ${NAME_CHARACTERS_MAX} chars!`;
  }
  if (searches.join(" ").length > SEARCH_CHARACTERS_MAX) {
    return `${file} search line which length is more than allowed ${SEARCH_CHARACTERS_MAX} chars!`;
  }
  return undefined;
}

/** Records an event when the node becomes unschedulable or schedulable again. */
export class SchedulableEvents {
  readonly #recordEvent: RecordNodeEvent;
  #unschedulable = false;

  constructor(event: RecordNodeEvent) {
    this.#recordEvent = event;
  }

  nodeChanged({ metadata, spec }: Node): void {
    const closed = spec?.unschedulable === true;
    if (closed === this.#unschedulable) return;
    this.#unschedulable = closed;
    const reason = closed ? "NodeNotSchedulable" : "NodeSchedulable";
    this.#recordEvent("Normal", reason, `Node ${metadata?.name} status is now: ${reason}`);
  }
}
