import t from "tap";
import type { Job, PodFailurePolicyRule } from "../../api/batch/job/schema.ts";
import type { ContainerStatus } from "../../api/core/container/status.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { addIndexes, countShared, firstMissing, formatIndexes, hasIndex, readIndexes } from "./completion-indexes.ts";
import { backoffRemaining, NO_FAILURES, nextBackoffRecord } from "./pod-backoff.ts";
import { finishTimeOf, isPodFailed, matchFailurePolicy } from "./pod-failures.ts";
import { matchSuccessPolicy } from "./success-policy.ts";

const texts = [
  ["", 10, ""],
  ["0,1,2,5", 10, "0-2,5"],
  ["1,3-5,7", 10, "1,3-5,7"],
  ["1,3-5,7", 5, "1,3,4"],
  ["3-9", 5, "3,4"],
  ["2,x,4", 10, "2,4"],
  ["7", 7, ""],
] as const;
for (const [text, completions, expected] of texts) {
  t.test(`the indexes ${JSON.stringify(text)} of ${completions} are ${JSON.stringify(expected)}`, async (t) => {
    t.equal(formatIndexes(readIndexes(text, completions)), expected);
  });
}

t.test("sets of indexes are merged, counted and searched", async (t) => {
  const indexes = addIndexes(readIndexes("1,3-5", 10), [4, 2, 8]);
  t.equal(formatIndexes(indexes), "1-5,8");
  t.strictSame(
    [0, 1, 5, 6, 8].map((index) => hasIndex(indexes, index)),
    [false, true, true, false, true],
  );
  t.strictSame(firstMissing(indexes, 3, 10), [0, 6, 7]);
  t.strictSame(firstMissing(indexes, 9, 10), [0, 6, 7, 9]);
  t.equal(countShared(indexes, readIndexes("0-1,4-9", 10)), 4);
});

const rules = [
  [[{ succeededIndexes: "0-2" }], "0-2", "Matched rules at index 0"],
  [[{ succeededIndexes: "0-2" }], "0,1", undefined],
  [[{ succeededIndexes: "0-2", succeededCount: 2 }], "1,2,7", "Matched rules at index 0"],
  [[{ succeededIndexes: "0-2", succeededCount: 2 }], "2,7", undefined],
  [[{ succeededCount: 3 }], "2,7", undefined],
  [[{ succeededCount: 3 }, { succeededIndexes: "7" }], "2,7", "Matched rules at index 1"],
  [[{ succeededCount: 0 }], "", undefined],
] as const;
for (const [policy, succeeded, message] of rules) {
  t.test(`the success policy ${JSON.stringify(policy)} with ${succeeded}: ${message}`, async (t) => {
    t.equal(matchSuccessPolicy({ rules: policy }, 10, readIndexes(succeeded, 10)), message);
  });
}

function jobWith(...podFailurePolicy: readonly PodFailurePolicyRule[]): Job {
  return { spec: { template: {}, podFailurePolicy: { rules: podFailurePolicy } } };
}

function failedPod(exitCode: number, conditions: NonNullable<Pod["status"]>["conditions"] = []): Pod {
  const terminated = { exitCode, finishedAt: "2026-01-01T00:00:10Z" };
  const container = { ready: false, restartCount: 0, image: "", imageID: "" };
  return {
    metadata: { name: "p", namespace: "ns" },
    status: {
      phase: "Failed",
      conditions,
      containerStatuses: [
        { ...container, name: "side", state: { running: {} } },
        { ...container, name: "main", state: { terminated } },
      ],
    },
  };
}

const IN_42: PodFailurePolicyRule = { action: "FailJob", onExitCodes: { operator: "In", values: [42] } };
const failures: readonly (readonly [string, Job, Pod, object])[] = [
  ["no rule", jobWith(), failedPod(1), { counts: true }],
  [
    "an exit code",
    jobWith({ action: "Ignore", onExitCodes: { operator: "In", values: [1] } }, IN_42),
    failedPod(42),
    {
      action: "FailJob",
      counts: true,
      message: "Container main for pod ns/p failed with exit code 42 matching FailJob rule at index 1",
    },
  ],
  [
    "an exit code of another container",
    jobWith({ action: "Count", onExitCodes: { containerName: "side", operator: "In", values: [42] } }),
    failedPod(42),
    { counts: true },
  ],
  [
    "an exit code that is not in the list",
    jobWith({ action: "FailIndex", onExitCodes: { operator: "NotIn", values: [1, 2] } }),
    failedPod(3),
    { action: "FailIndex", counts: true },
  ],
  [
    "success never matches",
    jobWith({ action: "Ignore", onExitCodes: { operator: "NotIn", values: [1] } }),
    failedPod(0),
    { counts: true },
  ],
  [
    "a condition",
    jobWith({ action: "Ignore", onPodConditions: [{ type: "DisruptionTarget", status: "True" }] }, IN_42),
    failedPod(42, [{ type: "DisruptionTarget", status: "True" }]),
    { action: "Ignore", counts: false },
  ],
  [
    "a condition that fails the job",
    jobWith({ action: "FailJob", onPodConditions: [{ type: "ConfigIssue", status: "True" }] }),
    failedPod(1, [{ type: "ConfigIssue", status: "True" }]),
    { action: "FailJob", counts: true, message: "Pod ns/p has condition ConfigIssue matching FailJob rule at index 0" },
  ],
];
for (const [title, job, pod, expected] of failures) {
  t.test(`the pod failure policy: ${title}`, async (t) => t.strictSame(matchFailurePolicy(job, pod), expected));
}

t.test("a deleted pod has failed, unless only failed pods are replaced", async (t) => {
  const pod: Pod = { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" }, status: { phase: "Running" } };
  t.equal(isPodFailed(pod, { spec: { template: {} } }), true);
  t.equal(isPodFailed(pod, { spec: { template: {}, podReplacementPolicy: "Failed" } }), false);
  t.equal(isPodFailed(pod, jobWith()), false);
});

const at = (second: number): string => `2026-01-01T00:00:${String(second).padStart(2, "0")}Z`;
const ended = (second: number): Pod => ({
  status: { conditions: [{ type: "Ready", status: "False", lastTransitionTime: at(second) }] },
});

t.test("the end of a pod is that of its containers, else of its readiness, else of its deletion", async (t) => {
  t.equal(finishTimeOf({ ...ended(3) }), Date.parse(at(3)));
  const deleted = { deletionTimestamp: at(40), deletionGracePeriodSeconds: 30, creationTimestamp: at(1) };
  t.equal(finishTimeOf({ metadata: deleted }), Date.parse(at(10)));
  t.equal(finishTimeOf({ metadata: { creationTimestamp: at(1) } }), Date.parse(at(1)));
});

const status = (name: string, end: number | undefined): ContainerStatus => ({
  name,
  image: "i",
  imageID: "",
  ready: false,
  restartCount: 0,
  state: end === undefined ? { running: {} } : { terminated: { exitCode: 0, finishedAt: at(end) } },
});
const RUNS = undefined;
const ends: readonly (readonly [
  containers: readonly (number | undefined)[],
  sidecar: number | undefined,
  end: number,
])[] = [
  [[5, 7], 6, 7],
  [[5, 7], 9, 9],
  [[5, RUNS], 9, 9],
  [[5, 7], RUNS, 3],
  [[5, RUNS], RUNS, 3],
  [[], 9, 9],
];
for (const [containers, sidecar, end] of ends) {
  const title = `containers that ended at ${containers.join()} and a sidecar that ended at ${sidecar}: ${end}`;
  t.test(`the end of a pod with ${title}`, async (t) => {
    const container = (name: string) => ({ name, image: "i" });
    const pod: Pod = {
      spec: { containers: [], initContainers: [container("init"), { ...container("side"), restartPolicy: "Always" }] },
      status: {
        ...ended(3).status,
        containerStatuses: containers.map((second, index) => status(`c${index}`, second)),
        initContainerStatuses: [status("init", 50), status("side", sidecar)],
      },
    };
    t.equal(finishTimeOf(pod), Date.parse(at(end)));
  });
}

t.test("the delay doubles with each failure up to ten minutes, and starts again after a success", async (t) => {
  let record = nextBackoffRecord(NO_FAILURES, [], [ended(5)]);
  t.equal(backoffRemaining(record, Date.parse(at(7))), 8000);
  record = nextBackoffRecord(record, [], [ended(20), ended(18)]);
  t.strictSame(record, { failures: 3, lastFailureAt: Date.parse(at(20)) });
  t.equal(backoffRemaining(record, Date.parse(at(20))), 40_000);
  t.equal(backoffRemaining({ ...record, failures: 30 }, Date.parse(at(20))), 600_000);
  t.strictSame(nextBackoffRecord(record, [ended(30)], [ended(25), ended(35)]), {
    failures: 1,
    lastFailureAt: Date.parse(at(35)),
  });
  t.strictSame(nextBackoffRecord(record, [ended(30)], []), NO_FAILURES);
  t.equal(nextBackoffRecord(record, [], []), record);
});
