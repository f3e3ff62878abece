/** Measures the calls of the container runtime, with the names and labels of kubelet's metrics. */
import { exponentialBuckets } from "../../std/metrics/buckets.ts";
import type { CounterFamily, HistogramFamily, MetricRegistry } from "../../std/metrics/metrics.ts";
import type { Clock } from "../../std/time/clock.ts";
import { type ImageService, type Runtime, RuntimeError } from "../runtime/runtime.ts";
import { secondsBuckets } from "./buckets.ts";

/** Kubernetes' exponential buckets: 5 ms, each 2.5 times the one before. */
const OPERATION_BUCKETS = exponentialBuckets(0.005, 2.5, 14);

export class RuntimeMetrics {
  readonly #clock: Clock;
  readonly #calls: CounterFamily;
  readonly #errors: CounterFamily;
  readonly #durations: HistogramFamily;
  readonly #sandboxDurations: HistogramFamily;
  readonly #sandboxErrors: CounterFamily;
  readonly #startedPods: CounterFamily;
  readonly #podErrors: CounterFamily;
  readonly #startedContainers: CounterFamily;
  readonly #containerErrors: CounterFamily;
  /** Types of containers that are created and not started, by id. */
  readonly #created = new Map<string, string>();

  constructor(registry: MetricRegistry, clock: Clock) {
    this.#clock = clock;
    const stability = "ALPHA";
    this.#calls = registry.counter({
      name: "kubelet_runtime_operations_total",
      help: "Cumulative number of runtime operations by operation type.",
      stability,
      labels: ["operation_type"],
    });
    this.#errors = registry.counter({
      name: "kubelet_runtime_operations_errors_total",
      help: "Cumulative number of runtime operation errors by operation type.",
      stability,
      labels: ["operation_type"],
    });
    this.#durations = registry.histogram(
      {
        name: "kubelet_runtime_operations_duration_seconds",
        help: "Duration in seconds of runtime operations. Broken down by operation type.",
        stability,
        labels: ["operation_type"],
      },
      OPERATION_BUCKETS,
    );
    this.#sandboxDurations = registry.histogram(
      {
        name: "kubelet_run_podsandbox_duration_seconds",
        help: "Duration in seconds of the run_podsandbox operations. Broken down by RuntimeClass.Handler.",
        stability,
        labels: ["runtime_handler"],
      },
      secondsBuckets,
    );
    this.#sandboxErrors = registry.counter({
      name: "kubelet_run_podsandbox_errors_total",
      help: "Cumulative number of the run_podsandbox operation errors by RuntimeClass.Handler.",
      stability,
      labels: ["runtime_handler"],
    });
    this.#startedPods = registry.counter({
      name: "kubelet_started_pods_total",
      help: "Cumulative number of pods started",
      stability,
    });
    this.#podErrors = registry.counter({
      name: "kubelet_started_pods_errors_total",
      help: "Cumulative number of errors when starting pods",
      stability,
    });
    this.#startedContainers = registry.counter({
      name: "kubelet_started_containers_total",
      help: "Cumulative number of containers started",
      stability,
      labels: ["container_type"],
    });
    this.#containerErrors = registry.counter({
      name: "kubelet_started_containers_errors_total",
      help: "Cumulative number of errors when starting containers",
      stability,
      labels: ["code", "container_type"],
    });
    this.#startedPods.with();
    this.#podErrors.with();
  }

  /** The role of a pod's container; set when the pods exist. */
  findRole: (podUid: string | undefined, name: string | undefined) => string | undefined = () => undefined;

  measureRuntime(runtime: Runtime): Runtime {
    const measured = this.#measureAll(runtime);
    return {
      ...measured,
      runPodSandbox: (request, signal) => this.#measureSandbox(measured, request, signal),
      createContainer: (request, signal) => this.#countCreation(measured, request, signal),
      startContainer: (request, signal) => this.#countStart(measured, request, signal),
    };
  }

  measureImages(images: ImageService): ImageService {
    return this.#measureAll(images);
  }

  #measureAll<Service extends Runtime | ImageService>(service: Service): Service {
    const calls = Object.entries(service).map(([name, call]) => {
      const operation = toOperationType(name);
      const measured = (...parameters: readonly unknown[]): Promise<unknown> =>
        this.#measure(operation, () => (call as (...all: readonly unknown[]) => Promise<unknown>)(...parameters));
      return [name, measured] as const;
    });
    return { ...service, ...Object.fromEntries(calls) };
  }

  async #measure(operation: string, call: () => Promise<unknown>): Promise<unknown> {
    const began = this.#clock.monotonic();
    this.#calls.with(operation).inc();
    try {
      return await call();
    } catch (error) {
      // An aborted call is no failure of the runtime.
      if (error instanceof RuntimeError && error.code !== "CANCELLED") this.#errors.with(operation).inc();
      throw error;
    } finally {
      this.#durations.with(operation).observe((this.#clock.monotonic() - began) / 1000);
    }
  }

  async #countCreation(runtime: Runtime, ...[request, signal]: Parameters<Runtime["createContainer"]>) {
    const type = toContainerType(this.findRole(request.sandboxConfig?.metadata?.uid, request.config?.metadata?.name));
    this.#startedContainers.with(type).inc();
    try {
      const response = await runtime.createContainer(request, signal);
      this.#created.set(response.containerId ?? "", type);
      return response;
    } catch (error) {
      this.#containerErrors.with("CreateContainerError", type).inc();
      throw error;
    }
  }

  async #countStart(runtime: Runtime, ...[request, signal]: Parameters<Runtime["startContainer"]>) {
    const { containerId = "" } = request;
    const type = this.#created.get(containerId) ?? toContainerType(undefined);
    this.#created.delete(containerId);
    try {
      return await runtime.startContainer(request, signal);
    } catch (error) {
      this.#containerErrors.with("RunContainerError", type).inc();
      throw error;
    }
  }

  async #measureSandbox(runtime: Runtime, ...[request, signal]: Parameters<Runtime["runPodSandbox"]>) {
    const began = this.#clock.monotonic();
    const handler = request.runtimeHandler ?? "";
    this.#startedPods.with().inc();
    try {
      return await runtime.runPodSandbox(request, signal);
    } catch (error) {
      this.#sandboxErrors.with(handler).inc();
      this.#podErrors.with().inc();
      throw error;
    } finally {
      this.#sandboxDurations.with(handler).observe((this.#clock.monotonic() - began) / 1000);
    }
  }
}

/** `container`, `init_container` or `ephemeral_container` */
function toContainerType(role: string | undefined): string {
  if (role === "initContainers") return "init_container";
  return role === "ephemeralContainers" ? "ephemeral_container" : "container";
}

/** `runPodSandbox` → `run_podsandbox` */
function toOperationType(name: string): string {
  return name
    .replace("PodSandbox", "Podsandbox")
    .replace("updateContainerResources", "updateContainer")
    .replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
