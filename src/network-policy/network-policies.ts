/**
 * Enforces the network policies of the pods of a node: keeps tables of nftables up to date with policies, namespaces
 * and pods.
 *
 *     informers, pods of this agent → PolicySet → one transaction of nft, the next one when it has ended
 *
 * Pods and namespaces are watched while there are policies.
 */
import { namespaceKind } from "../api/core/namespace/kind.ts";
import { podKind } from "../api/core/pod/kind.ts";
import type { Pod } from "../api/core/pod/schema.ts";
import { networkPolicyKind } from "../api/networking/network-policy/kind.ts";
import type { NetworkPolicy } from "../api/networking/network-policy/schema.ts";
import type { Informer } from "../client/informer/informer.ts";
import type { SharedInformers } from "../client/informer/shared-informers.ts";
import { Wakeup } from "../std/async/wakeup.ts";
import type { RandomSource } from "../std/crypto/random.ts";
import { Backoff } from "../std/time/backoff.ts";
import type { Clock } from "../std/time/clock.ts";
import { PodInformers } from "./pod-informers.ts";
import type { PolicyMetrics } from "./policy-metrics.ts";
import { type PolicyPod, toAddresses, toPolicyPod } from "./policy-pod.ts";
import { PolicySet } from "./policy-set.ts";
import { PolicyTables, type PolicyTablesOptions } from "./policy-tables.ts";
import { readSavedObjects, type SavedObjects } from "./saved-objects.ts";
import { SavedObjectsWriter } from "./saved-objects-writer.ts";

export interface NetworkPoliciesOptions extends PolicyTablesOptions {
  readonly nodeName: string;
  /** The bridges of the node's pods. */
  readonly bridges: readonly string[];
  /** Addresses of the node itself at which pods use the DNS of the cluster; policies see it as a pod of DNS_PEER. */
  readonly dnsAddresses: readonly string[];
  /** `keepPolicyFields` may transform its objects. */
  readonly informers: SharedInformers;
  /** Opens informers of pods and namespaces, with `keepPolicyFields`. */
  readonly openInformers: () => SharedInformers & AsyncDisposable;
  /** Has the objects of the last run. */
  readonly file: string;
  readonly metrics?: PolicyMetrics | undefined;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Called for what an operator should see. */
  readonly onProblem: (message: string) => void;
}

export interface NetworkPolicies {
  /**
   * A pod of this node has the addresses. Resolves when its policies are in effect, which the start of its containers
   * waits for, or when the signal aborts; undefined if they are already.
   */
  setPod(pod: Pod, ips: readonly string[], signal: AbortSignal): Promise<void> | undefined;
  /** The pod has left the node. */
  removePod(uid: string): void;
  /** Idempotent. */
  close(options: { readonly removeRules: boolean }): Promise<void>;
}

/** Where peers find the DNS of the cluster that the node itself serves: as CoreDNS's pods in other clusters. */
const DNS_PEER = {
  uid: "svc-dns",
  namespace: "kube-system",
  labels: { "k8s-app": "kube-dns" },
  ports: [
    { name: "dns", protocol: "udp", port: 53 },
    { name: "dns-tcp", protocol: "tcp", port: 53 },
  ],
} as const;

const UNKNOWN =
  "The API server has not listed network policies, namespaces and pods: pods start with the policies of the last run, " +
  "or without any if there were none";

/** Delays after a transaction that failed. */
const BACKOFF = { initialMs: 200, maxMs: 30_000, jitter: 0.1 };
/** Changes that follow one another within this time are one transaction. */
const BATCH_MS = 5;
/** How often the existence of the tables is checked. */
const CHECK_MS = 60_000;
/** How long a start waits for the API server before the objects of the last run apply, if it had policies. */
const SAVED_AFTER_MS = 10_000;
/** The same if it had none. */
const NONE_AFTER_MS = 2_000;

export function startNetworkPolicies(options: NetworkPoliciesOptions): NetworkPolicies {
  return new RunningPolicies(options);
}

interface LocalPod {
  /** The pod of its worker. */
  pod: Pod;
  readonly ips: readonly string[];
  /** When the agent saw the addresses first; milliseconds since 1970. */
  readonly since: number;
  /** The last change of the pod, see `#generation`. */
  generation: number;
}

/** What policies come from. */
type State =
  /** Neither the API server's nor saved ones are known. */
  | { readonly source: "unknown" }
  | { readonly source: "none" }
  | { readonly source: "saved" | "live"; readonly set: PolicySet; close(): void };

class RunningPolicies implements NetworkPolicies {
  readonly #options: NetworkPoliciesOptions;
  readonly #stop = new AbortController();
  readonly #policies: Informer<NetworkPolicy>;
  readonly #podInformers: PodInformers;
  readonly #tables: PolicyTables;
  readonly #writer: SavedObjectsWriter;
  /** By uid; bounded by the pods of the node. */
  readonly #local = new Map<string, LocalPod>();
  readonly #running: Promise<void>;
  /** Notified after each transaction. */
  readonly #enforced = new Wakeup();
  /** Counts the changes of this node's pods. */
  #generation = 0;
  /** Up to which the kernel has them. */
  #applied = 0;
  #saved: SavedObjects | undefined;
  #appliesSaved = false;
  #state: State = { source: "unknown" };
  #isDirty = false;
  #problem: string | undefined;
  #wake: (() => void) | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: NetworkPoliciesOptions) {
    this.#options = options;
    this.#policies = options.informers.of(networkPolicyKind);
    this.#podInformers = new PodInformers({ ...options, onSync: () => this.#touch() });
    this.#tables = new PolicyTables(options, (problem) => this.#report(problem));
    this.#writer = new SavedObjectsWriter({ ...options, collect: () => this.#collectSaved() });
    this.#running = this.#run();
  }

  setPod(pod: Pod, ips: readonly string[], signal: AbortSignal): Promise<void> | undefined {
    const uid = pod.metadata?.uid ?? "";
    if (uid === "" || ips.length === 0 || pod.spec?.hostNetwork === true) return undefined;
    const known = this.#local.get(uid);
    if (known === undefined || known.ips.join() !== ips.join()) {
      const since = this.#options.clock.now();
      this.#local.set(uid, { pod, ips, since, generation: ++this.#generation });
      this.#putPod(uid);
    } else if (known.pod !== pod) {
      known.pod = pod;
      this.#putPod(uid);
    }
    return this.#isEnforced(uid) ? undefined : this.#untilEnforced(uid, signal);
  }

  removePod(uid: string): void {
    if (this.#local.delete(uid)) this.#putPod(uid);
  }

  close({ removeRules }: { readonly removeRules: boolean }): Promise<void> {
    this.#closing ??= (async () => {
      this.#stop.abort(new DOMException("The network policies are closed", "AbortError"));
      await this.#running;
      await this.#writer.close();
      if ("close" in this.#state) this.#state.close();
      await this.#podInformers.close();
      this.#enforced.notify();
      if (removeRules) await this.#tables.remove();
    })();
    return this.#closing;
  }

  #isEnforced(uid: string): boolean {
    const generation = this.#local.get(uid)?.generation ?? 0;
    return this.#stop.signal.aborted || this.#state.source === "none" || generation <= this.#applied;
  }

  async #untilEnforced(uid: string, signal: AbortSignal): Promise<void> {
    this.#touch();
    while (!signal.aborted && !this.#isEnforced(uid)) await this.#enforced.wait(signal);
  }

  async #run(): Promise<void> {
    const { clock, log, random } = this.#options;
    const { signal } = this.#stop;
    const backoff = new Backoff(BACKOFF, random);
    try {
      await this.#readSaved();
      const unsubscribe = this.#policies.subscribe({
        put: (policy) => this.#putPolicy(policy),
        delete: (policy) => this.#deletePolicy(policy),
      });
      using _subscription = { [Symbol.dispose]: unsubscribe };
      const hasSaved = (this.#saved?.policies.length ?? 0) > 0;
      const timer = clock.timer(hasSaved ? SAVED_AFTER_MS : NONE_AFTER_MS, () => {
        this.#appliesSaved = true;
        if (this.#policies.isSynced) return;
        this.#report(UNKNOWN);
        this.#touch();
      });
      using _timer = { [Symbol.dispose]: () => timer.cancel() };
      this.#policies.synced.then(() => this.#touch()).catch(() => {});
      while (!signal.aborted) {
        if (!this.#isDirty) await this.#changed(signal);
        await clock.sleep(BATCH_MS, signal);
        try {
          if (this.#isDirty) await this.#sync();
          else if ("set" in this.#state && this.#state.set.isActive) await this.#tables.check();
          backoff.reset();
        } catch (error) {
          this.#options.metrics?.recordFailure();
          // What the kernel has is unknown: the next transaction replaces all of it.
          this.#tables.rebuild();
          this.#isDirty = true;
          this.#report(`Cannot enforce network policies: ${error instanceof Error ? error.message : String(error)}`);
          log.error("Failed to update the rules of network policies; retrying", error);
          await clock.sleep(backoff.next(), signal);
        }
      }
    } catch (error) {
      const isStopped = error instanceof DOMException && error.name === "AbortError";
      if (!signal.aborted && !isStopped) throw error;
    }
  }

  /** Reports each problem once, until it does not occur any more. */
  #report(problem: string | undefined): void {
    if (problem !== undefined && problem !== this.#problem) this.#options.onProblem(problem);
    this.#problem = problem;
  }

  async #readSaved(): Promise<void> {
    const { file, log } = this.#options;
    this.#saved = await readSavedObjects(file).catch((error: unknown) => {
      log.warn("Cannot read the network policies of the last run", { error: String(error) });
      return undefined;
    });
  }

  /** Resolves when something changes, and when the tables are to be checked. */
  async #changed(signal: AbortSignal): Promise<void> {
    const changed = new AbortController();
    this.#wake = () => changed.abort();
    await this.#options.clock.sleep(CHECK_MS, AbortSignal.any([signal, changed.signal])).catch(() => {});
    this.#wake = undefined;
    signal.throwIfAborted();
  }

  #touch(): void {
    this.#isDirty = true;
    this.#wake?.();
  }

  // Objects

  #putPolicy(policy: NetworkPolicy): void {
    if (this.#state.source === "live") this.#state.set.putPolicy(policy);
    this.#objectChanged();
  }

  #deletePolicy({ metadata }: NetworkPolicy): void {
    if (this.#state.source === "live") this.#state.set.deletePolicy(`${metadata?.namespace}/${metadata?.name}`);
    this.#objectChanged();
  }

  #objectChanged(): void {
    this.#touch();
    if (this.#state.source === "live" && !this.#stop.signal.aborted) this.#writer.schedule();
  }

  /** Puts the pod with what is known of it: addresses from the agent, all else from the API server. */
  #putPod(uid: string, listed?: Pod): void {
    if (!("set" in this.#state)) return;
    const { set } = this.#state;
    const local = this.#local.get(uid);
    const pod = this.#toPolicyPod(uid, listed ?? this.#find(local?.pod));
    if (!(pod === undefined ? set.deletePod(uid) : set.putPod(pod))) return;
    if (local !== undefined) local.generation = ++this.#generation;
    this.#objectChanged();
  }

  /** The pod as the API server has it. */
  #find(pod: Pod | undefined): Pod | undefined {
    const { name = "", namespace = "", uid } = pod?.metadata ?? {};
    const found = this.#podInformers.current?.of(podKind).get(name, namespace);
    return found?.metadata?.uid === uid ? found : undefined;
  }

  #toPolicyPod(uid: string, listed: Pod | undefined): PolicyPod | undefined {
    const { nodeName } = this.#options;
    const local = this.#local.get(uid);
    if (local === undefined) return listed && toPolicyPod(listed, nodeName);
    const phase = listed?.status?.phase;
    const pod = toPolicyPod({ ...(listed ?? local.pod), status: phase === undefined ? {} : { phase } }, nodeName);
    return pod && { ...pod, addresses: toAddresses(local.ips), isLocal: true, since: local.since };
  }

  // State

  /** Changes to the newest policies that are known. */
  #updateState(): void {
    const { source } = this.#state;
    if (!this.#policies.isSynced) {
      if (!this.#appliesSaved || source !== "unknown") return;
      if (this.#saved === undefined || this.#saved.policies.length === 0) this.#state = { source: "none" };
      else this.#state = this.#loadSaved(this.#saved);
      return;
    }
    if (this.#policies.size === 0) {
      if (source === "none") return;
      if ("close" in this.#state) this.#state.close();
      this.#state = { source: "none" };
      this.#tables.rebuild();
      this.#forgetSaved();
      this.#podInformers.closeLater();
      return;
    }
    const informers = this.#podInformers.open();
    if (source === "live") return;
    if (informers === undefined) {
      // Pods that start now wait for their policies.
      if (source === "none") {
        this.#state = { source: "unknown" };
        this.#applied = 0;
      }
      return;
    }
    if ("close" in this.#state) this.#state.close();
    this.#saved = undefined;
    this.#state = this.#follow(informers);
    this.#tables.rebuild();
    this.#writer.schedule();
  }

  /** No policies are left. */
  #forgetSaved(): void {
    const hadPolicies = (this.#saved?.policies.length ?? 0) > 0 || this.#writer.hasWritten;
    this.#saved = undefined;
    this.#writer.cancel();
    if (hadPolicies) this.#writer.writeNow();
  }

  #collectSaved(): SavedObjects | undefined {
    const live = this.#state.source === "live" ? this.#podInformers.current : undefined;
    return (
      live && {
        policies: [...this.#policies.list()],
        namespaces: [...live.of(namespaceKind).list()],
        pods: [...live.of(podKind).list()],
      }
    );
  }

  #newSet(): PolicySet {
    const { table, families, bridges, dnsAddresses } = this.#options;
    const nodeServices = toAddresses(dnsAddresses);
    const set = new PolicySet({ table, families, bridges, nodeServices });
    if (nodeServices.length > 0)
      set.putPod({ ...DNS_PEER, addresses: nodeServices, isLocal: false, since: Number.POSITIVE_INFINITY });
    return set;
  }

  #loadSaved({ policies, namespaces, pods }: SavedObjects): State {
    this.#options.log.warn("The API server is away: the network policies of the last run apply", {
      policies: policies.length,
    });
    const set = this.#newSet();
    const { nodeName } = this.#options;
    for (const { metadata } of namespaces) set.putNamespace(metadata?.name ?? "", metadata?.labels ?? {});
    for (const object of pods) {
      // Pods of this node come from its agent.
      const pod = toPolicyPod(object, nodeName);
      if (pod !== undefined && !pod.isLocal) set.putPod(pod);
    }
    this.#putLocalPods(set);
    for (const policy of policies) set.putPolicy(policy);
    this.#tables.rebuild();
    return { source: "saved", set, close: () => {} };
  }

  #putLocalPods(set: PolicySet): void {
    for (const [uid, local] of this.#local) {
      const pod = this.#toPolicyPod(uid, this.#find(local.pod));
      local.generation = ++this.#generation;
      if (pod !== undefined) set.putPod(pod);
    }
  }

  #follow(informers: SharedInformers): State {
    const set = this.#newSet();
    const close = (): void => {
      for (const unsubscribe of subscriptions) unsubscribe();
    };
    const state: State = { source: "live", set, close };
    // The subscriptions call back at once for what there is.
    this.#state = state;
    const subscriptions = [
      informers.of(namespaceKind).subscribe({
        put: ({ metadata }) => {
          set.putNamespace(metadata?.name ?? "", metadata?.labels ?? {});
          this.#objectChanged();
        },
        delete: ({ metadata }) => {
          set.deleteNamespace(metadata?.name ?? "");
          this.#objectChanged();
        },
      }),
      informers.of(podKind).subscribe({
        put: (pod) => this.#putPod(pod.metadata?.uid ?? "", pod),
        delete: ({ metadata }) => this.#putPod(metadata?.uid ?? ""),
      }),
    ];
    this.#putLocalPods(set);
    for (const policy of this.#policies.list()) set.putPolicy(policy);
    return state;
  }

  // The kernel

  async #sync(): Promise<void> {
    const { clock } = this.#options;
    this.#isDirty = false;
    this.#updateState();
    const state = this.#state;
    if (state.source === "unknown") return;
    const began = clock.monotonic();
    const generation = this.#generation;
    if ("set" in state && state.set.isActive) await this.#tables.install(state.set);
    else {
      if ("set" in state) state.set.takeChanges();
      // While the API server is away, the rules of the last run stay.
      if (this.#policies.isSynced) await this.#tables.remove();
    }
    this.#applied = generation;
    this.#options.metrics?.recordSync((clock.monotonic() - began) / 1000);
    this.#enforced.notify();
  }
}
