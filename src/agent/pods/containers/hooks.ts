/** Runs postStart and preStop hooks. */

import type { HTTPGetAction, LifecycleHandler } from "../../../api/core/container/probe.ts";
import type { Container } from "../../../api/core/container/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { goQuote } from "../../../schema/value/go-quote.ts";
import type { Clock } from "../../../std/time/clock.ts";
import type { NetworkProbeOptions, ProbeResult } from "../../probes/actions.ts";
import { NO_TLS, sendHttpHook } from "../../probes/http-action.ts";
import type { Runtime } from "../../runtime/runtime.ts";
import type { PodWorkMetrics } from "../pod-context.ts";
import type { PodEventRecorder } from "../pod-events.ts";
import { podFullName } from "../pod-fields.ts";

export interface HookOptions {
  readonly pod: Pod;
  readonly events: PodEventRecorder;
  readonly runtime: Runtime;
  readonly clock: Clock;
  readonly container: Container;
  readonly containerId: string;
  /** Undefined for a pod on the host's network. */
  readonly podIp: string | undefined;
  readonly signal: AbortSignal;
  readonly userAgent: string;
  readonly metrics?: Pick<PodWorkMetrics, "onHookFallback" | "onSleepHookEndedEarly"> | undefined;
}

/**
 * Rejects with Kubernetes' text when the hook fails; events only name the hook, the text is for status and logs. A hook
 * has no timeout but the signal.
 */
export async function runHook(hook: LifecycleHandler, options: HookOptions): Promise<void> {
  const { clock, signal, container, pod } = options;
  const of = `for Container ${goQuote(container.name)} in Pod ${goQuote(podFullName(pod))}`;
  if (hook.sleep !== undefined) {
    await clock.sleep(hook.sleep.seconds * 1000, signal).catch((error: unknown) => {
      options.metrics?.onSleepHookEndedEarly();
      throw error;
    });
  } else if (hook.exec !== undefined) {
    const command = hook.exec.command ?? [];
    const { error, output } = await runExecHook(command, options);
    const name = `Exec lifecycle hook ([${command.join(" ")}]) ${of}`;
    if (error !== undefined) throw new Error(`${name} failed - error: ${error}, message: ${goQuote(output)}`);
  } else if (hook.httpGet !== undefined) {
    const { outcome, output } = await sendHttpGet(hook.httpGet, options);
    const name = `HTTP lifecycle hook (${hook.httpGet.path ?? "/"}) ${of}`;
    if (outcome !== "success") throw new Error(`${name} failed - error: ${output}`);
  } else {
    // The API has tcpSocket for old objects only; it fails at run time, as in Kubernetes.
    throw new Error("Cannot run handler: invalid handler: tcpSocket is not supported");
  }
}

async function runExecHook(
  command: readonly string[],
  { runtime, containerId, signal }: HookOptions,
): Promise<{ readonly error: string | undefined; readonly output: string }> {
  try {
    const { exitCode = 0, stdout, stderr } = await runtime.execSync({ containerId, cmd: command, timeout: 0n }, signal);
    const [text, errors] = [stdout, stderr].map((each) => Buffer.from(each ?? []).toString("utf8"));
    const error = exitCode === 0 ? undefined : `command '${command.join(" ")}' exited with ${exitCode}: ${errors}`;
    return { error, output: `${text}${errors}` };
  } catch (error) {
    signal.throwIfAborted();
    return { error: error instanceof Error ? error.message : String(error), output: "" };
  }
}

/** Hooks ignored `scheme: HTTPS` before Kubernetes 1.26. Falls back to HTTP for servers from then. */
async function sendHttpGet(action: HTTPGetAction, options: HookOptions): Promise<ProbeResult> {
  const podIp = options.podIp ?? action.host ?? "";
  // As in Kubernetes, a hook of a pod on the host's network has to name the host.
  if (podIp === "") return { outcome: "unknown", output: "failed to find networking container" };
  const network: NetworkProbeOptions = {
    ...options,
    podIp,
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
  options.metrics?.onHookFallback();
  return second;
}
