/** Creates and starts a container whose image is present. */
import { randomBytes } from "node:crypto";
import { chmod, mkdir, readdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { PresentImage } from "../../images/image-manager.ts";
import { removeLogs } from "../../logs/log-rotation.ts";
import type { ContainerConfig } from "../../runtime/cri/container.ts";
import type { ObservedSandbox } from "../../runtime/observation.ts";
import { RuntimeError } from "../../runtime/runtime.ts";
import { containerDir, logPath, podLogDir } from "../directories.ts";
import { makeEnvironment } from "../environment/environment.ts";
import type { PodContext } from "../pod-context.ts";
import { ephemeralContainers, graceSeconds, isStatic, podUid } from "../pod-fields.ts";
import { resolveSandboxConfig } from "../sandbox/create-sandbox.ts";
import { resolveUserNamespace } from "../sandbox/pod-user-namespace.ts";
import { backoffKey, latestRun, type PlannedStart } from "../worker/plan.ts";
import { makeContainerConfig } from "./container-config.ts";
import { makeDevices, makeMounts } from "./container-mounts.ts";
import { runHook } from "./hooks.ts";
import { killContainer } from "./kill-container.ts";
import { linkLog, logLinkName } from "./log-links.ts";

/** `reason` is `CreateContainerConfigError`, `CreateContainerError`, `RunContainerError` or `PostStartHookError`. */
export class StartError extends Error {
  override readonly name = "StartError";
  readonly reason: string;
  /** Id of the run that failed; undefined when none was created. */
  readonly containerId: string | undefined;

  constructor(reason: string, cause: unknown, containerId?: string) {
    super(cause instanceof RuntimeError ? cause.detail : cause instanceof Error ? cause.message : String(cause), {
      cause,
    });
    this.reason = reason;
    this.containerId = containerId;
  }
}

export async function startContainer(
  pod: PodContext,
  planned: PlannedStart,
  sandbox: ObservedSandbox,
  image: PresentImage,
): Promise<void> {
  const { services, signal, stopSignal } = pod;
  const start = await countLostRuns(pod, planned);
  const { spec, role } = start;
  const record = (reason: string, message: string): void =>
    services.events.recordContainerEvent(pod.pod, { role, name: spec.name }, "Normal", reason, message);
  const hasPruned = await removeOldRuns(pod, spec.name);
  const config = await withReason("CreateContainerConfigError", signal, () =>
    resolveContainerConfig(pod, start, sandbox, image),
  );
  const { config: sandboxConfig } = await resolveSandboxConfig(pod, sandbox.attempt);
  services.expectChange();
  let containerId = "";
  try {
    await pod.create(async () => {
      const created = await withReason("CreateContainerError", signal, () =>
        services.runtime.createContainer({ podSandboxId: sandbox.id, config, sandboxConfig }, stopSignal),
      );
      pod.memory.resources.setActual(spec);
      record("Created", `Created container: ${spec.name}`);
      containerId = created.containerId ?? "";
      pod.memory.unfinishedStarts.add(containerId);
      // As in Kubernetes, the start of a container completes although its pod is deleted: it has not failed.
      const run = () => services.runtime.startContainer({ containerId }, stopSignal);
      await withReason("RunContainerError", signal, run, containerId);
      return hasPruned ? undefined : { sandboxId: sandbox.id, containerId };
    });
    await linkContainerLog(pod, start, containerId);
    services.expectChange();
    record("Started", `Started container ${spec.name}`);
    if (spec.lifecycle?.postStart !== undefined) await runPostStart(pod, start, sandbox, containerId);
  } finally {
    pod.memory.unfinishedStarts.delete(containerId);
  }
}

/** The logs of earlier runs count those that the runtime lost, so that none is written twice. */
async function countLostRuns(pod: PodContext, start: PlannedStart): Promise<PlannedStart> {
  const { name } = start.spec;
  if (pod.observation.containers.some((each) => each.name === name)) return start;
  const directory = dirname(join(podLogDir(pod.services.settings.directories, pod.pod), logPath(name, 0)));
  const files = await readdir(directory).catch(() => []);
  const counts = files.flatMap((file) => /^(\d+)\.log(\.|$)/.exec(file)?.[1] ?? []).map(Number);
  return counts.length === 0 ? start : { ...start, restartCount: Math.max(...counts) + 1 };
}

async function linkContainerLog(pod: PodContext, { spec, restartCount }: PlannedStart, id: string): Promise<void> {
  const { directories } = pod.services.settings;
  if (directories.containerLogsDir === undefined) return;
  const target = join(podLogDir(directories, pod.pod), logPath(spec.name, restartCount));
  await linkLog(directories.containerLogsDir, logLinkName(pod.pod, spec.name, id), target).catch((error: unknown) =>
    pod.log.warn("Cannot link the log of a container", { container: spec.name, error: String(error) }),
  );
}

async function withReason<T>(
  reason: string,
  signal: AbortSignal,
  work: () => Promise<T>,
  containerId?: string,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    signal.throwIfAborted();
    throw new StartError(reason, error, containerId);
  }
}

async function resolveContainerConfig(
  pod: PodContext,
  start: PlannedStart,
  sandbox: ObservedSandbox,
  image: PresentImage,
): Promise<ContainerConfig> {
  const { services } = pod;
  const { settings } = services;
  const { spec, restartCount } = start;
  const node = services.node();
  const podIps = sandbox.ips.length > 0 ? sandbox.ips : node.ips;
  const environment = await makeEnvironment({
    pod: pod.pod,
    container: spec,
    node,
    podIps,
    sources: isStatic(pod.pod) ? (services.manifestEnvironment ?? services.environment) : services.environment,
  });
  const mounts = await makeMounts(pod, spec, environment, podIps);
  const userNamespace = await resolveUserNamespace(pod);
  const { uids: uidMappings, gids: gidMappings } = userNamespace ?? {};
  const mapped = userNamespace === undefined ? {} : { uidMappings, gidMappings };
  const messagePath = spec.terminationMessagePath ?? "/dev/termination-log";
  const messageFile = join(
    containerDir(settings.directories, podUid(pod.pod), spec.name),
    randomBytes(4).toString("hex"),
  );
  await mkdir(dirname(messageFile), { recursive: true, mode: 0o750 });
  await writeFile(messageFile, "");
  // Any user in the container may write the termination message. At creation the process's umask clears mode bits.
  await chmod(messageFile, 0o666);
  await mkdir(dirname(join(podLogDir(settings.directories, pod.pod), logPath(spec.name, 0))), { recursive: true });
  return makeContainerConfig({
    pod: pod.pod,
    container: spec,
    restartCount,
    imageRef: image.ref,
    image: image.image,
    environment,
    devices: makeDevices(pod, spec),
    mounts: [...mounts, { containerPath: messagePath, hostPath: messageFile }].map((each) => ({ ...each, ...mapped })),
    cpu: settings.cpu,
    assignment: await services.resourceManagers?.getAssignment(pod.pod, spec),
    memoryCapacityBytes: settings.memoryCapacityBytes,
    seccompDefault: settings.seccompDefault,
    restartDelayMs: pod.memory.backoff.getDelay(backoffKey(spec)),
    rootDir: settings.directories.rootDir,
    targetId: findTarget(pod, start),
    userNamespace,
    volumeGroups: services.volumes.groups(pod.pod),
  });
}

/** Id of the container whose PID namespace an ephemeral container joins. */
function findTarget(pod: PodContext, { spec, role }: PlannedStart): string | undefined {
  if (role !== "ephemeralContainers") return undefined;
  const name = ephemeralContainers(pod.pod).find((each) => each.name === spec.name)?.targetContainerName ?? "";
  if (name === "") return undefined;
  const target = latestRun(pod.observation, name);
  if (target === undefined) throw new Error(`unable to find target container ${name}`);
  return target.id;
}

/**
 * Removes old runs of a container. Keeps the newest exited ones for the last state and the previous log. Resolves with
 * whether it removed any.
 */
async function removeOldRuns(pod: PodContext, name: string): Promise<boolean> {
  const { services, signal } = pod;
  const runs = pod.observation.containers.filter((each) => each.name === name);
  const { deadRunsMax, deadRunMinAgeMs } = services.settings;
  const since = services.clock.now() - deadRunMinAgeMs;
  const kept = runs
    .filter((each) => each.state === "exited")
    .filter((run, index) => deadRunsMax < 0 || index < deadRunsMax || run.finishedAt > since);
  const removed = new Set<string>();
  for (const run of runs) {
    if (kept.includes(run) || run.state === "running") continue;
    // The log first: without its container, an agent that restarts does not find it.
    if (run.logPath !== "") await removeLogs(run.logPath);
    await services.runtime.removeContainer({ containerId: run.id }, signal);
    removed.add(run.id);
  }
  for (const sandbox of pod.observation.sandboxes) {
    const inUse = pod.observation.containers.some((each) => each.sandboxId === sandbox.id && !removed.has(each.id));
    if (sandbox.ready || inUse) continue;
    await services.runtime.removePodSandbox({ podSandboxId: sandbox.id }, signal);
    removed.add(sandbox.id);
  }
  return removed.size > 0;
}

async function runPostStart(
  pod: PodContext,
  start: PlannedStart,
  sandbox: ObservedSandbox,
  containerId: string,
): Promise<void> {
  const { services, signal } = pod;
  const { spec, role } = start;
  const hook = spec.lifecycle?.postStart;
  if (hook === undefined) return;
  try {
    await runHook(hook, {
      pod: pod.pod,
      events: services.events,
      runtime: services.runtime,
      clock: services.clock,
      container: spec,
      containerId,
      podIp: sandbox.ips[0],
      signal,
      userAgent: services.settings.hookUserAgent,
      metrics: services.metrics,
    });
  } catch (error) {
    signal.throwIfAborted();
    const ref = { role, name: spec.name };
    services.events.recordContainerEvent(pod.pod, ref, "Warning", "FailedPostStartHook", "PostStartHook failed");
    await pod.refresh();
    const container = pod.observation.containers.find((each) => each.id === containerId);
    if (container !== undefined) {
      const grace = graceSeconds(pod.pod);
      await killContainer(pod, { container, spec, role, message: "FailedPostStartHook", graceSeconds: grace });
    }
    throw new StartError("PostStartHookError", error, containerId);
  }
}
