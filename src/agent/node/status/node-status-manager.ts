/**
 * Maintains the Node object: registers it, renews its lease every quarter of the lease's duration, reports its
 * status when it changed, and at least every `statusReportMs`.
 */

import { leaseKind } from "../../../api/coordination/lease/kind.ts";
import type { Lease } from "../../../api/coordination/lease/schema.ts";
import { nodeKind } from "../../../api/core/node/kind.ts";
import type { Node, NodeStatus } from "../../../api/core/node/schema.ts";
import { StatusError } from "../../../api/status.ts";
import type { Client } from "../../../client/client.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { formatMicroTime } from "../../../schema/value/time.ts";
import type { RandomSource } from "../../../std/crypto/random.ts";
import type { Logger } from "../../../std/log/logger.ts";
import { Backoff } from "../../../std/time/backoff.ts";
import type { Clock } from "../../../std/time/clock.ts";
import type { NodeConfig } from "../../agent-config.ts";

export interface NodeStatusManagerOptions {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  readonly nodeName: string;
  readonly config: NodeConfig;
  /** Labels of the machine: operating system, architecture, host name. */
  readonly machineLabels: Readonly<Record<string, string>>;
  /** Collects the current status; `previous` has the conditions' transition times. */
  readonly status: (previous: NodeStatus | undefined) => Promise<NodeStatus>;
  readonly recordEvent: (type: "Normal" | "Warning", reason: string, message: string) => void;
  /** Whether a controller attaches and detaches the node's volumes; true when absent. */
  readonly controllerAttach?: boolean;
  /** Called when a new node is reported Ready for the first time; milliseconds since 1970. */
  readonly onFirstReady?:
    | ((times: { readonly registeringAt: number; readonly registeredAt: number }) => void)
    | undefined;
  readonly signal: AbortSignal;
}

/** Interval of status updates until the node is Ready for the first time. */
const STARTUP_INTERVAL_MS = 100;
/** Make the attach-detach controller manage the node's volumes; in Kubernetes' and svc's prefix. */
const ATTACH_ANNOTATIONS = [
  "volumes.kubernetes.io/controller-managed-attach-detach",
  "volumes.svc.io/controller-managed-attach-detach",
];
/** An external cloud provider removes it when it has initialized the node. */
const UNINITIALIZED = { key: "node.cloudprovider.kubernetes.io/uninitialized", value: "true", effect: "NoSchedule" };
/** From which of its addresses an external cloud provider is to choose. */
const PROVIDED_IPS = "alpha.kubernetes.io/provided-node-ip";
const LEASE_NAMESPACE = "kube-node-lease";
/** A quarter of the lease's duration. */
const RENEW_FRACTION = 0.25;

const events: Readonly<Record<string, readonly [whenTrue: string, whenFalse: string]>> = {
  Ready: ["NodeReady", "NodeNotReady"],
  MemoryPressure: ["NodeHasInsufficientMemory", "NodeHasSufficientMemory"],
  DiskPressure: ["NodeHasDiskPressure", "NodeHasNoDiskPressure"],
  PIDPressure: ["NodeHasInsufficientPID", "NodeHasSufficientPID"],
};

export class NodeStatusManager {
  readonly #options: NodeStatusManagerOptions;
  readonly #ready = Promise.withResolvers<void>();
  #reported: NodeStatus | undefined;
  #reportedAt = Number.NEGATIVE_INFINITY;
  #lease: Lease | undefined;
  #uid = "";
  #registeringAt: number | undefined;
  /** Undefined for a node that was registered before. */
  #registeredAt: number | undefined;
  #wake = new AbortController();

  constructor(options: NodeStatusManagerOptions) {
    this.#options = options;
    this.#ready.promise.catch(() => undefined);
  }

  /** Resolves when the node was first reported Ready; rejects when `run` ends before. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Runs until the signal aborts. Never rejects. */
  async run(): Promise<void> {
    const { config, signal } = this.#options;
    try {
      if (config.register) await this.#register();
      await Promise.all([this.#runStatusLoop(), this.#runLeaseLoop()]);
    } catch {
      // Only the signal ends the loops.
    }
    this.#ready.reject(signal.reason ?? new Error("the agent stops"));
  }

  async #register(): Promise<void> {
    const { clock, random, log, signal, nodeName } = this.#options;
    const backoff = new Backoff({ initialMs: 100, maxMs: 7_000 }, random);
    while (true) {
      signal.throwIfAborted();
      try {
        await this.#registerOnce();
        log.info("Registered node", { node: nodeName });
        return;
      } catch (error) {
        signal.throwIfAborted();
        log.warn("Cannot register node", { node: nodeName, error: String(error) });
        await clock.sleep(backoff.next(), signal);
      }
    }
  }

  async #registerOnce(): Promise<void> {
    const { clock, config, nodeName, machineLabels } = this.#options;
    this.#registeringAt ??= clock.now();
    const status = await this.#options.status(undefined);
    const labels = { ...machineLabels, ...config.labels };
    const isAttached = this.#options.controllerAttach !== false;
    const attach = isAttached ? Object.fromEntries(ATTACH_ANNOTATIONS.map((key) => [key, "true"])) : {};
    const annotations = { ...attach, ...provideNodeIps(config) };
    const taints = config.externalCloud ? [...config.taints, UNINITIALIZED] : config.taints;
    const wanted: Node = {
      kind: "Node",
      apiVersion: "v1",
      metadata: { name: nodeName, labels, annotations },
      spec: {
        ...(config.providerId === "" ? {} : { providerID: config.providerId }),
        ...(config.unschedulable ? { unschedulable: true } : {}),
        ...(taints.length === 0 ? {} : { taints: taints as NonNullable<Node["spec"]>["taints"] }),
      },
      status,
    };
    const found = config.readsNodeFirst ? await this.#findNode() : undefined;
    const existing = found ?? (await this.#create(wanted));
    if (existing === undefined) return;
    this.#uid = existing.metadata?.uid ?? "";
    this.#reported = existing.status;
    const removed = isAttached ? [] : ATTACH_ANNOTATIONS.map((key) => [key, null]);
    await this.#updateLabels(existing, labels, { ...annotations, ...Object.fromEntries(removed) });
  }

  async #findNode(): Promise<Node | undefined> {
    const { client, nodeName, signal } = this.#options;
    try {
      return await client.get(nodeKind, { name: nodeName }, signal);
    } catch (error) {
      if (error instanceof StatusError && error.status.code === 404) return undefined;
      throw error;
    }
  }

  /** Returns the node if it exists already. */
  async #create(wanted: Node): Promise<Node | undefined> {
    const { client, clock, nodeName, signal } = this.#options;
    try {
      const made = await client.create(nodeKind, wanted, signal);
      this.#uid = made.metadata?.uid ?? "";
      this.#registeredAt = clock.now();
      this.#recordEvents(undefined, wanted.status ?? {});
      return undefined;
    } catch (error) {
      if (!(error instanceof StatusError) || error.status.code !== 409) throw error;
      return await client.get(nodeKind, { name: nodeName }, signal);
    }
  }

  /** A node that was registered before keeps the labels of other clients. */
  async #updateLabels(
    found: Node,
    labels: Readonly<Record<string, string>>,
    annotations: Readonly<Record<string, string | null>>,
  ): Promise<void> {
    const stale = (wanted: Readonly<Record<string, string | null>>, has: Readonly<Record<string, string>> = {}) =>
      Object.entries(wanted).some(([key, value]) => (has[key] ?? null) !== value);
    const { metadata } = found;
    if (!stale(labels, metadata?.labels) && !stale(annotations, metadata?.annotations)) return;
    const patch = { metadata: { labels, annotations } };
    const { client, nodeName, signal } = this.#options;
    await client.patch(nodeKind, { name: nodeName }, "merge", patch, { signal });
  }

  async #runStatusLoop(): Promise<void> {
    const { clock, config, log, signal } = this.#options;
    let failing = false;
    let wasReady = false;
    while (!signal.aborted) {
      try {
        await this.#report();
        failing = false;
      } catch (error) {
        signal.throwIfAborted();
        if (!failing) log.warn("Cannot report node status", { error: String(error) });
        failing = true;
      }
      if (!wasReady && isReady(this.#reported)) {
        wasReady = true;
        this.#reportFirstReady();
        this.#ready.resolve();
      }
      const soon = this.#wake;
      const pause = clock.sleep(
        wasReady || failing ? config.statusUpdateMs : STARTUP_INTERVAL_MS,
        AbortSignal.any([signal, soon.signal]),
      );
      await pause.catch(() => signal.throwIfAborted());
      if (soon.signal.aborted) this.#wake = new AbortController();
    }
  }

  #reportFirstReady(): void {
    const [registeringAt, registeredAt] = [this.#registeringAt, this.#registeredAt];
    if (registeringAt === undefined || registeredAt === undefined) return;
    this.#options.onFirstReady?.({ registeringAt, registeredAt });
  }

  /** Updates the status without waiting for the interval. */
  reportNow(): void {
    this.#wake.abort();
  }

  async #report(): Promise<void> {
    const { client, clock, config, nodeName, signal } = this.#options;
    const before = this.#reported;
    const status = await this.#options.status(before);
    const due = clock.monotonic() - this.#reportedAt >= config.statusReportMs;
    if (!due && before !== undefined && deepEqual(withoutHeartbeats(before), withoutHeartbeats(status))) return;
    const patch = nodePatch(before, status);
    const patched = await client.patch(
      nodeKind,
      { name: nodeName },
      "strategic",
      { status: patch },
      {
        subresource: "status",
        signal,
      },
    );
    this.#uid = patched.metadata?.uid ?? this.#uid;
    this.#reported = status;
    this.#reportedAt = clock.monotonic();
    this.#recordEvents(before, status);
  }

  #recordEvents(before: NodeStatus | undefined, after: NodeStatus): void {
    const { nodeName, recordEvent: event } = this.#options;
    const boots = [before, after].map((status) => status?.nodeInfo?.bootID ?? "");
    if (boots[0] !== "" && boots[0] !== boots[1]) {
      event("Warning", "Rebooted", `Node ${nodeName} has been rebooted, boot id: ${boots[1]}`);
    }
    for (const condition of after.conditions ?? []) {
      const previous = before?.conditions?.find((each) => each.type === condition.type);
      const names = events[condition.type];
      if (names === undefined || previous?.status === condition.status) continue;
      // A node that was never ready is not announced as not ready.
      if (condition.type === "Ready" && previous === undefined && condition.status !== "True") continue;
      const reason = condition.status === "True" ? names[0] : names[1];
      event("Normal", reason, `Node ${nodeName} status is now: ${reason}`);
    }
    this.#reported = after;
  }

  async #runLeaseLoop(): Promise<void> {
    const { clock, config, random, log, signal } = this.#options;
    const renewMs = config.leaseDurationSeconds * 1000 * RENEW_FRACTION;
    let failing = false;
    while (!signal.aborted) {
      try {
        await this.#renewLease();
        failing = false;
      } catch (error) {
        signal.throwIfAborted();
        this.#lease = undefined;
        if (!failing) log.warn("Cannot renew node lease", { error: String(error) });
        failing = true;
      }
      await clock.sleep(renewMs * (1 + 0.04 * random.fraction()), signal);
    }
  }

  async #renewLease(): Promise<void> {
    const { client, clock, nodeName, config, signal } = this.#options;
    const name = { name: nodeName, namespace: LEASE_NAMESPACE };
    this.#lease ??= await client.get(leaseKind, name, signal).catch((error: unknown) => {
      if (error instanceof StatusError && error.status.code === 404) return undefined;
      throw error;
    });
    const spec = {
      holderIdentity: nodeName,
      leaseDurationSeconds: config.leaseDurationSeconds,
      renewTime: formatMicroTime(clock.now()),
    };
    if (this.#lease !== undefined) {
      const next = { ...this.#lease, spec: { ...this.#lease.spec, ...spec } };
      this.#lease = await client.update(leaseKind, next, signal);
      return;
    }
    const owner = { apiVersion: "v1", kind: "Node", name: nodeName, uid: this.#uid };
    const metadata = { ...name, ...(this.#uid === "" ? {} : { ownerReferences: [owner] }) };
    const lease: Lease = { kind: "Lease", apiVersion: "coordination.svc.io/v1", metadata, spec };
    this.#lease = await client.create(leaseKind, lease, signal);
  }
}

function isReady(status: NodeStatus | undefined): boolean {
  return status?.conditions?.some((each) => each.type === "Ready" && each.status === "True") === true;
}

/** The status without what changes with every update. */
function withoutHeartbeats(status: NodeStatus): unknown {
  const conditions = (status.conditions ?? []).map(({ lastHeartbeatTime: _, ...rest }) => rest);
  return { ...status, conditions };
}

/** A patch of the members that changed; it replaces the list of addresses. */
function nodePatch(before: NodeStatus | undefined, after: NodeStatus): Readonly<Record<string, unknown>> {
  const old = (before ?? {}) as Readonly<Record<string, unknown>>;
  const changed = Object.entries(after).filter(([key, value]) => key === "conditions" || !deepEqual(old[key], value));
  return Object.fromEntries(
    changed.map(([key, value]) =>
      key === "addresses" && old[key] !== undefined
        ? [key, [...(value as readonly unknown[]), { $patch: "replace" }]]
        : [key, value],
    ),
  );
}

function provideNodeIps({ externalCloud, ips }: NodeConfig): Readonly<Record<string, string>> {
  return externalCloud && ips.length > 0 ? { [PROVIDED_IPS]: ips.join(",") } : {};
}
