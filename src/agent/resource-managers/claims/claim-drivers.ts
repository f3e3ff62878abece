/** The drivers of Dynamic Resource Allocation that are registered on this node, and calls of them. */
import type { GrpcMethod } from "../../../schema/protobuf/grpc-method.ts";
import type { HistogramFamily, MetricRegistry } from "../../../std/metrics/metrics.ts";
import type { Clock } from "../../../std/time/clock.ts";
import type { Plugin, PluginHandler } from "../../plugins/plugin-watcher.ts";
import { UnixChannel } from "../../plugins/unix-channel.ts";
import { RuntimeError } from "../../runtime/runtime.ts";
import { type DriverClaim, type DriverDevice, type DriverService, driverServices } from "./messages.ts";

export interface ClaimDriversOptions {
  readonly clock: Clock;
  readonly registry: MetricRegistry;
  /** A driver was registered: pods may wait for it. */
  readonly onRegistered: (name: string) => void;
  /** A driver is gone, and no other socket of it is registered. */
  readonly onDeregistered: (name: string) => void;
}

interface Driver {
  readonly endpoint: string;
  readonly service: DriverService;
  readonly channel: UnixChannel;
}

/** Kubernetes' timeout of a call. */
const CALL_MS = 45_000;
/** Seconds, each bound by the same factor larger, as Go computes it. */
export const DURATION_BUCKETS = [
  0.1, 0.1534127404634391, 0.23535468936502524, 0.36106407876409946, 0.5539182980610752, 0.849781240983936,
  1.303672689737678, 1.9999999999999993, 3.0682548092687805, 4.7070937873005025, 7.221281575281985, 11.078365961221499,
  16.995624819678714, 26.07345379475354, 39.99999999999997,
];

export class ClaimDrivers implements PluginHandler, Disposable {
  readonly #options: ClaimDriversOptions;
  readonly #seconds: HistogramFamily;
  /** By name; as many as there are sockets. */
  readonly #drivers = new Map<string, Driver>();

  constructor(options: ClaimDriversOptions) {
    this.#options = options;
    this.#seconds = options.registry.histogram(
      {
        name: "dra_grpc_operations_duration_seconds",
        help: "Duration in seconds of the DRA gRPC operations",
        stability: "ALPHA",
        labels: ["driver_name", "method_name", "grpc_status_code"],
      },
      DURATION_BUCKETS,
    );
  }

  validate({ name, versions }: Plugin): void {
    if (versions.length > 0) return;
    const why = "empty list of supported gRPC services (aka supported versions)";
    throw new Error(`invalid versions of plugin ${name}: ${why}`);
  }

  async register({ name, endpoint, versions }: Plugin): Promise<void> {
    const [, found] = Object.entries(driverServices).find(([version]) => versions.includes(version)) ?? [];
    // Drivers of releases before there were names of services report versions such as 1.0.0.
    const service = found ?? driverServices["v1alpha4.Node"];
    this.#drivers.get(name)?.channel[Symbol.dispose]();
    this.#drivers.set(name, { endpoint, service, channel: new UnixChannel(endpoint, this.#options.clock) });
    this.#options.onRegistered(name);
  }

  /** A driver that has registered again on another socket stays. */
  async deregister({ name, endpoint }: Plugin): Promise<void> {
    const driver = this.#drivers.get(name);
    if (driver?.endpoint !== endpoint) return;
    driver.channel[Symbol.dispose]();
    this.#drivers.delete(name);
    this.#options.onDeregistered(name);
  }

  /** The prepared devices, by UID of the claim. Rejects when a claim could not be prepared. */
  async prepare(
    name: string,
    claims: readonly DriverClaim[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, readonly DriverDevice[]>> {
    const answers = await this.#call(name, "prepare", claims, signal);
    return new Map(answers.map(([uid, { devices = [] }]) => [uid, devices]));
  }

  /** Rejects when a claim could not be released. */
  async unprepare(name: string, claims: readonly DriverClaim[], signal: AbortSignal): Promise<void> {
    await this.#call(name, "unprepare", claims, signal);
  }

  [Symbol.dispose](): void {
    for (const { channel } of this.#drivers.values()) channel[Symbol.dispose]();
    this.#drivers.clear();
  }

  async #call(
    name: string,
    operation: keyof DriverService,
    claims: readonly DriverClaim[],
    signal: AbortSignal,
  ): Promise<readonly (readonly [uid: string, answer: ClaimResult])[]> {
    const driver = this.#drivers.get(name);
    if (driver === undefined) {
      const why = `plugin name ${name} not found in the list of registered DRA plugins`;
      const what = operation === "prepare" ? "failed to get gRPC client for driver" : "get gRPC client for DRA driver";
      throw new Error(`${what} ${name}: ${why}`);
    }
    const method = driver.service[operation];
    const rpc = method.path.split("/")[2] ?? "";
    const answer = await this.#measure(name, method, () =>
      driver.channel.call(method, { claims }, { timeoutMs: CALL_MS, signal }),
    ).catch((error: unknown) => {
      signal.throwIfAborted();
      throw new Error(`${rpc} failed: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
    });
    const answers: readonly (readonly [string, ClaimResult])[] = Object.entries(answer.claims ?? {});
    for (const [uid, { error = "" }] of answers) {
      const claim = claims.find((each) => each.uid === uid);
      if (claim === undefined) throw new Error(`${rpc} returned result for unknown claim UID ${uid}`);
      if (error !== "") throw new Error(`${rpc} failed for claim ${claim.namespace}/${claim.name}: ${error}`);
    }
    const missing = claims.length - answers.length;
    if (missing !== 0) throw new Error(`${rpc} left out ${missing} claims`);
    return answers;
  }

  async #measure<T>(name: string, { path }: GrpcMethod, work: () => Promise<T>): Promise<T> {
    const { clock } = this.#options;
    const began = clock.monotonic();
    let code = "OK";
    try {
      return await work();
    } catch (error) {
      code = error instanceof RuntimeError ? error.code : "Unknown";
      throw error;
    } finally {
      this.#seconds.with(name, path, code).observe((clock.monotonic() - began) / 1000);
    }
  }
}

interface ClaimResult {
  readonly devices?: readonly DriverDevice[] | undefined;
  readonly error?: string | undefined;
}
