/** postStart and preStop. */
import type { Container } from "../../api/core/container.ts";
import type { LifecycleHandler } from "../../api/core/probe.ts";
import type { Clock } from "../../std/clock.ts";
import { execAction, type NetworkOptions } from "../probes/actions.ts";
import { httpAction } from "../probes/http-action.ts";
import type { Runtime } from "../runtime/runtime.ts";

export interface HookOptions {
  readonly runtime: Runtime;
  readonly clock: Clock;
  readonly container: Container;
  readonly containerId: string;
  readonly podIp: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  readonly userAgent: string;
}

/** Rejects when the hook fails; the error's text is for logs, events say only which hook it was. */
export async function runHook(hook: LifecycleHandler, options: HookOptions): Promise<void> {
  const { clock, signal, timeoutMs } = options;
  if (hook.sleep !== undefined) {
    await clock.sleep(Math.min(hook.sleep.seconds * 1000, timeoutMs), signal);
    return;
  }
  const outcome = await act(hook, options);
  if (outcome !== undefined && outcome.result !== "success" && outcome.result !== "warning") {
    throw new Error(`lifecycle hook failed: ${outcome.output}`);
  }
}

async function act(hook: LifecycleHandler, options: HookOptions): ReturnType<typeof execAction> {
  const { runtime, containerId, timeoutMs, signal } = options;
  if (hook.exec !== undefined) {
    const command = hook.exec.command ?? [];
    return execAction({ runtime, containerId, command, timeoutSeconds: timeoutMs / 1000, signal });
  }
  if (hook.httpGet !== undefined) {
    const network: NetworkOptions = { ...options, headers: { "accept-encoding": "gzip" } };
    return httpAction(hook.httpGet, network);
  }
  // tcpSocket is kept in the API for old objects and fails at run time, as in Kubernetes.
  return { result: "failure", output: "invalid handler: tcpSocket is not supported" };
}
