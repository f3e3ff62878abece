import t from "tap";
import type { Container } from "../../../api/core/container/schema.ts";
import { podHarness, testPod } from "../../../testing/agent/pod-harness.ts";
import type { ObservedContainer } from "../../runtime/observation.ts";
import { containerHash } from "../containers/container-hash.ts";
import { planPod } from "./plan.ts";
import { RestartBackoff } from "./restart-backoff.ts";

const image = { image: "busybox:1", imagePullPolicy: "IfNotPresent" } as const;
const sidecar = { name: "s", ...image, restartPolicy: "Always" } as const;
const init = { name: "i", ...image };
const second = { name: "j", ...image };
const app = { name: "a", ...image };

function run(spec: Container, state: ObservedContainer["state"], more?: Partial<ObservedContainer>): ObservedContainer {
  const times = { createdAt: 1, startedAt: 1, finishedAt: 1 };
  const texts = { reason: "", message: "", image: "", imageId: "", logPath: "" };
  const rest = { restartCount: 0, exitCode: 0, labels: {}, annotations: {}, mounts: [] };
  const id = `id-${spec.name}`;
  return {
    id,
    name: spec.name,
    sandboxId: "box",
    state,
    hash: containerHash(spec),
    ...times,
    ...texts,
    ...rest,
    ...more,
  };
}

const box = { id: "box", attempt: 0, ready: true, createdAt: 1, hostNetwork: false, ips: ["10.0.0.2"] };

for (const { name, inits, runs, policy = "Always", starts, kills = [], finished = false } of [
  { name: "no run", inits: [sidecar, init], runs: [], starts: ["s"] },
  { name: "a sidecar that runs", inits: [sidecar, init], runs: [run(sidecar, "running")], starts: ["i"] },
  {
    name: "a sidecar that ended after a later init container",
    inits: [sidecar, init, second],
    runs: [run(sidecar, "exited", { exitCode: 1 }), run(init, "exited")],
    starts: ["s", "j"],
  },
  {
    name: "a sidecar that ended while a later init container runs",
    inits: [sidecar, init],
    runs: [run(sidecar, "exited", { exitCode: 1 }), run(init, "running")],
    starts: ["s"],
  },
  {
    name: "a last sidecar that ended",
    inits: [init, sidecar],
    runs: [run(init, "exited"), run(sidecar, "exited")],
    starts: ["s"],
  },
  {
    name: "a completed init container whose predecessor is removed",
    inits: [init, second],
    runs: [run(second, "exited")],
    starts: ["a"],
  },
  {
    name: "an init container in an unknown state",
    inits: [init],
    runs: [run(init, "unknown")],
    starts: [],
    kills: ['Init container is in "unknown" state, try killing it before restart'],
  },
  {
    name: "the same of a pod that does not restart",
    inits: [init],
    policy: "Never",
    runs: [run(init, "unknown")],
    starts: [],
    finished: true,
  },
  {
    name: "a sidecar with another image",
    inits: [sidecar],
    runs: [run(sidecar, "running", { hash: "other" }), run(app, "running")],
    starts: [],
    kills: ["Init container s definition changed"],
  },
] as const) {
  t.test(`planPod() with ${name} starts ${starts.join(" and ") || "nothing"}`, async (t) => {
    await using harness = await podHarness();
    const plan = planPod({
      pod: testPod("web", { restartPolicy: policy, initContainers: inits, containers: [app] }),
      observation: { sandboxes: [box], containers: runs },
      now: 0,
      backoff: new RestartBackoff(harness.clock),
      retryAt: new Map(),
      health: () => "ok",
      hasStarted: () => true,
      toRestart: new Set(),
      needsResizeRestart: () => false,
    });
    t.same(
      plan.starts.map(({ spec }) => spec.name),
      starts,
    );
    t.same(
      plan.kills.map(({ message }) => message),
      kills,
    );
    t.equal(plan.isFinished, finished);
  });
}
