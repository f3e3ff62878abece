/** Runs one probe of one container periodically and holds its result. */

import type { Probe } from "../../api/core/container/probe.ts";
import type { Container } from "../../api/core/container/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { Clock } from "../../std/time/clock.ts";
import { expand } from "../pods/environment/expansion.ts";
import type { PodEventRecorder } from "../pods/pod-events.ts";
import { type ContainerRole, podUid } from "../pods/pod-fields.ts";
import type { Observation, ObservedContainer } from "../runtime/observation.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { connectTcp, type NetworkProbeOptions, type ProbeResult, runExec } from "./actions.ts";
import { checkGrpcHealth } from "./grpc-action.ts";
import { probeHttp } from "./http-action.ts";

export type ProbeKind = "startup" | "liveness" | "readiness";

export interface ProbeTarget {
  readonly pod: Pod;
  readonly spec: Container;
  readonly role: ContainerRole;
  readonly kind: ProbeKind;
  readonly probe: Probe;
  readonly container: ObservedContainer;
  readonly observation: Observation;
  /** When the pod was first synced, on the monotonic clock. */
  readonly began: number;
}

export interface ProberOptions {
  readonly runtime: Runtime;
  readonly clock: Clock;
  readonly events: PodEventRecorder;
  readonly userAgent: string;
  /** The address of the node and of pods on its network; undefined: none is known. */
  readonly nodeIp?: (() => string | undefined) | undefined;
  /** Whether an exec probe fails at its timeout; true when absent. */
  readonly execProbeTimeout?: boolean | undefined;
  /** False until the startup probe has passed. */
  readonly mayProbe: () => boolean;
  /** Called when the result changed. */
  readonly onChange: () => void;
  /** Called after each probe. */
  readonly onResult?: ((target: ProbeTarget, outcome: ProbeResult["outcome"], seconds: number) => void) | undefined;
}

/** Minimum time between the start of a container and its first probe; Kubernetes' kubelet has a similar delay. */
const INITIAL_DELAY_MS = 500;
/** Time between the first readiness probe, if it fails, and the second. */
const SECOND_PROBE_MS = 1_000;
/** Attempts of a probe whose result is unknown, as in Kubernetes. */
const ATTEMPTS_MAX = 3;

/**
 * Startup and liveness probes run at multiples of their period since the pod was first synced. The readiness probe runs
 * as early as possible, soon again if that fails, and then in its period.
 */
export class Prober {
  readonly uid: string;
  readonly kind: ProbeKind;
  /** Undefined until a threshold is reached. */
  passed: boolean | undefined;
  readonly #target: ProbeTarget;
  readonly #options: ProberOptions;
  readonly #stop = new AbortController();
  #wake: (() => void) | undefined;

  constructor(target: ProbeTarget, options: ProberOptions) {
    this.uid = podUid(target.pod);
    this.kind = target.kind;
    this.#target = target;
    this.#options = options;
    this.passed = restoreResult(target);
    this.#run().catch(() => undefined);
  }

  stop(): void {
    this.#stop.abort();
  }

  /** Probes at once instead of at the next tick. */
  probeNow(): void {
    this.#wake?.();
  }

  /** Ends by abort, or when the result is final: a passed startup probe, a failed startup or liveness probe. */
  async #run(): Promise<void> {
    const { clock, mayProbe } = this.#options;
    const { probe, kind } = this.#target;
    if (kind === "startup" && this.passed !== undefined) return;
    const signal = this.#stop.signal;
    const periodMs = (probe.periodSeconds ?? 10) * 1000;
    const first = this.#firstAt(periodMs);
    let anchor = first.anchor;
    let mayRepeatSoon = kind === "readiness";
    let due = first.at;
    await this.#sleepUntil(due);
    let run: ResultRun = { success: undefined, count: 0 };
    while (!signal.aborted) {
      // Timers may fire a little early; the tick that they were set for still counts as over.
      const at = Math.max(clock.monotonic(), due);
      let next = nextTick(at, anchor, periodMs);
      if (mayProbe()) {
        run = appendResult(run, await this.#probe(signal));
        this.#updateResult(run);
        if (kind === "startup" ? this.passed !== undefined : kind === "liveness" && this.passed === false) return;
        if (mayRepeatSoon && this.passed !== true) {
          next = at + Math.min(SECOND_PROBE_MS, periodMs);
          anchor = next;
        }
        mayRepeatSoon = false;
      }
      due = next;
      // `probeNow` restarts the period.
      if (await this.#sleepUntil(due)) {
        anchor = clock.monotonic();
        due = anchor;
      }
    }
  }

  /** Times on the monotonic clock: of the first probe, and of the start of the first period. */
  #firstAt(periodMs: number): { readonly at: number; readonly anchor: number } {
    const { clock } = this.#options;
    const { probe, container, kind, began } = this.#target;
    const now = clock.monotonic();
    // Negative if the clock was set back.
    const age = Math.max(0, clock.now() - container.startedAt);
    const settled = now + Math.max(0, INITIAL_DELAY_MS - age);
    const allowed = now + Math.max(0, (probe.initialDelaySeconds ?? 0) * 1000 - age);
    // Spreads the probes of containers that ran before the agent started over the period.
    const spread = age > periodMs ? (Number.parseInt(container.id.slice(0, 8), 16) || 0) / 2 ** 32 : 0;
    const anchor = kind === "readiness" ? settled : began + spread * periodMs;
    const earliest = Math.max(settled, allowed);
    const onTick = nextTick(earliest - 1, anchor, periodMs);
    return { at: kind === "readiness" && allowed <= settled ? settled : onTick, anchor };
  }

  /** Resolves with whether `probeNow` ended it. Rejects when stopped. */
  async #sleepUntil(at: number): Promise<boolean> {
    const { clock } = this.#options;
    const woken = new AbortController();
    const signal = this.#stop.signal;
    this.#wake = () => woken.abort();
    try {
      await clock.sleep(Math.max(0, at - clock.monotonic()), AbortSignal.any([woken.signal, signal]));
    } catch (error) {
      if (signal.aborted) throw error;
    }
    this.#wake = undefined;
    return woken.signal.aborted;
  }

  #updateResult(run: ResultRun): void {
    const { probe } = this.#target;
    if (run.success === undefined || this.passed === run.success) return;
    const threshold = run.success ? (probe.successThreshold ?? 1) : (probe.failureThreshold ?? 3);
    if (run.count < threshold) return;
    this.passed = run.success;
    this.#options.onChange();
  }

  async #probe(signal: AbortSignal): Promise<ProbeResult> {
    const { pod, spec, role, kind } = this.#target;
    const { clock } = this.#options;
    const began = clock.monotonic();
    let result = await this.#runHandler(signal);
    for (let tries = 1; tries < ATTEMPTS_MAX && result.outcome === "unknown" && !signal.aborted; tries++) {
      result = await this.#runHandler(signal);
    }
    signal.throwIfAborted();
    this.#options.onResult?.(this.#target, result.outcome, (clock.monotonic() - began) / 1000);
    const label = kind.slice(0, 1).toUpperCase() + kind.slice(1);
    const record = (reason: string, text: string): void =>
      this.#options.events.recordContainerEvent(
        pod,
        { role, name: spec.name },
        "Warning",
        reason,
        `${label} probe ${text}`,
      );
    if (result.outcome === "failure") record("Unhealthy", `failed: ${result.output}`);
    if (result.outcome === "unknown") record("Unhealthy", `errored and resulted in unknown state: ${result.output}`);
    if (result.outcome === "warning") record("ProbeWarning", `warning: ${result.output}`);
    return result;
  }

  #runHandler(signal: AbortSignal): Promise<ProbeResult> {
    const { probe, container, spec, observation } = this.#target;
    const { runtime, clock, userAgent, execProbeTimeout: failsAtTimeout } = this.#options;
    const timeoutSeconds = probe.timeoutSeconds ?? 1;
    if (probe.exec !== undefined) {
      const command = expandCommand(probe.exec.command ?? [], spec);
      return runExec({ runtime, containerId: container.id, command, timeoutSeconds, failsAtTimeout, signal });
    }
    // A pod on the host's network has the node's address.
    const podIp = observation.sandboxes[0]?.ips[0] ?? this.#options.nodeIp?.() ?? "127.0.0.1";
    const network: NetworkProbeOptions = {
      container: spec,
      podIp,
      timeoutMs: timeoutSeconds * 1000,
      clock,
      signal,
      userAgent,
    };
    if (probe.httpGet !== undefined) return probeHttp(probe.httpGet, network);
    if (probe.tcpSocket !== undefined) return connectTcp(probe.tcpSocket, network);
    if (probe.grpc !== undefined) return checkGrpcHealth(probe.grpc, network);
    return Promise.resolve({ outcome: "unknown", output: "missing probe handler" });
  }
}

/** As in Kubernetes, with the values of the spec: variables that have a source are empty. */
function expandCommand(command: readonly string[], { env = [] }: Container): readonly string[] {
  const values = new Map(env.map(({ name, value = "" }) => [name, value]));
  return command.map((text) => expand(text, (name) => values.get(name)));
}

/** Number of equal results in a row. */
interface ResultRun {
  readonly success: boolean | undefined;
  readonly count: number;
}

/** An unknown result does not change the run. */
function appendResult(run: ResultRun, { outcome: result }: ProbeResult): ResultRun {
  if (result === "unknown") return run;
  const success = result !== "failure";
  return { success, count: run.success === success ? run.count + 1 : 1 };
}

/** The first multiple of the period since `anchor` after `at`, with tolerance for rounding. */
function nextTick(at: number, anchor: number, periodMs: number): number {
  return anchor + (Math.floor((at - anchor + 0.5) / periodMs) + 1) * periodMs;
}

/** The result that an earlier agent wrote to the pod's status for this container. */
function restoreResult({ pod, kind, container }: ProbeTarget): true | undefined {
  const { initContainerStatuses = [], containerStatuses = [] } = pod.status ?? {};
  const all = [...initContainerStatuses, ...containerStatuses];
  const status = all.find(({ containerID }) => containerID?.endsWith(`//${container.id}`));
  if (status?.state?.running === undefined) return undefined;
  return (kind === "startup" && status.started === true) || (kind === "readiness" && status.ready) ? true : undefined;
}
