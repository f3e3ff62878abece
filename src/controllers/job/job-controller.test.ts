import t from "tap";
import { jobKind } from "../../api/batch/job/kind.ts";
import type { Job, JobSpec } from "../../api/batch/job/schema.ts";
import { builtinKinds } from "../../api/builtin.ts";
import { eventKind } from "../../api/core/event/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { resourceQuotaKind } from "../../api/core/resource-quota/kind.ts";
import type { Kind } from "../../api/kind.ts";
import { StatusError } from "../../api/status.ts";
import type { Client } from "../../client/client.ts";
import { createSharedInformers } from "../../client/informer/shared-informers.ts";
import { seededRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { startInMemoryCluster } from "../../testing/apiserver/in-memory-cluster.ts";
import { objectsOf, syncOnce } from "../../testing/controllers/sync-once.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { passTime } from "../../testing/std/pass-time.ts";
import { defaultControllerOptions } from "../controller-options.ts";
import { runJobController } from "./job-controller.ts";

const namespace = "default";

async function startCluster(t: Parameters<typeof startInMemoryCluster>[0], others: readonly string[] = []) {
  const clock = new FakeClock();
  const embeddedControllers = ["serviceaccount", "garbage-collector", ...others];
  const client = await startInMemoryCluster(t, { embeddedControllers }, clock);
  await passTime(clock, 1000);
  return { client, clock };
}

/** Starts a job controller; returns a function to stop it. */
function startJobController(client: Client, clock: FakeClock, observer: Client = client): () => Promise<void> {
  const stop = new AbortController();
  const shared = { clock, random: seededRandom(1), log: silentLogger };
  const informers = createSharedInformers({ client: observer, ...shared }, stop.signal);
  const options = defaultControllerOptions;
  const deps = { ...shared, client, observer, informers, kinds: builtinKinds, options, signal: stop.signal };
  const running = runJobController(deps);
  return async () => {
    stop.abort();
    await running;
    await informers[Symbol.asyncDispose]();
  };
}

async function createJob(client: Client, spec: Partial<JobSpec>): Promise<void> {
  const template = { spec: { restartPolicy: "Never" as const, containers: [{ name: "c", image: "task:1" }] } };
  await client.create(jobKind, { metadata: { name: "job", namespace }, spec: { template, ...spec } });
}

async function podsOf(client: Client): Promise<readonly Pod[]> {
  return (await client.list(podKind, { namespace })).items;
}

async function jobOf(client: Client): Promise<Job> {
  return await client.get(jobKind, { name: "job", namespace });
}

/** Pods of which the node has not reported the end. */
async function endPods(client: Client, phase: "Succeeded" | "Failed"): Promise<void> {
  for (const { metadata, status } of await podsOf(client)) {
    if (status?.phase === "Succeeded" || status?.phase === "Failed") continue;
    const name = { name: metadata?.name ?? "", namespace };
    await client.patch(podKind, name, "merge", { status: { phase } }, { subresource: "status" });
  }
}

function withMethods(client: Client, methods: Partial<Client>): Client {
  return new Proxy(client, {
    get(target, name: keyof Client) {
      const own = methods[name] ?? target[name];
      return typeof own === "function" ? own.bind(target) : own;
    },
  });
}

/** Calls of the method with the kind fail as long as the function returns a code. */
function withFailures(client: Client, method: keyof Client, kind: Kind, codeOf: () => number | undefined): Client {
  return new Proxy(client, {
    get(target, name: keyof Client) {
      return async (...parameters: unknown[]): Promise<unknown> => {
        const code = name === method && parameters[0] === kind ? codeOf() : undefined;
        if (code !== undefined) throw new StatusError(code, "", "injected");
        return await (target[name] as (...parameters: unknown[]) => Promise<unknown>).apply(target, parameters);
      };
    },
  });
}

t.test("two controllers at once create each pod once and count each once", async (t) => {
  const { client, clock } = await startCluster(t);
  const stops = [startJobController(client, clock), startJobController(client, clock)];
  await passTime(clock, 100);
  await createJob(client, { completions: 3, parallelism: 3, completionMode: "Indexed" });
  await passTime(clock, 3000);
  await endPods(client, "Succeeded");
  for (let second = 0; second < 10; second++) await passTime(clock, 1000);
  for (const stop of stops) await stop();
  const { status } = await jobOf(client);
  t.match(status, { succeeded: 3, completedIndexes: "0-2", uncountedTerminatedPods: {} });
  t.equal(status?.failed ?? 0, 0);
  t.ok(status?.conditions?.some(({ type, status: value }) => type === "Complete" && value === "True"));
  t.equal((await podsOf(client)).filter(({ metadata }) => (metadata?.finalizers ?? []).length > 0).length, 0);
});

const FAULTS = [
  ["a conflict of the status", "updateStatus", jobKind, 409],
  ["an error of the status", "updateStatus", jobKind, 500],
  ["an error of the removal of finalizers", "patch", podKind, 500],
  ["an error of the creation of pods", "create", podKind, 500],
] as const;
for (const [title, method, kind, code] of FAULTS) {
  t.test(`a job is counted exactly after ${title} in each step`, async (t) => {
    const { client, clock } = await startCluster(t);
    // Every second call fails.
    let calls = 0;
    const faulty = withFailures(client, method, kind as Kind, () => (calls++ % 2 === 0 ? code : undefined));
    const stop = startJobController(faulty, clock, client);
    await passTime(clock, 100);
    await createJob(client, { completions: 4, parallelism: 2, backoffLimit: 5 });
    for (let round = 0; round < 8; round++) {
      for (let second = 0; second < 4; second++) await passTime(clock, 1000);
      await endPods(client, "Succeeded");
    }
    await passTime(clock, 30_000);
    await stop();
    t.ok(calls > 1);
    const { status } = await jobOf(client);
    t.match(status, { succeeded: 4, uncountedTerminatedPods: {} });
    t.equal((await podsOf(client)).length, 4);
  });
}

t.test("a controller that restarts after each step goes on where the other stopped", async (t) => {
  const { client, clock } = await startCluster(t);
  // The connection breaks after one write.
  let writes = 0;
  const once = withFailures(
    withFailures(client, "updateStatus", jobKind as Kind, () => (writes++ > 0 ? 503 : undefined)),
    "patch",
    podKind as Kind,
    () => (writes++ > 0 ? 503 : undefined),
  );
  await createJob(client, { completions: 2, parallelism: 2 });
  for (let restart = 0; restart < 12; restart++) {
    writes = 0;
    const stop = startJobController(once, clock, client);
    await passTime(clock, 1500);
    await stop();
    await endPods(client, "Succeeded");
  }
  const { status } = await jobOf(client);
  t.match(status, { succeeded: 2, uncountedTerminatedPods: {} });
  t.ok(status?.conditions?.some(({ type }) => type === "Complete"));
  t.equal((await podsOf(client)).length, 2);
});

const SELECTORS = [
  ["of the server", {}, undefined],
  ["of labels", { app: "a", tier: "b" }, { matchLabels: { app: "a", tier: "b" } }],
  ["of expressions", { app: "a" }, { matchExpressions: [{ key: "app", operator: "In", values: ["a", "b"] }] }],
] as const;
for (const [title, labels, selector] of SELECTORS) {
  t.test(`a pod whose creation was not answered is created once; the job has a selector ${title}`, async (t) => {
    const { client, clock } = await startCluster(t);
    let unanswered = 1;
    const lossy = withMethods(client, {
      async create(kind, object, signal) {
        const created = await client.create(kind, object, signal);
        if (kind === (podKind as Kind) && unanswered-- > 0) throw new Error("socket hang up");
        return created;
      },
    });
    const { promise: isRecovered, resolve: recover } = Promise.withResolvers<void>();
    const late = withMethods(client, {
      async *watch(kind, query, signal) {
        for await (const event of client.watch(kind, query, signal)) {
          if (kind === (podKind as Kind) && event.type !== "BOOKMARK") await isRecovered;
          yield event;
        }
      },
    });
    const stop = startJobController(lossy, clock, late);
    await passTime(clock, 100);
    const template = {
      metadata: { labels },
      spec: { restartPolicy: "Never" as const, containers: [{ name: "c", image: "task:1" }] },
    };
    // A pod of another controller has the same labels.
    const ownerReferences = [{ apiVersion: "v1", kind: "Node", name: "other", uid: "other", controller: true }];
    await client.create(podKind, {
      metadata: { name: "other", namespace, labels, ownerReferences },
      spec: template.spec,
    });
    await createJob(client, {
      template,
      ...(selector === undefined ? {} : { manualSelector: true, selector }),
    });
    for (let second = 0; second < 10; second++) await passTime(clock, 1000);
    const ownPods = async () => (await podsOf(client)).filter(({ metadata }) => metadata?.name !== "other");
    t.equal((await ownPods()).length, 1);
    recover();
    for (let second = 0; second < 10; second++) await passTime(clock, 1000);
    t.equal((await ownPods()).length, 1);
    t.equal((await jobOf(client)).status?.active, 1, "the job goes on");
    await stop();
  });
}

t.test("pods that a quota refuses are reported and created later", async (t) => {
  const { client, clock } = await startCluster(t, ["job", "resourcequota"]);
  const hard = { pods: "1" };
  await client.create(resourceQuotaKind, { metadata: { name: "q", namespace }, spec: { hard } });
  await passTime(clock, 1000);
  await createJob(client, { completions: 3, parallelism: 3 });
  await passTime(clock, 3000);
  t.equal((await podsOf(client)).length, 1);
  t.equal((await jobOf(client)).status?.active, 1);
  const { items } = await client.list(eventKind, { namespace });
  t.ok(items.some(({ reason, message }) => reason === "FailedCreate" && /exceeded quota: q/.test(message ?? "")));
  await client.delete(resourceQuotaKind, { name: "q", namespace });
  await passTime(clock, 20_000);
  t.equal((await podsOf(client)).length, 3);
});

t.test("a job whose deadline passes while no controller runs fails afterwards", async (t) => {
  const { client, clock } = await startCluster(t);
  const stop = startJobController(client, clock);
  await createJob(client, { activeDeadlineSeconds: 60 });
  await passTime(clock, 2000);
  await stop();
  await passTime(clock, 120_000);
  const stopAgain = startJobController(client, clock);
  await passTime(clock, 5000);
  await stopAgain();
  const { status } = await jobOf(client);
  t.match(status?.conditions?.[0], { type: "FailureTarget", reason: "DeadlineExceeded" });
  t.ok((await podsOf(client)).every(({ metadata }) => metadata?.deletionTimestamp !== undefined));
});

const OWNERS = [
  ["a job that is gone", { apiVersion: "batch/v1", kind: "Job" }, true],
  ["a job of another API", { apiVersion: "batch.example.com/v1", kind: "Job" }, false],
  ["another controller", { apiVersion: "apps/v1", kind: "ReplicaSet" }, false],
] as const;
for (const [title, owner, isReleased] of OWNERS) {
  t.test(`a deleted pod of ${title} ${isReleased ? "loses" : "keeps"} the finalizer of jobs`, async (t) => {
    const pod: Pod = {
      metadata: {
        name: "p",
        namespace,
        uid: "p",
        deletionTimestamp: "2026-01-01T00:00:00Z",
        finalizers: ["batch.kubernetes.io/job-tracking"],
        ownerReferences: [{ ...owner, name: "gone", uid: "gone", controller: true }],
      },
    };
    const found = await syncOnce(runJobController, objectsOf(podKind, pod), [objectsOf(jobKind)]);
    t.same(found, isReleased ? ["patch pod p"] : []);
  });
}

t.test("a job of another controller is left alone", async (t) => {
  const { client, clock } = await startCluster(t, ["job"]);
  await createJob(client, { managedBy: "example.com/queue" });
  await passTime(clock, 5000);
  t.equal((await podsOf(client)).length, 0);
  t.equal((await jobOf(client)).status?.startTime, undefined);
});
