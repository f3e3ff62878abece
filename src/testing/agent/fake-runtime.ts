/**
 * An in-memory container runtime for tests. It conforms to `Runtime`; a "program" is only an exit code and a duration
 * on a fake clock. Calls can be made to fail or to block.
 */

import type { Container } from "../../agent/runtime/cri/container.ts";
import type { ContainerStatus } from "../../agent/runtime/cri/container-status.ts";
import type { Image } from "../../agent/runtime/cri/image.ts";
import type { PodSandbox, PodSandboxConfig } from "../../agent/runtime/cri/sandbox.ts";
import type {
  ContainerStats,
  MetricDescriptor,
  PodSandboxMetrics,
  PodSandboxStats,
} from "../../agent/runtime/cri/stats.ts";
import { type ImageService, type Runtime, RuntimeError } from "../../agent/runtime/runtime.ts";
import type { Clock, Timer } from "../../std/time/clock.ts";

/** What a started container does. */
export interface Program {
  /** Undefined: runs forever. */
  readonly exitAfterMs?: number;
  readonly exitCode?: number;
  /** Milliseconds until it exits after a stop signal; `Infinity`: never; undefined: at once. */
  readonly stopAfterMs?: number;
  /** Exit code after a stop signal. */
  readonly stopCode?: number;
  /** Reason that the runtime reports: `OOMKilled`. */
  readonly reason?: string;
}

interface FakeSandbox {
  readonly id: string;
  readonly config: PodSandboxConfig;
  readonly createdAt: bigint;
  readonly ip: string;
  ready: boolean;
}

interface FakeContainer {
  readonly id: string;
  readonly sandboxId: string;
  status: ContainerStatus;
  program: Program;
  timer: Timer | undefined;
}

export type FakeCall = { readonly method: string; readonly request: unknown };

interface MeasuredPods {
  readonly stats: readonly PodSandboxStats[];
  readonly descriptors: readonly MetricDescriptor[];
  readonly podMetrics: readonly PodSandboxMetrics[];
}

function requireMeasured(measured: MeasuredPods | undefined): MeasuredPods {
  if (measured === undefined) throw new RuntimeError("UNIMPLEMENTED", "unknown method");
  return measured;
}

export class FakeRuntime {
  readonly runtime: Runtime;
  readonly images: ImageService;
  /** Every call in order, for assertions. */
  readonly calls: FakeCall[] = [];
  /** Present images, by reference. */
  readonly present = new Map<string, Image>();
  /** The directory of images; undefined: the runtime does not report it. */
  imageDirectory: string | undefined;
  /** Images that can be pulled; other pulls fail with `NOT_FOUND`. */
  readonly pullable = new Map<string, Image>();
  /** Programs by container name. */
  readonly programs = new Map<string, Program | ((attempt: number) => Program)>();
  /** Where the streams of `exec`, `attach` and `portForward` are served; nowhere by default. */
  streamingUrl = "http://127.0.0.1:1";
  /** Results of `execSync`, by the command joined with spaces. */
  readonly execs = new Map<string, { exitCode: number; stdout?: string; stderr?: string }>();
  readonly sandboxes = new Map<string, FakeSandbox>();
  readonly containers = new Map<string, FakeContainer>();
  /** Results of `listContainerStats`, by container id. */
  readonly stats = new Map<string, ContainerStats>();
  /** What the runtime measures of pods; undefined: it does not implement the calls. */
  measured: MeasuredPods | undefined;
  /** What `runtimeConfig` reports. */
  cgroupDriver: "SYSTEMD" | "CGROUPFS" | undefined;
  /** The condition `NetworkReady` of `status`. */
  networkReady = true;
  /** Calls that are blocked by `hold` or wait for a container to stop. */
  pendingCalls = 0;
  readonly #clock: Clock;
  readonly #faults: { readonly method: string; error: Error; left: number }[] = [];
  readonly #holds = new Map<string, Promise<void>>();
  #ids = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.runtime = this.#runtime();
    this.images = this.#images();
    this.addImage("busybox:1");
  }

  addImage(reference: string, extra: Partial<Image> = {}): void {
    this.present.set(reference, { id: `sha256:${reference}`, repoTags: [reference], size: 1000n, ...extra });
  }

  /** The next `times` calls of `method` fail. */
  fail(method: string, error: Error = new RuntimeError("UNKNOWN", `${method} fails on demand`), times = 1): void {
    this.#faults.push({ method, error, left: times });
  }

  /** Blocks calls of `method` until the returned function is called. */
  hold(method: string): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#holds.set(method, promise);
    return () => {
      this.#holds.delete(method);
      resolve();
    };
  }

  /** Containers with this name, oldest first. */
  containersNamed(name: string): readonly FakeContainer[] {
    return [...this.containers.values()].filter((each) => each.status.metadata?.name === name);
  }

  /** Ends a running container, as when its process dies. */
  exit(id: string, exitCode: number, reason?: string): void {
    const container = this.containers.get(id);
    if (container === undefined || container.status.state !== "CONTAINER_RUNNING") return;
    container.timer?.cancel();
    container.timer = undefined;
    container.status = {
      ...container.status,
      state: "CONTAINER_EXITED",
      finishedAt: this.#nanoseconds(),
      exitCode,
      reason: reason ?? (exitCode === 0 ? "Completed" : "Error"),
    };
  }

  #nanoseconds(): bigint {
    return BigInt(Math.round(this.#clock.now())) * 1_000_000n;
  }

  #id(): string {
    this.#ids += 1;
    return `id${this.#ids}`.padEnd(16, "0");
  }

  async #enter(method: string, request: unknown, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    this.calls.push({ method, request });
    const held = this.#holds.get(method);
    if (held !== undefined) {
      this.pendingCalls += 1;
      await Promise.race([held, aborted(signal)]).finally(() => {
        this.pendingCalls -= 1;
      });
    }
    const fault = this.#faults.find((each) => each.method === method && each.left > 0);
    if (fault !== undefined) {
      fault.left -= 1;
      throw fault.error;
    }
  }

  #container(id: string | undefined): FakeContainer {
    const container = this.containers.get(id ?? "");
    if (container === undefined) throw new RuntimeError("NOT_FOUND", `container "${id}" not found`);
    return container;
  }

  #start(container: FakeContainer): void {
    if (container.status.state !== undefined && container.status.state !== "CONTAINER_CREATED") {
      throw new RuntimeError("UNKNOWN", `container "${container.id}" is not in created state`);
    }
    const name = container.status.metadata?.name ?? "";
    const found = this.programs.get(name) ?? {};
    container.program = typeof found === "function" ? found(container.status.metadata?.attempt ?? 0) : found;
    container.status = { ...container.status, state: "CONTAINER_RUNNING", startedAt: this.#nanoseconds() };
    const { exitAfterMs, exitCode = 0, reason } = container.program;
    if (exitAfterMs !== undefined) {
      container.timer = this.#clock.timer(exitAfterMs, () => this.exit(container.id, exitCode, reason));
    }
  }

  async #stop(id: string | undefined, timeoutSeconds: number, signal: AbortSignal | undefined): Promise<void> {
    const container = this.containers.get(id ?? "");
    if (container === undefined || container.status.state !== "CONTAINER_RUNNING") return;
    const { stopAfterMs = 0, stopCode = 0 } = container.program;
    const exitsInTime = stopAfterMs <= timeoutSeconds * 1000 && timeoutSeconds > 0;
    const wait = exitsInTime ? stopAfterMs : timeoutSeconds * 1000;
    if (wait > 0) {
      this.pendingCalls += 1;
      await this.#clock.sleep(wait, signal).finally(() => {
        this.pendingCalls -= 1;
      });
    }
    this.exit(container.id, exitsInTime ? stopCode : 137);
  }

  #list(): readonly Container[] {
    return [...this.containers.values()].map(({ id, sandboxId, status }) => ({
      id,
      podSandboxId: sandboxId,
      metadata: status.metadata,
      image: status.image,
      imageRef: status.imageRef,
      state: status.state,
      createdAt: status.createdAt,
      labels: status.labels,
      annotations: status.annotations,
    }));
  }

  #runtime(): Runtime {
    return {
      version: async (request, signal) => {
        await this.#enter("version", request, signal);
        return { version: "0.1.0", runtimeName: "fake", runtimeVersion: "1.0.0", runtimeApiVersion: "v1" };
      },
      status: async (request, signal) => {
        await this.#enter("status", request, signal);
        return {
          status: {
            conditions: [
              { type: "RuntimeReady", status: true },
              {
                type: "NetworkReady",
                status: this.networkReady,
                ...(this.networkReady
                  ? {}
                  : { reason: "NetworkPluginNotReady", message: "cni plugin not initialized" }),
              },
            ],
          },
        };
      },
      runPodSandbox: async (request, signal) => {
        await this.#enter("runPodSandbox", request, signal);
        const config = request.config ?? {};
        const { name, namespace, uid, attempt = 0 } = config.metadata ?? {};
        reserve(
          [...this.sandboxes.values()].map((each) => each.config.metadata),
          config.metadata,
          `sandbox name "${name}_${namespace}_${uid}_${attempt}"`,
        );
        const id = this.#id();
        const ip = config.linux?.securityContext?.namespaceOptions?.network === "NODE" ? "" : `10.0.0.${this.#ids}`;
        this.sandboxes.set(id, { id, config, createdAt: this.#nanoseconds(), ip, ready: true });
        return { podSandboxId: id };
      },
      runtimeConfig: async (request, signal) => {
        await this.#enter("runtimeConfig", request, signal);
        return this.cgroupDriver === undefined ? {} : { linux: { cgroupDriver: this.cgroupDriver } };
      },
      updateRuntimeConfig: async (request, signal) => {
        await this.#enter("updateRuntimeConfig", request, signal);
        return {};
      },
      stopPodSandbox: async (request, signal) => {
        await this.#enter("stopPodSandbox", request, signal);
        const sandbox = this.sandboxes.get(request.podSandboxId ?? "");
        if (sandbox === undefined) return {};
        for (const container of this.containers.values()) {
          if (container.sandboxId === sandbox.id) this.exit(container.id, 137);
        }
        sandbox.ready = false;
        return {};
      },
      removePodSandbox: async (request, signal) => {
        await this.#enter("removePodSandbox", request, signal);
        const id = request.podSandboxId ?? "";
        for (const container of this.containers.values()) {
          if (container.sandboxId !== id) continue;
          container.timer?.cancel();
          this.containers.delete(container.id);
        }
        this.sandboxes.delete(id);
        return {};
      },
      podSandboxStatus: async (request, signal) => {
        await this.#enter("podSandboxStatus", request, signal);
        const sandbox = this.sandboxes.get(request.podSandboxId ?? "");
        if (sandbox === undefined) throw new RuntimeError("NOT_FOUND", `sandbox "${request.podSandboxId}" not found`);
        const options = sandbox.config.linux?.securityContext?.namespaceOptions;
        return {
          status: {
            id: sandbox.id,
            metadata: sandbox.config.metadata,
            state: sandbox.ready ? "SANDBOX_READY" : "SANDBOX_NOTREADY",
            createdAt: sandbox.createdAt,
            network: sandbox.ready && sandbox.ip !== "" ? { ip: sandbox.ip } : {},
            linux: { namespaces: { options } },
            labels: sandbox.config.labels,
            annotations: sandbox.config.annotations,
          },
        };
      },
      listPodSandbox: async (request, signal) => {
        await this.#enter("listPodSandbox", request, signal);
        const items: readonly PodSandbox[] = [...this.sandboxes.values()].map((each) => ({
          id: each.id,
          metadata: each.config.metadata,
          state: each.ready ? ("SANDBOX_READY" as const) : ("SANDBOX_NOTREADY" as const),
          createdAt: each.createdAt,
          labels: each.config.labels,
          annotations: each.config.annotations,
        }));
        return { items: items.filter((item) => matchesLabels(item.labels, request.filter?.labelSelector)) };
      },
      createContainer: async (request, signal) => {
        await this.#enter("createContainer", request, signal);
        const sandbox = this.sandboxes.get(request.podSandboxId ?? "");
        if (sandbox === undefined) throw new RuntimeError("NOT_FOUND", `sandbox "${request.podSandboxId}" not found`);
        const config = request.config ?? {};
        const { name, attempt = 0 } = config.metadata ?? {};
        const beside = [...this.containers.values()].filter((each) => each.sandboxId === sandbox.id);
        reserve(
          beside.map((each) => each.status.metadata),
          config.metadata,
          `container name "${name}_${sandbox.id}_${attempt}"`,
        );
        const id = this.#id();
        const status: ContainerStatus = {
          id,
          metadata: config.metadata,
          state: "CONTAINER_CREATED",
          createdAt: this.#nanoseconds(),
          image: config.image,
          imageRef: config.image?.image,
          labels: config.labels,
          annotations: config.annotations,
          mounts: config.mounts,
          logPath: `${sandbox.config.logDirectory}/${config.logPath}`,
        };
        this.containers.set(id, { id, sandboxId: sandbox.id, status, program: {}, timer: undefined });
        return { containerId: id };
      },
      startContainer: async (request, signal) => {
        await this.#enter("startContainer", request, signal);
        this.#start(this.#container(request.containerId));
        return {};
      },
      stopContainer: async (request, signal) => {
        await this.#enter("stopContainer", request, signal);
        await this.#stop(request.containerId, Number(request.timeout ?? 0n), signal);
        return {};
      },
      removeContainer: async (request, signal) => {
        await this.#enter("removeContainer", request, signal);
        this.containers.get(request.containerId ?? "")?.timer?.cancel();
        this.containers.delete(request.containerId ?? "");
        return {};
      },
      listContainers: async (request, signal) => {
        await this.#enter("listContainers", request, signal);
        const all = this.#list();
        return { containers: all.filter((item) => matchesLabels(item.labels, request.filter?.labelSelector)) };
      },
      containerStatus: async (request, signal) => {
        await this.#enter("containerStatus", request, signal);
        return { status: this.#container(request.containerId).status };
      },
      updateContainerResources: async (request, signal) => {
        await this.#enter("updateContainerResources", request, signal);
        this.#container(request.containerId);
        return {};
      },
      listPodSandboxStats: async (request, signal) => {
        await this.#enter("listPodSandboxStats", request, signal);
        return { stats: [...requireMeasured(this.measured).stats] };
      },
      listMetricDescriptors: async (request, signal) => {
        await this.#enter("listMetricDescriptors", request, signal);
        return { descriptors: [...requireMeasured(this.measured).descriptors] };
      },
      listPodSandboxMetrics: async (request, signal) => {
        await this.#enter("listPodSandboxMetrics", request, signal);
        return { podMetrics: [...requireMeasured(this.measured).podMetrics] };
      },
      listContainerStats: async (request, signal) => {
        await this.#enter("listContainerStats", request, signal);
        return { stats: [...this.stats.values()] };
      },
      reopenContainerLog: async (request, signal) => {
        await this.#enter("reopenContainerLog", request, signal);
        return {};
      },
      execSync: async (request, signal) => {
        await this.#enter("execSync", request, signal);
        this.#container(request.containerId);
        const result = this.execs.get((request.cmd ?? []).join(" ")) ?? { exitCode: 0 };
        return {
          exitCode: result.exitCode,
          stdout: Buffer.from(result.stdout ?? ""),
          stderr: Buffer.from(result.stderr ?? ""),
        };
      },
      exec: async (request, signal) => {
        await this.#enter("exec", request, signal);
        this.#container(request.containerId);
        return { url: `${this.streamingUrl}/exec/token` };
      },
      attach: async (request, signal) => {
        await this.#enter("attach", request, signal);
        this.#container(request.containerId);
        return { url: `${this.streamingUrl}/attach/token` };
      },
      portForward: async (request, signal) => {
        await this.#enter("portForward", request, signal);
        return { url: `${this.streamingUrl}/portforward/token` };
      },
      checkpointContainer: async (request, signal) => {
        await this.#enter("checkpointContainer", request, signal);
        this.#container(request.containerId);
        return {};
      },
    };
  }

  #images(): ImageService {
    return {
      listImages: async (request, signal) => {
        await this.#enter("listImages", request, signal);
        return { images: [...this.present.values()] };
      },
      imageStatus: async (request, signal) => {
        await this.#enter("imageStatus", request, signal);
        const image = this.present.get(request.image?.image ?? "");
        return image === undefined ? {} : { image };
      },
      pullImage: async (request, signal) => {
        await this.#enter("pullImage", request, signal);
        const reference = request.image?.image ?? "";
        const image = this.pullable.get(reference);
        if (image === undefined) throw new RuntimeError("NOT_FOUND", `failed to pull and unpack image "${reference}"`);
        this.present.set(reference, image);
        return { imageRef: image.id };
      },
      removeImage: async (request, signal) => {
        await this.#enter("removeImage", request, signal);
        const wanted = request.image?.image ?? "";
        for (const [name, { id }] of this.present) if (name === wanted || id === wanted) this.present.delete(name);
        return {};
      },
      imageFsInfo: async (request, signal) => {
        await this.#enter("imageFsInfo", request, signal);
        const mountpoint = this.imageDirectory;
        return { imageFilesystems: mountpoint === undefined ? [] : [{ fsId: { mountpoint } }] };
      },
    };
  }
}

interface AttemptName {
  readonly name?: string | undefined;
  readonly uid?: string | undefined;
  readonly attempt?: number | undefined;
}

/** Like real runtimes, rejects a second object of the same name and attempt until the first is removed. */
function reserve(taken: readonly (AttemptName | undefined)[], wanted: AttemptName | undefined, what: string): void {
  const isSame = (each: AttemptName | undefined): boolean =>
    each?.name === wanted?.name && each?.uid === wanted?.uid && (each?.attempt ?? 0) === (wanted?.attempt ?? 0);
  if (taken.some(isSame)) throw new RuntimeError("UNKNOWN", `failed to reserve ${what}: it is reserved already`);
}

function matchesLabels(
  labels: Readonly<Record<string, string>> | undefined,
  selector: Readonly<Record<string, string>> | undefined,
): boolean {
  return Object.entries(selector ?? {}).every(([key, value]) => labels?.[key] === value);
}

function aborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    if (signal?.aborted === true) reject(signal.reason);
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
