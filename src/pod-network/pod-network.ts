/**
 * The network of the pods of one node: the CNI configuration, masquerading, and the ways to the pods of other nodes.
 *
 *     informer of nodes ─┐
 *     ip monitor ────────┼→ plan → what differs in the kernel → ip, bridge, nft
 *     every minute ──────┘
 */
import type { Node } from "../api/core/node/schema.ts";
import type { Informer } from "../client/informer/informer.ts";
import type { RandomSource } from "../std/crypto/random.ts";
import type { Logger } from "../std/log/logger.ts";
import { type IpFamily, parseCidr } from "../std/net/ip.ts";
import type { Nft } from "../std/nftables/nft.ts";
import { Backoff } from "../std/time/backoff.ts";
import type { Clock } from "../std/time/clock.ts";
import { type CniDirectories, findForeignConfig, hasConflist, removeConflist, writeConflist } from "./cni-config.ts";
import { enableForwarding } from "./forwarding.ts";
import { findChanges } from "./kernel-changes.ts";
import { readKernelState } from "./kernel-state.ts";
import { monitorLinks } from "./link-monitor.ts";
import { masqueradeRules } from "./masquerade-rules.ts";
import type { NetworkNames } from "./network-names.ts";
import { type NetworkNode, type PlanOptions, planNetwork } from "./network-plan.ts";
import { NodeFile } from "./node-file.ts";
import type { PodNetworkMetrics } from "./pod-network-metrics.ts";
import { IP_MISSING, type RouteTools } from "./programs.ts";

/** What the network changes its host with. */
export interface NetworkHost {
  /** Undefined if iproute2 is missing. */
  readonly tools: RouteTools | undefined;
  /** Undefined if nftables is missing: then the CNI plugins masquerade, by iptables. */
  readonly nft: Nft | undefined;
  readonly hasIptables: boolean;
  readonly enableForwarding?: typeof enableForwarding;
}

export interface PodNetworkOptions extends NetworkHost {
  readonly nodeName: string;
  readonly mode: PlanOptions["mode"];
  readonly clusterCidrs: readonly string[];
  readonly names: NetworkNames;
  /** See `CniOptions`. */
  readonly hairpin: boolean;
  readonly cni: CniDirectories;
  /** Has all nodes, with the fields that `keepNetworkNode` keeps. */
  readonly nodes: Informer<Node>;
  /** Where the nodes are for the next start. */
  readonly nodeFile: string;
  readonly metrics?: PodNetworkMetrics | undefined;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  /** Called when the network cannot be as it should be, once until it is. */
  readonly onProblem: (text: string) => void;
}

export interface PodNetwork {
  /** Resolves when the network is as it should be for the first time. */
  readonly ready: Promise<void>;
  /** The network stays as long as pods run. Idempotent. */
  close(options: { readonly removeRoutes: boolean; readonly removeConfig: boolean }): Promise<void>;
}

const BACKOFF = { initialMs: 500, maxMs: 30_000, jitter: 0.1 };
/** Changes that follow one another within this time are handled together. */
const BATCH_MS = 100;
/** How often everything is compared with the kernel, for changes of which no event came. */
const RESYNC_MS = 60_000;
/** How long after its end `ip monitor` is started again. */
const MONITOR_RESTART_MS = 5_000;
const FAMILIES = ["IPv4", "IPv6"] as const;

export function startPodNetwork(options: PodNetworkOptions): PodNetwork {
  return new RunningNetwork(options);
}

/** For informers: of a Node object the fields that the network reads. */
export function keepNetworkNode({ apiVersion, kind, metadata, spec, status }: Node): Node {
  const { name, uid, resourceVersion } = metadata ?? {};
  const { podCIDR, podCIDRs } = spec ?? {};
  const internal = (status?.addresses ?? []).filter(({ type }) => type === "InternalIP");
  const kept = {
    metadata: { name, uid, resourceVersion },
    spec: { podCIDR, podCIDRs },
    status: { addresses: internal },
  };
  return { ...(apiVersion && { apiVersion }), ...(kind && { kind }), ...(kept as Node) };
}

/** The first internal address of each IP family, as in the Node object. */
function toNetworkNode({ metadata, spec, status }: Node): NetworkNode {
  const internal = (status?.addresses ?? []).flatMap(({ type, address }) => (type === "InternalIP" ? [address] : []));
  const firsts = FAMILIES.map((family) => internal.find((address) => address.includes(":") === (family === "IPv6")));
  return {
    name: metadata?.name ?? "",
    podCidrs: spec?.podCIDRs ?? (spec?.podCIDR ? [spec.podCIDR] : []),
    addresses: internal.filter((address) => firsts.includes(address)),
  };
}

class RunningNetwork implements PodNetwork {
  readonly ready: Promise<void>;
  readonly #options: PodNetworkOptions;
  readonly #file: NodeFile;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  #saved: readonly NetworkNode[] | undefined;
  #isDue = true;
  #wake: (() => void) | undefined;
  #monitoring: Promise<void> | undefined;
  /** The text of the last transaction of nftables, by IP family. */
  readonly #masquerading = new Map<IpFamily, string>();
  #shownProblems = "";
  #isReleased = false;
  #closing: Promise<void> | undefined;

  constructor(options: PodNetworkOptions) {
    this.#options = options;
    this.#file = new NodeFile(options.nodeFile);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.ready = promise;
    promise.catch(() => {});
    this.#running = this.#run(resolve).finally(() => reject(new Error("The pod network stopped")));
  }

  close({ removeRoutes, removeConfig }: Parameters<PodNetwork["close"]>[0]): Promise<void> {
    this.#closing ??= (async () => {
      this.#stop.abort(new DOMException("The pod network is closed", "AbortError"));
      await this.#running;
      await this.#monitoring;
      if (!removeRoutes || this.#isReleased) return;
      await removePodNetwork(this.#options, removeConfig ? this.#options.cni.confDir : undefined);
    })();
    return this.#closing;
  }

  async #run(onReady: () => void): Promise<void> {
    const { clock, log, random, nodes, onProblem } = this.#options;
    const { signal } = this.#stop;
    const backoff = new Backoff(BACKOFF, random);
    this.#saved = await this.#file.read();
    const unsubscribe = nodes.subscribe({
      put: (node, before) => {
        if (before === undefined || fingerprint(node) !== fingerprint(before)) this.#touch();
      },
      delete: () => this.#touch(),
    });
    void nodes.synced.then(
      () => this.#touch(),
      () => {},
    );
    let isFailing = false;
    try {
      for (let isFirst = true; !signal.aborted; isFirst = false) {
        if (!this.#isDue) await this.#changed(signal);
        if (!isFirst) await clock.sleep(BATCH_MS, signal);
        this.#isDue = false;
        try {
          if (await this.#reconcile()) onReady();
          backoff.reset();
          isFailing = false;
        } catch (error) {
          if (signal.aborted) return;
          this.#options.metrics?.recordFailure();
          const text = error instanceof Error ? error.message : String(error);
          if (!isFailing) onProblem(text);
          log.error("Failed to configure the pod network; retrying", error);
          isFailing = true;
          this.#isDue = true;
          await clock.sleep(backoff.next(), signal);
        }
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      unsubscribe();
    }
  }

  #touch(): void {
    this.#isDue = true;
    this.#wake?.();
  }

  /** Resolves when something changes, and when everything is to be compared. */
  async #changed(signal: AbortSignal): Promise<void> {
    const changed = new AbortController();
    this.#wake = () => changed.abort();
    await this.#options.clock.sleep(RESYNC_MS, AbortSignal.any([signal, changed.signal])).catch(() => {});
    this.#wake = undefined;
    signal.throwIfAborted();
  }

  /** False if the node has no pod CIDR yet, or another pod network is configured. */
  async #reconcile(): Promise<boolean> {
    const { nodes, nodeName, cni, log, names } = this.#options;
    const all = nodes.isSynced ? [...nodes.list()].map(toNetworkNode) : this.#saved;
    const own = all?.find(({ name }) => name === nodeName);
    if (all === undefined || own === undefined || own.podCidrs.length === 0) return false;
    const foreign = await findForeignConfig(cni.confDir);
    if (foreign !== undefined) {
      if (!this.#isReleased) {
        log.info("Another pod network is configured: routes and rules are left to it", { file: foreign });
        const isOurs = this.#saved !== undefined || (await hasConflist(cni.confDir));
        if (isOurs) await removePodNetwork(this.#options, cni.confDir);
        this.#masquerading.clear();
        this.#saved = undefined;
      }
      this.#isReleased = true;
      return false;
    }
    this.#isReleased = false;
    const { nft, hairpin, hasIptables } = this.#options;
    const podCidrs = own.podCidrs;
    const ipMasq = nft === undefined && hasIptables;
    if (await writeConflist({ ...cni, bridge: names.bridge, podCidrs, ipMasq, hairpin, hasIptables })) {
      log.info("Wrote the CNI configuration", { directory: cni.confDir, podCidrs: podCidrs.join() });
    }
    await this.#file.write(all);
    this.#saved = all;
    // A failure of one of them is no reason to leave out the other.
    const results = await Promise.allSettled([this.#masquerade(own), this.#route(own, all)]);
    const failures = results.flatMap((result) => (result.status === "rejected" ? [result.reason as unknown] : []));
    if (failures.length === 1) throw failures[0];
    if (failures.length > 1) throw new AggregateError(failures, failures.map(String).join("; "));
    return true;
  }

  async #masquerade({ podCidrs }: NetworkNode): Promise<void> {
    const { nft, names, clusterCidrs } = this.#options;
    for (const family of FAMILIES) {
      const isOf = (cidr: string): boolean => parseCidr(cidr)?.family === family;
      const own = podCidrs.filter(isOf);
      if (own.length > 0) await (this.#options.enableForwarding ?? enableForwarding)(family);
      if (nft === undefined || (own.length === 0 && !this.#masquerading.has(family))) continue;
      const text = masqueradeRules({
        family,
        table: names.table,
        podCidrs: own,
        clusterCidrs: clusterCidrs.filter(isOf),
      });
      const isCurrent = this.#masquerading.get(family) === text;
      // Other programs may flush all rules of the host.
      const check = `list chain ${family === "IPv4" ? "ip" : "ip6"} ${names.table} postrouting\n`;
      if (
        isCurrent &&
        (own.length === 0 ||
          (await nft.apply(check).then(
            () => true,
            () => false,
          )))
      )
        continue;
      this.#masquerading.delete(family);
      await nft.apply(text);
      this.#masquerading.set(family, text);
    }
  }

  async #route(own: NetworkNode, all: readonly NetworkNode[]): Promise<void> {
    const { tools, names, log } = this.#options;
    const others = all.filter(({ name, podCidrs, addresses }) => {
      return name !== own.name && podCidrs.length > 0 && addresses.length > 0;
    });
    if (tools === undefined) {
      if (others.length > 0) throw new Error(IP_MISSING);
      return;
    }
    // Without other nodes nothing needs to follow the kernel's events: a resync removes what is left.
    if (others.length > 0) this.#startMonitor(tools);
    const addresses = [...new Set(others.flatMap((node) => node.addresses))];
    const families = new Set(own.podCidrs.flatMap((text) => parseCidr(text)?.family ?? []));
    const state = await readKernelState(tools, names, addresses, families);
    const plan = planNetwork(own, others, state.nextHops, { ...this.#options, device: names.device });
    this.#showProblems(plan.problems);
    const { ip, bridge } = findChanges(plan, state, names);
    this.#options.metrics?.recordSync(plan);
    if (ip.length === 0 && bridge.length === 0) return;
    log.info("Changing the ways to the pods of other nodes", {
      nodes: others.length,
      routes: plan.routes.length,
      tunneled: plan.forwarding.length,
      commands: ip.length + bridge.length,
    });
    log.v(2)?.info("Commands of ip and bridge", { ip: ip.join("; "), bridge: bridge.join("; ") });
    const errors = [
      ip.length === 0 ? undefined : await tools.ip(ip),
      bridge.length === 0 ? undefined : await tools.bridge(bridge),
    ]
      .map((result) => result?.stderr ?? "")
      .filter((stderr) => stderr !== "");
    if (errors.length > 0) throw new Error(`Cannot connect pods of other nodes: ${errors.join("; ")}`);
  }

  #showProblems(problems: readonly string[]): void {
    const shown = problems.join("; ");
    if (shown !== "" && shown !== this.#shownProblems) {
      this.#options.onProblem(`Pods of some nodes cannot be reached: ${shown}`);
    }
    this.#shownProblems = shown;
  }

  #startMonitor(tools: RouteTools): void {
    if (this.#monitoring !== undefined) return;
    const { names, clock } = this.#options;
    const { signal } = this.#stop;
    this.#monitoring = (async () => {
      while (!signal.aborted) {
        await monitorLinks(tools, names, () => this.#touch(), signal).catch((error: unknown) => {
          this.#options.log.warn("Cannot follow changes of links and routes", { error: String(error) });
        });
        await clock.sleep(MONITOR_RESTART_MS, signal).catch(() => {});
        // Changes meanwhile are found by comparison.
        this.#touch();
      }
    })();
  }
}

/** Removes what the network has made on the host, but for the bridge of pods that still run. */
export async function removePodNetwork(
  { tools, nft, names, nodeFile, log }: Pick<PodNetworkOptions, "tools" | "nft" | "names" | "nodeFile" | "log">,
  confDir: string | undefined,
): Promise<void> {
  const attempt = async (what: string, work: () => Promise<void>): Promise<void> => {
    await work().catch((error: unknown) => log.error(`Cannot remove ${what} of the pod network`, error));
  };
  // Before the routes: pods that start now have another network, or none.
  if (confDir !== undefined) await attempt("the CNI configuration", () => removeConflist(confDir));
  if (tools !== undefined) {
    await attempt("routes", async () => {
      const state = await readKernelState(tools, names, [], new Set(FAMILIES));
      const { ip } = findChanges(undefined, state, names);
      const ports = await tools.ip([`link show master ${names.bridge}`]);
      // Fails if there is no bridge; a bridge without pods is removed.
      const isUnused = ports.stderr === "" && ports.stdout.replace(/[[\]{},\s]/g, "") === "";
      const commands = isUnused ? [...ip, `link delete ${names.bridge}`] : ip;
      if (commands.length === 0) return;
      const { stderr } = await tools.ip(commands);
      if (stderr !== "") throw new Error(stderr);
    });
  }
  for (const family of nft === undefined ? [] : FAMILIES) {
    await attempt("rules", async () => {
      await nft?.apply(masqueradeRules({ family, table: names.table, podCidrs: [], clusterCidrs: [] }));
    });
  }
  await attempt("the file", () => new NodeFile(nodeFile).remove());
}

function fingerprint(node: Node): string {
  const { name, podCidrs, addresses } = toNetworkNode(node);
  return `${name} ${podCidrs.join()} ${addresses.join()}`;
}
