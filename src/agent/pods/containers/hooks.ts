/** Runs postStart and preStop hooks. */

import type { HTTPGetAction, LifecycleHandler } from "../../../api/core/container/probe.ts";
import type { Container } from "../../../api/core/container/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { Clock } from "../../../std/time/clock.ts";
import { type NetworkProbeOptions, type ProbeResult, runExec } from "../../probes/actions.ts";
import { NO_TLS, sendHttpHook } from "../../probes/http-action.ts";
import type { Runtime } from "../../runtime/runtime.ts";
import type { PodEventRecorder } from "../pod-events.ts";

export interface HookOptions {
  readonly pod: Pod;
  readonly events: PodEventRecorder;
  readonly runtime: Runtime;
  readonly clock: Clock;
  readonly container: Container;
  readonly containerId: string;
  readonly podIp: string;
  readonly signal: AbortSignal;
  readonly userAgent: string;
}

/**
 * Rejects when the hook fails. The error's text is for logs; events only name the hook. A hook has no timeout but the
 * signal.
 */
export async function runHook(hook: LifecycleHandler, options: HookOptions): Promise<void> {
  const { clock, signal } = options;
  if (hook.sleep !== undefined) {
    await clock.sleep(hook.sleep.seconds * 1000, signal);
    return;
  }
  const outcome = await runHandler(hook, options);
  if (outcome !== undefined && outcome.outcome !== "success" && outcome.outcome !== "warning") {
    throw new Error(`lifecycle hook failed: ${outcome.output}`);
  }
}

async function runHandler(hook: LifecycleHandler, options: HookOptions): Promise<ProbeResult> {
  const { runtime, containerId, signal } = options;
  if (hook.exec !== undefined) {
    const command = hook.exec.command ?? [];
    return runExec({ runtime, containerId, command, timeoutSeconds: 0, signal });
  }
  if (hook.httpGet !== undefined) return sendHttpGet(hook.httpGet, options);
  // The API has tcpSocket for old objects only; it fails at run time, as in Kubernetes.
  return { outcome: "failure", output: "invalid handler: tcpSocket is not supported" };
}

/** Hooks ignored `scheme: HTTPS` before Kubernetes 1.26. Falls back to HTTP for servers from then. */
async function sendHttpGet(action: HTTPGetAction, options: HookOptions): Promise<ProbeResult> {
  const network: NetworkProbeOptions = {
    ...options,
    timeoutMs: Number.POSITIVE_INFINITY,
    headers: { "Accept-Encoding": "gzip" },
  };
  const outcome = await sendHttpHook(action, network);
  if (outcome.outcome === "success" || !outcome.output.endsWith(NO_TLS)) return outcome;
  // Secrets must not be sent in plain text.
  const httpHeaders = (action.httpHeaders ?? []).filter(({ name }) => name.toLowerCase() !== "authorization");
  const second = await sendHttpHook({ ...action, scheme: "HTTP", httpHeaders }, network);
  if (second.outcome !== "success") return outcome;
  const text = "request to HTTPS lifecycle hook got HTTP response, retry with HTTP succeeded";
  options.events.recordPodEvent(options.pod, "Warning", "LifecycleHTTPFallback", text);
  return second;
}
