/** Stops one container: records the event, runs its preStop hook, and stops it within the grace period. */
import type { Container } from "../../../api/core/container/schema.ts";
import type { ObservedContainer } from "../../runtime/observation.ts";
import type { PodContext } from "../pod-context.ts";
import type { ContainerRole } from "../pod-fields.ts";
import { runHook } from "./hooks.ts";

export interface KillOptions {
  readonly container: ObservedContainer;
  /** Undefined for a container that the spec no longer has. */
  readonly spec: Container | undefined;
  readonly role: ContainerRole;
  readonly message: string;
  readonly graceSeconds: number;
  /** Settles when the containers have stopped that must stop before this one, whose preStop hook does not wait. */
  readonly turn?: Promise<unknown>;
}

/** The least time between the stop signal and the kill, whatever the grace period and the preStop hook have left. */
const GRACE_SECONDS_MIN = 2;

export async function killContainer(pod: PodContext, options: KillOptions): Promise<void> {
  const { services, signal } = pod;
  const { container, spec, role, message } = options;
  services.events.recordContainerEvent(pod.pod, { role, name: container.name }, "Normal", "Killing", message);
  services.expectChange();
  const began = services.clock.monotonic();
  if (spec?.lifecycle?.preStop !== undefined && options.graceSeconds > 0) {
    await runPreStop(pod, options, spec);
  }
  const leftMs = (): number => Math.max(0, began + options.graceSeconds * 1000 - services.clock.monotonic());
  if (options.turn !== undefined) await waitForTurn(pod, options.turn, leftMs());
  const left = Math.max(GRACE_SECONDS_MIN, Math.round(leftMs() / 1000));
  await services.runtime.stopContainer({ containerId: container.id, timeout: BigInt(left) }, signal);
  services.expectChange();
}

async function waitForTurn({ services, signal }: PodContext, turn: Promise<unknown>, timeoutMs: number): Promise<void> {
  const over = new AbortController();
  const timeout = services.clock.sleep(timeoutMs, AbortSignal.any([signal, over.signal])).catch(() => undefined);
  await Promise.race([turn.catch(() => undefined), timeout]);
  over.abort();
  signal.throwIfAborted();
}

async function runPreStop(pod: PodContext, options: KillOptions, spec: Container): Promise<void> {
  const { services } = pod;
  const hook = spec.lifecycle?.preStop;
  if (hook === undefined) return;
  const limit = new AbortController();
  const timer = services.clock.timer(options.graceSeconds * 1000, () =>
    limit.abort(new Error("the grace period is over")),
  );
  try {
    await runHook(hook, {
      pod: pod.pod,
      events: services.events,
      runtime: services.runtime,
      clock: services.clock,
      container: spec,
      containerId: options.container.id,
      podIp: pod.observation.sandboxes[0]?.ips[0],
      signal: AbortSignal.any([pod.signal, limit.signal]),
      userAgent: services.settings.hookUserAgent,
      metrics: services.metrics,
    });
  } catch (error) {
    pod.signal.throwIfAborted();
    pod.log.info("preStop hook failed", { container: spec.name, error: String(error) });
    // Kubernetes leaves a sleep that is too long without result.
    if (hook.sleep !== undefined) return;
    const ref = { role: options.role, name: spec.name };
    services.events.recordContainerEvent(pod.pod, ref, "Warning", "FailedPreStopHook", "PreStopHook failed");
  } finally {
    timer.cancel();
  }
}
