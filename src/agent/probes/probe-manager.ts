/** Runs a prober for each probe of each running container, and caches the results. */

import type { Probe } from "../../api/core/container/probe.ts";
import type { Container } from "../../api/core/container/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { PodEventRecorder } from "../pods/pod-events.ts";
import { allContainers, isSidecar, podUid } from "../pods/pod-fields.ts";
import type { Observation } from "../runtime/observation.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { type ProbeKind, Prober, type ProberOptions, type ProbeTarget } from "./prober.ts";

export interface ProbeManagerOptions {
  readonly runtime: Runtime;
  readonly clock: Clock;
  readonly events: PodEventRecorder;
  readonly userAgent: string;
  readonly nodeIp?: ProberOptions["nodeIp"];
  /** Whether an exec probe fails at its timeout; true when absent. */
  readonly execProbeTimeout?: boolean | undefined;
  /** Called when a result changed. */
  readonly onChange: (uid: string) => void;
  readonly onResult?: ProberOptions["onResult"];
}

const PROBE_KINDS = ["startup", "liveness", "readiness"] as const;

export class ProbeManager {
  readonly #options: ProbeManagerOptions;
  /** By container id and kind: at most three per running container. */
  readonly #probers = new Map<string, Prober>();
  /** When each pod was first synced, on the monotonic clock: the periods of its probes start then. */
  readonly #began = new Map<string, number>();

  constructor(options: ProbeManagerOptions) {
    this.#options = options;
  }

  /** Starts probes of running containers and stops those of other containers. */
  sync(pod: Pod, observation: Observation): void {
    const uid = podUid(pod);
    const began = this.#began.get(uid) ?? this.#options.clock.monotonic();
    this.#began.set(uid, began);
    const running = new Map(
      observation.containers.filter((each) => each.state === "running").map((each) => [each.name, each]),
    );
    const desired = new Set<string>();
    for (const { spec, role } of allContainers(pod)) {
      const container = running.get(spec.name);
      if (container === undefined || (role === "initContainers" && !isSidecar(spec))) continue;
      for (const kind of PROBE_KINDS) {
        const probe = getProbe(spec, kind);
        if (probe === undefined) continue;
        const key = `${container.id}/${kind}`;
        desired.add(key);
        if (!this.#probers.has(key)) this.#start(key, { pod, spec, role, kind, probe, container, observation, began });
      }
    }
    for (const [key, prober] of this.#probers) {
      if (prober.uid === uid && !desired.has(key)) this.#stopProber(key, prober);
    }
  }

  /** Stops a pod's probes; `readiness` continues while the pod terminates. */
  stop(uid: string, kinds: readonly ProbeKind[] = PROBE_KINDS): void {
    for (const [key, prober] of this.#probers) {
      if (prober.uid !== uid || !kinds.includes(prober.kind)) continue;
      prober.stop();
      if (kinds.includes("readiness")) this.#probers.delete(key);
    }
    if (kinds.includes("readiness")) this.#began.delete(uid);
  }

  hasStarted(container: Container, id: string): boolean {
    return container.startupProbe === undefined || this.#probers.get(`${id}/startup`)?.passed === true;
  }

  isReady(container: Container, id: string): boolean {
    return container.readinessProbe === undefined || this.#probers.get(`${id}/readiness`)?.passed === true;
  }

  /** The kind of probe that requires the container to be killed; `ok` if none does. */
  health(id: string): "ok" | "liveness" | "startup" {
    if (this.#probers.get(`${id}/startup`)?.passed === false) return "startup";
    return this.#probers.get(`${id}/liveness`)?.passed === false ? "liveness" : "ok";
  }

  #stopProber(key: string, prober: Prober): void {
    prober.stop();
    this.#probers.delete(key);
  }

  #start(key: string, target: ProbeTarget): void {
    const { runtime, clock, events, userAgent, nodeIp, execProbeTimeout, onChange, onResult } = this.#options;
    const { spec, container, kind } = target;
    const prober = new Prober(target, {
      runtime,
      clock,
      events,
      userAgent,
      nodeIp,
      execProbeTimeout,
      onResult,
      mayProbe: () => kind === "startup" || this.hasStarted(spec, container.id),
      onChange: () => {
        // The readiness probe waits for the startup probe.
        if (kind === "startup") this.#probers.get(`${container.id}/readiness`)?.probeNow();
        onChange(podUid(target.pod));
      },
    });
    this.#probers.set(key, prober);
  }
}

function getProbe(spec: Container, kind: ProbeKind): Probe | undefined {
  if (kind === "startup") return spec.startupProbe;
  return kind === "liveness" ? spec.livenessProbe : spec.readinessProbe;
}
