import t from "tap";
import type { ContainerStatus } from "../container/status.ts";
import { podColumns, podRowConditions } from "./columns.ts";
import type { Pod } from "./schema.ts";

const now = Date.parse("2026-01-01T00:10:00Z");

function status(name: string, rest: Partial<ContainerStatus>): ContainerStatus {
  return { name, image: "i", imageID: "", ready: false, restartCount: 0, ...rest };
}

function cells(pod: Pod): readonly unknown[] {
  return podColumns.slice(1, 4).map((column) => column.cell(pod, now));
}

const base: Pod = {
  metadata: { name: "web", creationTimestamp: "2026-01-01T00:00:00Z" },
  spec: { containers: [{ name: "a" }, { name: "b" }] },
};

t.test("podColumns show readiness, reason and restarts as kubectl does", async (t) => {
  t.same(cells({ ...base, status: { phase: "Pending" } }), ["0/2", "Pending", "0"], "before the agent has seen it");
  t.same(
    cells({
      ...base,
      status: {
        phase: "Running",
        conditions: [{ type: "Ready", status: "True" }],
        containerStatuses: [
          status("a", { ready: true, state: { running: {} } }),
          status("b", {
            state: { waiting: { reason: "CrashLoopBackOff" } },
            restartCount: 3,
            lastState: { terminated: { exitCode: 1, finishedAt: "2026-01-01T00:05:00Z" } },
          }),
        ],
      },
    }),
    ["1/2", "CrashLoopBackOff", "3 (5m ago)"],
  );
  t.same(
    cells({
      ...base,
      status: {
        phase: "Running",
        conditions: [{ type: "Ready", status: "False" }],
        containerStatuses: [
          status("a", { ready: true, state: { running: {} } }),
          status("b", { state: { terminated: { exitCode: 0, reason: "Completed" } } }),
        ],
      },
    }),
    ["1/2", "NotReady", "0"],
    "one container done, the other running",
  );
  t.same(
    cells({
      ...base,
      status: { phase: "Failed", containerStatuses: [status("a", { state: { terminated: { exitCode: 3 } } })] },
    }),
    ["0/2", "ExitCode:3", "0"],
  );
});

t.test("podColumns show the progress of init containers and count sidecars", async (t) => {
  const pod: Pod = {
    ...base,
    spec: { containers: [{ name: "a" }], initContainers: [{ name: "i" }, { name: "s", restartPolicy: "Always" }] },
  };
  t.same(
    cells({
      ...pod,
      status: { phase: "Pending", initContainerStatuses: [status("i", { state: { running: {} } })] },
    }),
    ["0/2", "Init:0/2", "0"],
  );
  t.same(
    cells({
      ...pod,
      status: {
        phase: "Running",
        conditions: [
          { type: "Ready", status: "True" },
          { type: "Initialized", status: "True" },
        ],
        initContainerStatuses: [
          status("i", { state: { terminated: { exitCode: 0 } } }),
          status("s", { started: true, ready: true, state: { running: {} } }),
        ],
        containerStatuses: [status("a", { ready: true, state: { running: {} } })],
      },
    }),
    ["2/2", "Running", "0"],
  );
});

t.test("podColumns show a sidecar that fails later, and its restarts without those of init containers", async (t) => {
  const at = (minute: number) => ({ terminated: { exitCode: 1, finishedAt: `2026-01-01T00:0${minute}:00Z` } });
  const waiting = { waiting: { reason: "CrashLoopBackOff" } };
  const pod = (sidecar: ContainerStatus, main: ContainerStatus): Pod => ({
    ...base,
    spec: { containers: [{ name: "a" }], initContainers: [{ name: "i" }, { name: "s", restartPolicy: "Always" }] },
    status: {
      phase: "Running",
      conditions: [{ type: "Initialized", status: "True" }],
      initContainerStatuses: [
        status("i", { restartCount: 2, lastState: at(4), state: { terminated: { exitCode: 0 } } }),
        sidecar,
      ],
      containerStatuses: [main],
    },
  });
  const running = status("a", { ready: true, state: { running: {} } });
  const failing = status("s", { restartCount: 3, lastState: at(5), started: false, state: waiting });
  t.same(cells(pod(failing, running)), ["1/2", "Init:CrashLoopBackOff", "3 (5m ago)"]);
  t.same(cells(pod(failing, status("a", { state: waiting }))), ["0/2", "CrashLoopBackOff", "3 (5m ago)"]);
  const healthy = status("s", { started: true, ready: true, state: { running: {} } });
  t.same(cells(pod(healthy, running)), ["2/2", "Running", "0"]);
  const restarted = status("a", { restartCount: 1, ready: true, state: { running: {} } });
  t.same(cells(pod(healthy, restarted)), ["2/2", "Running", "1"], "the time of an init container's restart is not its");
});

t.test("podColumns show Terminating for a pod that is being deleted", async (t) => {
  const deleted: Pod = { ...base, metadata: { ...base.metadata, deletionTimestamp: "2026-01-01T00:09:00Z" } };
  t.same(cells({ ...deleted, status: { phase: "Running" } }), ["0/2", "Terminating", "0"]);
  t.same(cells({ ...deleted, status: { phase: "Succeeded" } }), ["0/2", "Succeeded", "0"]);
});

t.test("podRowConditions() marks finished pods as completed", async (t) => {
  t.same(podRowConditions({ ...base, status: { phase: "Running" } }), []);
  t.match(podRowConditions({ ...base, status: { phase: "Succeeded" } }), [{ type: "Completed", reason: "Succeeded" }]);
  t.match(podRowConditions({ ...base, status: { phase: "Failed" } }), [{ status: "True", message: "The pod failed." }]);
});
