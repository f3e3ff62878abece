/** A pod's sandboxes and containers in the runtime: CRI's responses with defaults set and times in milliseconds. */
import type { ContainerStatus } from "./cri/container-status.ts";
import type { PodSandbox, PodSandboxStatus } from "./cri/sandbox.ts";
import { isNotFound, isUnreachable, type Runtime, RuntimeError } from "./runtime.ts";

/** Labels and annotations that Kubernetes' tools (crictl, log collectors) read. */
export const labels = {
  podName: "io.kubernetes.pod.name",
  podNamespace: "io.kubernetes.pod.namespace",
  podUid: "io.kubernetes.pod.uid",
  containerName: "io.kubernetes.container.name",
} as const;

export const annotations = {
  hash: "io.kubernetes.container.hash",
  restartCount: "io.kubernetes.container.restartCount",
  terminationMessagePath: "io.kubernetes.container.terminationMessagePath",
  terminationMessagePolicy: "io.kubernetes.container.terminationMessagePolicy",
  preStopHandler: "io.kubernetes.container.preStopHandler",
  ports: "io.kubernetes.container.ports",
  terminationGracePeriod: "io.kubernetes.pod.terminationGracePeriod",
  deletionGracePeriod: "io.kubernetes.pod.deletionGracePeriod",
  /** Of this project: delay of the container's next restart in milliseconds, for an agent that restarts. */
  restartDelay: "io.svc.container.restartDelay",
} as const;

export interface ObservedSandbox {
  readonly id: string;
  readonly attempt: number;
  readonly ready: boolean;
  readonly createdAt: number;
  readonly hostNetwork: boolean;
  /** Empty for the host's network. */
  readonly ips: readonly string[];
}

export interface ObservedMount {
  readonly containerPath: string;
  readonly hostPath: string;
  /** Whether mounts below it are read-only too. */
  readonly recursiveReadOnly?: boolean;
}

export interface ObservedContainer {
  readonly id: string;
  readonly name: string;
  readonly sandboxId: string;
  readonly state: "created" | "running" | "exited" | "unknown";
  /** Milliseconds since 1970; 0 if it did not happen. */
  readonly createdAt: number;
  readonly startedAt: number;
  readonly finishedAt: number;
  readonly exitCode: number;
  readonly reason: string;
  readonly message: string;
  readonly image: string;
  readonly imageId: string;
  readonly hash: string;
  readonly restartCount: number;
  readonly logPath: string;
  /** The user of its first process; undefined if the runtime does not report it. */
  readonly user?: ContainerStatus["user"];
  /** `SIGTERM`; undefined if the runtime does not report it. */
  readonly stopSignal?: Exclude<ContainerStatus["stopSignal"], "RUNTIME_DEFAULT">;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly mounts: readonly ObservedMount[];
}

/** One pod in the runtime. Both lists are sorted, newest first. */
export interface Observation {
  readonly sandboxes: readonly ObservedSandbox[];
  readonly containers: readonly ObservedContainer[];
}

export const emptyObservation: Observation = { sandboxes: [], containers: [] };

/** The parts of an observation that a listing contains too; equal digests mean that nothing changed. */
export function digestOf({ sandboxes, containers }: Observation): string {
  const parts = [
    ...sandboxes.map(({ id, ready }) => sandboxDigest(id, ready)),
    ...containers.map(({ id, state }) => containerDigest(id, state)),
  ];
  return parts.sort().join(" ");
}

export function sandboxDigest(id: string, ready: boolean): string {
  return `${id}=${ready ? "ready" : "stopped"}`;
}

export function containerDigest(id: string, state: ObservedContainer["state"]): string {
  return `${id}=${state}`;
}

/** Nanoseconds to milliseconds. Some runtimes return Go's zero time, which is before 1970. */
function toMilliseconds(nanoseconds: bigint | undefined): number {
  return nanoseconds === undefined || nanoseconds <= 0n ? 0 : Number(nanoseconds / 1_000_000n);
}

export const containerStates = {
  CONTAINER_CREATED: "created",
  CONTAINER_RUNNING: "running",
  CONTAINER_EXITED: "exited",
  CONTAINER_UNKNOWN: "unknown",
} as const;

export function toObservedContainer(status: ContainerStatus, sandboxId: string): ObservedContainer {
  const values = status.annotations ?? {};
  return {
    id: status.id ?? "",
    name: status.labels?.[labels.containerName] ?? status.metadata?.name ?? "",
    sandboxId,
    state: containerStates[status.state ?? "CONTAINER_CREATED"] ?? "unknown",
    createdAt: toMilliseconds(status.createdAt),
    startedAt: toMilliseconds(status.startedAt),
    finishedAt: toMilliseconds(status.finishedAt),
    exitCode: status.exitCode ?? 0,
    reason: status.reason ?? "",
    message: status.message ?? "",
    image: status.image?.image ?? "",
    imageId: status.imageRef ?? "",
    hash: values[annotations.hash] ?? "",
    restartCount: Number.parseInt(values[annotations.restartCount] ?? "0", 10) || 0,
    logPath: status.logPath ?? "",
    ...(status.user?.linux === undefined ? {} : { user: status.user }),
    ...(status.stopSignal === undefined || status.stopSignal === "RUNTIME_DEFAULT"
      ? {}
      : { stopSignal: status.stopSignal }),
    labels: status.labels ?? {},
    annotations: values,
    mounts: (status.mounts ?? []).map((mount) => ({
      containerPath: mount.containerPath ?? "",
      hostPath: mount.hostPath ?? "",
      ...(mount.recursiveReadOnly === true ? { recursiveReadOnly: true } : {}),
    })),
  };
}

export function toObservedSandbox(status: PodSandboxStatus): ObservedSandbox {
  const network = status.network;
  const ips =
    network?.ip === undefined ? [] : [network.ip, ...(network.additionalIps ?? []).map((each) => each.ip ?? "")];
  return {
    id: status.id ?? "",
    attempt: status.metadata?.attempt ?? 0,
    ready: (status.state ?? "SANDBOX_READY") === "SANDBOX_READY",
    createdAt: toMilliseconds(status.createdAt),
    hostNetwork: status.linux?.namespaces?.options?.network === "NODE",
    ips: ips.filter((ip) => ip !== ""),
  };
}

/**
 * Observes one pod in the runtime. `previous` saves calls: an exited container never changes. Omits a sandbox or
 * container that is removed between the listing and its inspection.
 */
export async function observe(
  runtime: Runtime,
  uid: string,
  previous: Observation = emptyObservation,
  signal?: AbortSignal,
): Promise<Observation> {
  const filter = { labelSelector: { [labels.podUid]: uid } };
  const [listedSandboxes, listedContainers] = await Promise.all([
    runtime.listPodSandbox({ filter }, signal),
    runtime.listContainers({ filter }, signal),
  ]);
  const sandboxes = await Promise.all(
    (listedSandboxes.items ?? []).map((item) => inspectSandbox(runtime, item, previous, signal)),
  );
  const exited = new Map(previous.containers.filter((each) => each.state === "exited").map((each) => [each.id, each]));
  const containers = await Promise.all(
    (listedContainers.containers ?? []).map(async (item) => {
      const before = exited.get(item.id ?? "");
      if (before !== undefined) {
        return before;
      }
      const response = await undefinedIfNotFound(runtime.containerStatus({ containerId: item.id }, signal));
      return response?.status === undefined ? undefined : toObservedContainer(response.status, item.podSandboxId ?? "");
    }),
  );
  return {
    sandboxes: sortNewestFirst(sandboxes, ({ attempt }) => attempt),
    containers: sortNewestFirst(containers, ({ restartCount }) => restartCount),
  };
}

/** Ids of a sandbox, or of a container in it, that the agent has created. */
export interface CreatedIds {
  readonly sandboxId: string;
  readonly containerId?: string;
}

/** Adds to the previous observation what was created since; requests nothing else from the runtime. */
export async function observeCreated(
  runtime: Runtime,
  created: readonly CreatedIds[],
  previous: Observation,
  signal?: AbortSignal,
): Promise<Observation> {
  const sandboxes = created.filter(({ containerId }) => containerId === undefined);
  const containers = created.filter(({ containerId }) => containerId !== undefined);
  const [newSandboxes, newContainers] = await Promise.all([
    Promise.all(
      sandboxes.map(async ({ sandboxId }) => {
        const response = await undefinedIfNotFound(runtime.podSandboxStatus({ podSandboxId: sandboxId }, signal));
        return response?.status && toObservedSandbox(response.status);
      }),
    ),
    Promise.all(
      containers.map(async ({ sandboxId, containerId = "" }) => {
        const response = await undefinedIfNotFound(runtime.containerStatus({ containerId }, signal));
        return response?.status && toObservedContainer(response.status, sandboxId);
      }),
    ),
  ]);
  const ids = new Set([...newSandboxes, ...newContainers].map((each) => each?.id));
  const isOld = ({ id }: { readonly id: string }): boolean => !ids.has(id);
  return {
    sandboxes: sortNewestFirst([...newSandboxes, ...previous.sandboxes.filter(isOld)], ({ attempt }) => attempt),
    containers: sortNewestFirst(
      [...newContainers, ...previous.containers.filter(isOld)],
      ({ restartCount }) => restartCount,
    ),
  };
}

async function inspectSandbox(
  runtime: Runtime,
  item: PodSandbox,
  previous: Observation,
  signal: AbortSignal | undefined,
): Promise<ObservedSandbox | undefined> {
  const ready = (item.state ?? "SANDBOX_READY") === "SANDBOX_READY";
  const before = previous.sandboxes.find((each) => each.id === item.id);
  if (before !== undefined && before.ready === ready) {
    return before;
  }
  let now: ObservedSandbox;
  try {
    const response = await undefinedIfNotFound(runtime.podSandboxStatus({ podSandboxId: item.id }, signal));
    if (response?.status === undefined) return undefined;
    now = toObservedSandbox(response.status);
  } catch (error) {
    // Runtimes may fail to report a stopped sandbox, for instance because its network is gone. It can be removed.
    if (ready || !(error instanceof RuntimeError) || isUnreachable(error)) throw error;
    now = { ...fromListing(item), hostNetwork: before?.hostNetwork ?? false };
  }
  // A stopped sandbox has lost its addresses; the pod's status keeps them.
  return now.ips.length === 0 && before !== undefined ? { ...now, ips: before.ips } : now;
}

/** A stopped sandbox, from the listing alone. */
function fromListing({ id = "", metadata, createdAt }: PodSandbox): Omit<ObservedSandbox, "hostNetwork"> {
  return { id, attempt: metadata?.attempt ?? 0, ready: false, createdAt: toMilliseconds(createdAt), ips: [] };
}

async function undefinedIfNotFound<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (isNotFound(error)) {
      return undefined;
    }
    throw error;
  }
}

/** Sorts by the attempt first: creation times go back when the clock is set. */
function sortNewestFirst<T extends { readonly createdAt: number }>(
  items: readonly (T | undefined)[],
  count: (item: T) => number,
): readonly T[] {
  return items.filter((item) => item !== undefined).sort((a, b) => count(b) - count(a) || b.createdAt - a.createdAt);
}
