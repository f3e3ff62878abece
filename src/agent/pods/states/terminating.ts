import { goQuote } from "../../../schema/value/go-quote.ts";
import { annotations, type ObservedContainer } from "../../runtime/observation.ts";
import { generateStatus } from "../status/generate-status.ts";
import { killContainer } from "../containers/kill-container.ts";
import type { PodContext, PodState } from "../pod-context.ts";
import { allContainers, graceSeconds, isSidecar, type PodContainer, podUid } from "../pod-fields.ts";
import { hasInitialized } from "../status/pod-status.ts";

const RETRY_MS = 2_000;

/** Stops what runs: containers together, then sidecars in reverse order, then the sandbox. Next: terminated. */
export const terminating: PodState = {
  name: "terminating",
  async next(pod) {
    const { services } = pod;
    services.probes.stop(podUid(pod.pod), ["startup", "liveness"]);
    pod.memory.initialized ??= hasInitialized(pod.pod, pod.memory.status);
    try {
      await stopAll(pod);
    } catch (error) {
      pod.signal.throwIfAborted();
      const text = error instanceof Error ? error.message : String(error);
      services.events.recordPodEvent(pod.pod, "Warning", "FailedKillPod", `error killing pod: ${text}`);
      await pod.pause(RETRY_MS);
      return { to: "terminating" };
    }
    services.probes.stop(podUid(pod.pod));
    return { to: "terminated" };
  },
  status: (pod) => generateStatus(pod, false),
};

async function stopAll(pod: PodContext): Promise<void> {
  const { services } = pod;
  const began = services.clock.monotonic();
  const grace = grantedSeconds(pod);
  const left = (): number => Math.max(0, grace - (services.clock.monotonic() - began) / 1000);
  const failures: string[] = [];
  /** The rest is still tried, and everything that failed told together. */
  const tried = async (what: string, name: string, work: () => Promise<unknown>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      pod.signal.throwIfAborted();
      const text = goQuote(error instanceof Error ? error.message : String(error));
      failures.push(`failed to "${what}" for "${name}" with ${what}Error: ${text}`);
    }
  };
  // A runtime that does not answer is heard of below.
  await pod.refresh().catch(() => pod.signal.throwIfAborted());
  const running = pod.observation.containers.filter((each) => each.state === "running" || each.state === "unknown");
  const members = allContainers(pod.pod);
  const find = (container: ObservedContainer): PodContainer | undefined =>
    members.find((each) => each.spec.name === container.name);
  const isLate = (member: PodContainer | undefined): boolean =>
    member?.role === "initContainers" && isSidecar(member.spec);
  const kill = (container: ObservedContainer): Promise<void> => {
    const member = find(container);
    const options = {
      container,
      spec: member?.spec,
      role: member?.role ?? ("containers" as const),
      message: `Stopping container ${container.name}`,
      graceSeconds: Math.round(left()),
    };
    return tried("KillContainer", container.name, () => killContainer(pod, options));
  };
  await Promise.all(running.filter((each) => !isLate(find(each))).map(kill));
  const order = members.map((each) => each.spec.name);
  const late = running
    .filter((each) => isLate(find(each)))
    .sort((a, b) => order.indexOf(b.name) - order.indexOf(a.name));
  for (const container of late) await kill(container);
  for (const sandbox of pod.observation.sandboxes) {
    if (!sandbox.ready) continue;
    await tried("KillPodSandbox", podUid(pod.pod), () =>
      services.runtime.stopPodSandbox({ podSandboxId: sandbox.id }, pod.signal),
    );
  }
  if (failures.length > 0) throw new Error(failures.length === 1 ? failures[0] : `[${failures.join(", ")}]`);
  services.expectChange();
  await pod.refresh();
}

/** What was asked for; else the spec's; else, for a pod that no source knows, what its containers noted. */
function grantedSeconds(pod: PodContext): number {
  if (pod.termination?.graceSeconds !== undefined) return pod.termination.graceSeconds;
  if (pod.pod.spec !== undefined) return graceSeconds(pod.pod);
  const noted = pod.observation.containers.map((each) => Number(each.annotations[annotations.terminationGracePeriod]));
  return Math.max(1, ...noted.filter(Number.isFinite));
}
