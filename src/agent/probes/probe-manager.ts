/** Runs the probes of every container and remembers their verdicts. */
import type { Container } from "../../api/core/container.ts";
import type { Pod } from "../../api/core/pod.ts";
import type { Probe } from "../../api/core/probe.ts";
import type { Clock } from "../../std/clock.ts";
import type { PodEvents } from "../pods/pod-events.ts";
import { allContainers, type ContainerRole, isSidecar, podUid } from "../pods/pod-fields.ts";
import type { Observation, ObservedContainer } from "../runtime/observation.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { execAction, httpAction, type Outcome, tcpAction } from "./actions.ts";

export type ProbeKind = "startup" | "liveness" | "readiness";

export interface ProbeManagerOptions {
  readonly runtime: Runtime;
  readonly clock: Clock;
  readonly events: PodEvents;
  readonly userAgent: string;
  /** Called when a verdict changed. */
  readonly onResult: (uid: string) => void;
}

interface Prober {
  readonly uid: string;
  readonly kind: ProbeKind;
  readonly stop: AbortController;
  passed: boolean | undefined;
}

const kinds = ["startup", "liveness", "readiness"] as const;

export class ProbeManager {
  readonly #options: ProbeManagerOptions;
  /** By container id and kind: at most three a container that runs. */
  readonly #probers = new Map<string, Prober>();

  constructor(options: ProbeManagerOptions) {
    this.#options = options;
  }

  /** Starts probes of containers that run, stops those of containers that do not. */
  sync(pod: Pod, observation: Observation): void {
    const uid = podUid(pod);
    const running = new Map(
      observation.containers.filter((each) => each.state === "running").map((each) => [each.name, each]),
    );
    const wanted = new Set<string>();
    for (const { spec, role } of allContainers(pod)) {
      const container = running.get(spec.name);
      if (container === undefined || (role === "initContainers" && !isSidecar(spec))) continue;
      for (const kind of kinds) {
        const probe = probeOf(spec, kind);
        if (probe === undefined) continue;
        const key = `${container.id}/${kind}`;
        wanted.add(key);
        if (!this.#probers.has(key)) this.#start(key, { pod, spec, role, kind, probe, container, observation });
      }
    }
    for (const [key, prober] of this.#probers) {
      if (prober.uid === uid && !wanted.has(key)) this.#drop(key, prober);
    }
  }

  /** Ends a pod's probes; `readiness` goes on while the pod terminates. */
  stop(uid: string, which: readonly ProbeKind[] = kinds): void {
    for (const [key, prober] of this.#probers) {
      if (prober.uid !== uid || !which.includes(prober.kind)) continue;
      prober.stop.abort();
      if (which.includes("readiness")) this.#probers.delete(key);
    }
  }

  started(container: Container, id: string): boolean {
    return container.startupProbe === undefined || this.#probers.get(`${id}/startup`)?.passed === true;
  }

  ready(container: Container, id: string): boolean {
    return container.readinessProbe === undefined || this.#probers.get(`${id}/readiness`)?.passed === true;
  }

  /** What wants the container ended. */
  health(id: string): "ok" | "liveness" | "startup" {
    if (this.#probers.get(`${id}/startup`)?.passed === false) return "startup";
    return this.#probers.get(`${id}/liveness`)?.passed === false ? "liveness" : "ok";
  }

  #drop(key: string, prober: Prober): void {
    prober.stop.abort();
    this.#probers.delete(key);
  }

  #start(key: string, target: Target): void {
    const prober: Prober = {
      uid: podUid(target.pod),
      kind: target.kind,
      stop: new AbortController(),
      passed: undefined,
    };
    this.#probers.set(key, prober);
    this.#run(prober, target).catch(() => undefined);
  }

  /** Ends by abort, or once a verdict is final: a startup probe that passed, a probe that wants the container ended. */
  async #run(prober: Prober, target: Target): Promise<void> {
    const { clock, onResult } = this.#options;
    const { probe, container, spec, kind } = target;
    const signal = prober.stop.signal;
    const periodMs = (probe.periodSeconds ?? 10) * 1000;
    const began = container.startedAt + (probe.initialDelaySeconds ?? 0) * 1000;
    await clock.sleep(Math.max(0, began - clock.now()), signal);
    let run = { success: undefined as boolean | undefined, count: 0 };
    while (!signal.aborted) {
      if (kind === "startup" || this.started(spec, container.id)) {
        const outcome = await this.#probe(target, signal);
        if (outcome.result !== "unknown") {
          const success = outcome.result !== "failure";
          run = run.success === success ? { success, count: run.count + 1 } : { success, count: 1 };
          const threshold = success ? (probe.successThreshold ?? 1) : (probe.failureThreshold ?? 3);
          if (run.count >= threshold && prober.passed !== success) {
            prober.passed = success;
            onResult(prober.uid);
          }
          const final =
            kind === "startup" ? prober.passed !== undefined : kind === "liveness" && prober.passed === false;
          if (final) return;
        }
      }
      await clock.sleep(periodMs, signal);
    }
  }

  async #probe(target: Target, signal: AbortSignal): Promise<Outcome> {
    const { events } = this.#options;
    const { pod, spec, role, kind } = target;
    const outcome = await this.#ask(target, signal);
    signal.throwIfAborted();
    const label = kind.slice(0, 1).toUpperCase() + kind.slice(1);
    const say = (reason: string, text: string): void =>
      events.container(pod, { role, name: spec.name }, "Warning", reason, `${label} probe ${text}`);
    if (outcome.result === "failure") say("Unhealthy", `failed: ${outcome.output}`);
    if (outcome.result === "unknown") say("Unhealthy", `errored and resulted in unknown state: ${outcome.output}`);
    if (outcome.result === "warning") say("ProbeWarning", `warning: ${outcome.output}`);
    return outcome;
  }

  async #ask(target: Target, signal: AbortSignal): Promise<Outcome> {
    const { probe, container, spec, observation } = target;
    const timeoutSeconds = probe.timeoutSeconds ?? 1;
    if (probe.exec !== undefined) {
      const command = probe.exec.command ?? [];
      return execAction({ runtime: this.#options.runtime, containerId: container.id, command, timeoutSeconds, signal });
    }
    const network = {
      container: spec,
      podIp: observation.sandboxes[0]?.ips[0] ?? "127.0.0.1",
      timeoutMs: timeoutSeconds * 1000,
      clock: this.#options.clock,
      signal,
      userAgent: this.#options.userAgent,
    };
    if (probe.httpGet !== undefined) return httpAction(probe.httpGet, network);
    if (probe.tcpSocket !== undefined) return tcpAction(probe.tcpSocket, network);
    return { result: "unknown", output: "gRPC probes are not supported by this agent" };
  }
}

interface Target {
  readonly pod: Pod;
  readonly spec: Container;
  readonly role: ContainerRole;
  readonly kind: ProbeKind;
  readonly probe: Probe;
  readonly container: ObservedContainer;
  readonly observation: Observation;
}

function probeOf(spec: Container, kind: ProbeKind): Probe | undefined {
  if (kind === "startup") return spec.startupProbe;
  return kind === "liveness" ? spec.livenessProbe : spec.readinessProbe;
}
