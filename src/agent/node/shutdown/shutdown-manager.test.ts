import { readFileSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { silentLogger } from "../../../std/log/logger.ts";
import { MetricRegistry } from "../../../std/metrics/metrics.ts";
import { formatMetrics } from "../../../std/metrics/text-format.ts";
import { FakeLogind } from "../../../testing/agent/fake-logind.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { until } from "../../../testing/std/until.ts";
import type { Termination } from "../../pods/worker/pod-termination.ts";
import { groupByPriority, type ShutdownGroup, toShutdownGroups } from "./priority-groups.ts";
import { type EndingPod, ShutdownManager } from "./shutdown-manager.ts";
import { registerShutdownTimes } from "./shutdown-times.ts";

const CRITICAL = 2_000_000_000;
const MESSAGE = "Pod was terminated in response to imminent node shutdown.";

/** A pod that ends when the test says so. */
class PlayedPod implements EndingPod {
  readonly pod: Pod;
  termination: Termination | undefined;
  readonly #released = Promise.withResolvers<void>();

  constructor(name: string, priority: number, grace = 30) {
    this.pod = {
      metadata: { name, namespace: "default", uid: name },
      spec: { priority, terminationGracePeriodSeconds: grace, containers: [] },
    };
  }

  get released(): Promise<void> {
    return this.#released.promise;
  }

  terminate(termination: Termination): void {
    this.termination = termination;
  }

  end(): void {
    this.#released.resolve();
  }
}

function makeManager(t: Test, groups: readonly ShutdownGroup[], pods: readonly PlayedPod[], logind = new FakeLogind()) {
  const clock = new FakeClock(Date.parse("2026-01-02T03:04:05Z"));
  const metrics = new MetricRegistry();
  const rootDir = t.testdir({});
  const events: string[] = [];
  let [reports, flushes] = [0, 0];
  const manager = new ShutdownManager({
    groups,
    gauges: registerShutdownTimes(metrics),
    rootDir,
    notices: logind,
    pods: () => pods,
    recordNodeEvent: (...event) => void events.push(event.join(" ")),
    reportStatus: () => void reports++,
    flushStatuses: async () => void flushes++,
    clock,
    log: silentLogger,
  });
  const stop = new AbortController();
  const running = manager.run(stop.signal);
  t.teardown(async () => {
    stop.abort();
    await running;
  });
  const readState = () => JSON.parse(readFileSync(join(rootDir, "graceful_node_shutdown_state"), "utf8")) as object;
  const wait = () => clock.advance(0);
  const untilHolds = (what: string, holds: () => boolean) => until(what, holds, { wait });
  const counts = () => ({ reports, flushes });
  return { manager, logind, clock, metrics, events, counts, readState, until: untilHolds, rootDir };
}

t.test("groups of pods: critical ones last, those below all priorities first", async (t) => {
  t.same(toShutdownGroups(30_000, 10_000), [
    { priority: 0, graceSeconds: 20 },
    { priority: CRITICAL, graceSeconds: 10 },
  ]);
  t.same(toShutdownGroups(0, 0), []);
  const pods = [-5, 0, 99, 100, CRITICAL].map((priority) => new PlayedPod(String(priority), priority));
  const groups = [10, 100, 1000].map((priority) => ({ priority, graceSeconds: priority }));
  t.same(
    groupByPriority(groups, pods).map((group) => group.pods.map(({ pod }) => pod.metadata?.name)),
    [["-5", "0", "99"], ["100"], [String(CRITICAL)]],
  );
});

t.test("a shutdown ends the groups in order, and releases the lock when the statuses are sent", async (t) => {
  const [web, batch, dns] = [new PlayedPod("web", 0), new PlayedPod("batch", 0, 5), new PlayedPod("dns", CRITICAL)];
  const made = makeManager(t, toShutdownGroups(30_000, 10_000), [dns, web, batch]);
  const { manager, logind, clock } = made;
  await made.until("the lock is taken", () => logind.locks === 1);
  t.equal(logind.delayMs, 30_000, "the machine waits for all groups");
  logind.notify(true);
  await made.until("the first group ends", () => web.termination !== undefined);
  t.ok(manager.isShuttingDown);
  t.same(made.events, ["Normal Shutdown Shutdown manager detected shutdown event"]);
  t.same(web.termination, {
    graceSeconds: 20,
    failure: { reason: "Terminated", message: MESSAGE },
    disruption: MESSAGE,
  });
  t.equal(batch.termination?.graceSeconds, 5, "the pod's own period is shorter");
  t.equal(dns.termination, undefined);
  t.match(formatMetrics([made.metrics], "prometheus"), /^kubelet_graceful_shutdown_end_time_seconds 0$/m);
  t.same(made.readState(), { startTime: "2026-01-02T03:04:05.000Z", endTime: "0001-01-01T00:00:00Z" }, "as kubelet");
  web.end();
  batch.end();
  await made.until("the critical group ends", () => dns.termination !== undefined);
  t.equal(dns.termination?.graceSeconds, 10);
  t.equal(logind.locks, 1, "the machine waits");
  // A pod that does not end in time is left to the machine.
  await clock.advance(10_000);
  await made.until("the lock is released", () => logind.locks === 0);
  t.same(made.counts(), { reports: 1, flushes: 1 });
  t.same(made.readState(), { startTime: "2026-01-02T03:04:05.000Z", endTime: "2026-01-02T03:04:15.000Z" });
  t.match(formatMetrics([made.metrics], "prometheus"), /^kubelet_graceful_shutdown_end_time_seconds 1\.?\d+/m);
});

t.test("a group without pods is not waited for", async (t) => {
  const dns = new PlayedPod("dns", CRITICAL);
  const made = makeManager(t, toShutdownGroups(30_000, 10_000), [dns]);
  await made.until("the lock is taken", () => made.logind.locks === 1);
  made.logind.notify(true);
  await made.until("the critical group ends", () => dns.termination !== undefined);
  dns.end();
  await made.until("the lock is released", () => made.logind.locks === 0);
});

t.test("a cancelled shutdown makes the node ready again, and takes a new lock", async (t) => {
  const made = makeManager(t, toShutdownGroups(30_000, 10_000), []);
  const { logind, manager } = made;
  await made.until("the lock is taken", () => logind.locks === 1);
  logind.notify(true);
  await made.until("the lock is released", () => logind.locks === 0);
  logind.notify(true);
  logind.notify(false);
  await made.until("a new lock is taken", () => logind.locks === 1);
  t.notOk(manager.isShuttingDown);
  t.same(
    made.events.map((event) => event.split(" ").at(-1)),
    ["event", "cancellation"],
    "a repeated notice changes nothing",
  );
  t.equal(made.counts().reports, 2);
});

t.test("a lost connection is opened again, with a new lock; the agent's end releases it", async (t) => {
  const logind = new FakeLogind();
  logind.failures.push(new Error("no bus"));
  const made = makeManager(t, toShutdownGroups(2_000, 0), [], logind);
  await made.until("the first attempt failed", () => logind.failures.length === 0);
  await made.clock.advance(1_000);
  await made.until("the lock is taken", () => logind.locks === 1);
  logind.disconnect();
  await made.until("no client watches", () => !logind.isWatched);
  await made.clock.advance(1_000);
  await made.until("the next watch", () => logind.isWatched && logind.locks === 1);
});
