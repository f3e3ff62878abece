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
}

/** Remaining grace period after a preStop hook that used all of it. */
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
  const spentSeconds = (services.clock.monotonic() - began) / 1000;
  const minimum = options.graceSeconds > 0 ? Math.min(options.graceSeconds, GRACE_SECONDS_MIN) : 0;
  const left = Math.max(minimum, Math.round(options.graceSeconds - spentSeconds));
  await services.runtime.stopContainer({ containerId: container.id, timeout: BigInt(left) }, signal);
  services.expectChange();
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
      podIp: pod.observation.sandboxes[0]?.ips[0] ?? "127.0.0.1",
      timeoutMs: options.graceSeconds * 1000,
      signal: AbortSignal.any([pod.signal, limit.signal]),
      userAgent: services.settings.hookUserAgent,
    });
  } catch (error) {
    pod.signal.throwIfAborted();
    pod.log.info("preStop hook failed", { container: spec.name, error: String(error) });
    const ref = { role: options.role, name: spec.name };
    services.events.recordContainerEvent(pod.pod, ref, "Warning", "FailedPreStopHook", "PreStopHook failed");
  } finally {
    timer.cancel();
  }
}
