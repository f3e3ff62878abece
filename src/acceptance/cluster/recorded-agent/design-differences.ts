/** Differences from the recorded kubelet by design: to which recordings they apply, and how a comparison shows them. */
import type { Case } from "./cases.ts";
import { containersOf } from "./conditions.ts";

interface DesignDifference {
  readonly why: string;
  readonly applies: (one: Case) => boolean;
  /** Each line of the comparison that is due to the design. */
  readonly lines: (one: Case) => readonly RegExp[];
}

const unready = "containers with unready status";
/** A state of a failed start that kubelet shows at its next sync. */
const startFailure = "waiting (CreateContainerConfigError|CreateContainerError|RunContainerError|PostStartHookError)";

const designDifferences: readonly DesignDifference[] = [
  {
    why: "an evicted or preempted pod fails whatever the exit codes of its containers, as Kubernetes documents",
    applies: (one) => hasEvent(one, "Evicted", "Preempting") && lastStatus(one).phase === "Succeeded",
    lines: () => [
      /^phases: .*Succeeded$/,
      /^ +not .*Failed$/,
      /^reason: .*; not (Evicted|Preempting)$/,
      /^message: .*; not .+$/,
      /^condition Initialized: True PodCompleted; not True$/,
      /^condition (Ready|ContainersReady): False PodCompleted; not False PodFailed$/,
    ],
  },
  {
    why: "the exit code is reported, since the container's record is kept until then",
    applies: (one) =>
      containersOf(lastStatus(one)).some(({ state }) => state.terminated?.reason === "ContainerStatusUnknown"),
    lines: () => [
      /^states of \S+: .*terminated ContainerStatusUnknown 137 #\d+$/,
      /^ +not .*terminated \w+ \d+( signal \d+)? #\d+$/,
      /^end of \S+: terminated ContainerStatusUnknown .*; not terminated \w+ \d+/s,
    ],
  },
  {
    why: "the reason of a failed start is reported at once, not a sync later",
    applies: (one) => hasEvent(one, "Failed"),
    lines: ({ events }) => [
      /^states of \S+: waiting (ContainerCreating|PodInitializing) #0$/,
      new RegExp(`^ +not waiting (ContainerCreating|PodInitializing) #0, ${startFailure} #0$`),
      ...events
        .filter(({ reason }) => reason === "Failed")
        .map(({ message }) => message.replace(/^Error: /, "").replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"))
        .map(
          (text) =>
            new RegExp(`^end of \\S+: waiting (ContainerCreating|PodInitializing);.*; not ${startFailure} "${text}`),
        ),
    ],
  },
  {
    why: "a deleted mirror pod is created again at once; kubelet took a minute",
    applies: ({ pod, steps = [] }) =>
      pod === undefined && steps.some(({ op, grace }) => op === "delete" && grace === 0),
    lines: () => [
      /^phases: Pending, Running$/,
      /^ +not Pending, Running, Pending, Running$/,
      /^states of \S+: waiting ContainerCreating #0, running #0$/,
      /^ +not waiting ContainerCreating #0, running #0, terminated \w+ \d+ #0$/,
      /^condition PodReadyToStartContainers: True; not False$/,
      new RegExp(`^condition (Ready|ContainersReady): True; not False ContainersNotReady ${unready}: \\[\\S+\\]$`),
      /^end of \S+: running; ready true; started true; not terminated \w+ \d+; ready false; started false$/,
    ],
  },
  {
    why: "a back-off is reported when it begins, not at the sync after it: a runtime that is killed then has no start",
    applies: ({ steps = [] }) =>
      steps
        .filter((step) => step.do === "killRuntime")
        .flatMap(({ after = [] }) => after)
        .some(({ waiting }) => waiting?.[1] === "CrashLoopBackOff"),
    lines: () => [
      /^states of \S+: .*, waiting CrashLoopBackOff #1, waiting RunContainerError #2, /,
      /^ +not .*, waiting CrashLoopBackOff #1, /,
      /^event missing: Warning InspectFailed /,
      /^event missing: Warning Failed \S+ "Error: ImageInspectError"$/,
    ],
  },
];

function lastStatus({ snapshots }: Case): Case["snapshots"][number]["status"] {
  return snapshots.at(-1)?.status ?? {};
}

function hasEvent({ events }: Case, ...reasons: readonly string[]): boolean {
  return events.some(({ reason }) => reasons.includes(reason));
}

/** The reason if all differences are by design; else the differences. */
export function explainDifferences(
  one: Case,
  found: readonly string[],
): { readonly why: string; readonly differences: readonly string[] } {
  if (found.length === 0) return { why: "", differences: [] };
  for (const { why, applies, lines } of designDifferences) {
    if (!applies(one)) continue;
    const expected = lines(one);
    if (found.every((line) => expected.some((each) => each.test(line)))) return { why, differences: [] };
  }
  return { why: "", differences: found };
}
