/** Creates a pod's sandbox. */
import { mkdir } from "node:fs/promises";
import type { PodSandboxConfig } from "../../runtime/cri/sandbox.ts";
import { getNetworkProblem } from "../../runtime/readiness.ts";
import { isUnreachable, RuntimeError } from "../../runtime/runtime.ts";
import { podDir, podLogDir } from "../directories.ts";
import type { PodContext } from "../pod-context.ts";
import { podUid } from "../pod-fields.ts";
import type { Plan } from "../worker/plan.ts";
import { type DnsWarning, makePodDns } from "./dns.ts";
import { resolveUserNamespace } from "./pod-user-namespace.ts";
import { makeSandboxConfig } from "./sandbox-config.ts";

/** Kubernetes' sync period for failing pods. */
const RETRY_MS = 10_000;
/** A runtime that cannot be reached restarts soon. */
const UNREACHABLE_RETRY_MS = 5_000;

/** When it fails, records an event and pauses; the caller plans again afterwards. */
export async function createSandbox(pod: PodContext, plan: Plan): Promise<void> {
  const { services, signal } = pod;
  if (plan.sandboxAttempt > 0) {
    const text = "Pod sandbox changed, it will be killed and re-created.";
    services.events.recordPodEvent(pod.pod, "Normal", "SandboxChanged", text);
  }
  for (const stale of plan.staleSandboxes) {
    await services.runtime.stopPodSandbox({ podSandboxId: stale.id }, signal);
  }
  const { directories } = services.settings;
  await mkdir(podDir(directories, podUid(pod.pod)), { recursive: true, mode: 0o750 });
  await mkdir(podLogDir(directories, pod.pod), { recursive: true, mode: 0o755 });
  services.expectChange();
  if (!(await ensureCgroup(pod)) || !(await prepareClaims(pod))) return await pod.pause(RETRY_MS);
  try {
    const { config, warnings } = await resolveSandboxConfig(pod, plan.sandboxAttempt);
    for (const { reason, message, nodeMessage } of warnings) {
      if (nodeMessage !== undefined) services.recordNodeEvent?.("Warning", reason, nodeMessage);
      services.events.recordPodEvent(pod.pod, "Warning", reason, message);
    }
    const runtimeHandler = await services.getRuntimeHandler(pod.pod);
    await pod.create(async () => {
      const { podSandboxId: sandboxId } = await services.runtime.runPodSandbox({ config, runtimeHandler }, signal);
      return sandboxId === undefined || plan.staleSandboxes.length > 0 ? undefined : { sandboxId };
    });
  } catch (error) {
    signal.throwIfAborted();
    await recordFailure(pod, error);
    const isAway = error instanceof RuntimeError && isUnreachable(error);
    await pod.pause(isAway ? UNREACHABLE_RETRY_MS : RETRY_MS);
  }
}

/** A node whose network is not ready yet gets an event of its own. */
async function recordFailure({ pod, services, signal }: PodContext, error: unknown): Promise<void> {
  const status = pod.spec?.hostNetwork === true ? undefined : await services.runtime.status({}, signal).catch(() => {});
  const problem = getNetworkProblem(status ?? undefined);
  if (problem !== undefined) {
    services.events.recordPodEvent(pod, "Warning", "NetworkNotReady", `network is not ready: ${problem}`);
    return;
  }
  const text = error instanceof Error ? error.message : String(error);
  services.events.recordPodEvent(pod, "Warning", "FailedCreatePodSandBox", `Failed to create pod sandbox: ${text}`);
}

/** The limits of the pod must be set before any of its containers runs. */
async function ensureCgroup(pod: PodContext): Promise<boolean> {
  const { services } = pod;
  try {
    await services.cgroups.apply(pod.pod);
    return true;
  } catch (error) {
    const text = `unable to ensure pod container exists: failed to create container for pod: ${String(error)}`;
    services.events.recordPodEvent(pod.pod, "Warning", "FailedCreatePodContainer", text);
    return false;
  }
}

/** The devices of claims must be ready before the sandbox. */
async function prepareClaims({ pod, services, signal }: PodContext): Promise<boolean> {
  try {
    await services.resourceManagers?.claims?.prepare(pod, signal);
    return true;
  } catch (error) {
    signal.throwIfAborted();
    const text = error instanceof Error ? error.message : String(error);
    const message = `Failed to prepare dynamic resources: ${text}`;
    services.events.recordPodEvent(pod, "Warning", "FailedPrepareDynamicResources", message);
    return false;
  }
}

/** CRI requires the same configuration again with each container of the sandbox. */
export async function resolveSandboxConfig(
  pod: PodContext,
  attempt: number,
): Promise<{ readonly config: PodSandboxConfig; readonly warnings: readonly DnsWarning[] }> {
  const { services } = pod;
  const { settings } = services;
  const dns = makePodDns(pod.pod, {
    clusterDns: settings.clusterDns,
    clusterDomain: settings.clusterDomain,
    resolvConf: await services.readHostFile("resolv.conf"),
    ownAddresses: settings.isWithoutResolvConf === true ? services.node().ips : undefined,
  });
  const config = makeSandboxConfig({
    pod: pod.pod,
    attempt,
    dns: dns.config,
    clusterDomain: settings.clusterDomain,
    directories: settings.directories,
    cgroups: settings.cgroups,
    userNamespace: await resolveUserNamespace(pod),
    volumeGroups: services.volumes.groups(pod.pod),
  });
  return { config, warnings: dns.warnings };
}
