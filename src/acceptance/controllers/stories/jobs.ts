/** Jobs whose pods fail or succeed, and the runs of a cron job. */
import { cronJobKind } from "../../../api/batch/cron-job/kind.ts";
import { jobKind } from "../../../api/batch/job/kind.ts";
import { podKind } from "../../../api/core/pod/kind.ts";
import type { Scene, Story } from "./story.ts";

const HOUR_MS = 3_600_000;
const TRACKING = "batch.kubernetes.io/job-tracking";
const SLOW_MS = 5000;

const template = (image: string) => ({
  spec: { restartPolicy: "Never" as const, containers: [{ name: "c", image }] },
});

/** Two instances of the controller may create more pods than wanted, all of which count. */
async function readJobs({ client, namespace, mayExceed }: Scene) {
  const jobs = (await client.list(jobKind, { namespace })).items;
  const pods = (await client.list(podKind, { namespace })).items;
  return {
    jobs: jobs
      .map(({ metadata, spec, status }) => ({
        name: metadata?.name,
        active: status?.active,
        succeeded: Math.min(status?.succeeded ?? 0, spec?.completions ?? 1),
        failed: mayExceed && status?.failed !== undefined ? Math.min(status.failed, 2) : status?.failed,
        indexes: status?.completedIndexes,
        uncounted: status?.uncountedTerminatedPods,
        conditions: (status?.conditions ?? []).map(({ type, reason }) => `${type} ${reason}`).sort(),
      }))
      .sort((a, b) => ((a.name ?? "") < (b.name ?? "") ? -1 : 1)),
    tracked: pods.filter(({ metadata }) => metadata?.finalizers?.includes(TRACKING)).length,
  };
}

async function haveEnded({ client, namespace }: Scene): Promise<boolean> {
  const { items } = await client.list(jobKind, { namespace });
  return items.every(
    ({ spec, status }) =>
      spec?.suspend === true ||
      status?.conditions?.some(({ type }) => type === "Complete" || type === "Failed") === true,
  );
}

export const jobsStory: Story = {
  title: "jobs",
  controllers: ["job"],
  rules: (isSlow) => {
    const after = isSlow ? SLOW_MS : undefined;
    return [
      { image: "flaky:1", fail: 1, first: 2, after },
      { image: "bad:1", fail: 1, after },
      { succeed: 0, after },
    ].map((rule) => ({ ...rule, after: rule.after ?? 400 }));
  },
  async play(scene) {
    const { client, namespace } = scene;
    const create = (name: string, spec: object, image: string) =>
      client.create(jobKind, { metadata: { name, namespace }, spec: { ...spec, template: template(image) } });
    await create("flaky", { completions: 5, parallelism: 2, backoffLimit: 6 }, "flaky:1");
    await create("hopeless", { backoffLimit: 1 }, "bad:1");
    await create("indexed", { completions: 4, parallelism: 4, completionMode: "Indexed" }, "good:1");
    await create("later", { completions: 2, suspend: true }, "good:1");
    await scene.step(
      () => readJobs(scene),
      () => haveEnded(scene),
    );
    await client.patch(jobKind, { name: "later", namespace }, "merge", { spec: { suspend: false } });
    await client.delete(jobKind, { name: "indexed", namespace }, { propagationPolicy: "Background" });
    await scene.step(
      () => readJobs(scene),
      () => haveEnded(scene),
    );
  },
};

export const cronJobStory: Story = {
  title: "the runs of a cron job",
  controllers: ["cronjob", "job"],
  rules: (isSlow) => [{ succeed: 0, after: isSlow ? SLOW_MS : 400 }],
  async play(scene) {
    const { client, clock, namespace } = scene;
    const name = "hourly";
    await client.create(cronJobKind, {
      metadata: { name, namespace },
      spec: {
        schedule: "0 * * * *",
        concurrencyPolicy: "Forbid",
        successfulJobsHistoryLimit: 1,
        jobTemplate: { spec: { template: template("good:1") } },
      },
    });
    const first = (Math.ceil(clock.now() / HOUR_MS) + 4) * HOUR_MS;
    /** The job of the last run; a job has the minute of its run in its name, here in hours from the first one on. */
    const read = async () => {
      const { items } = await client.list(jobKind, { namespace });
      const { status } = await client.get(cronJobKind, { name, namespace });
      return {
        job: items
          .map(({ metadata, status }) => ({
            hours: (Number(metadata?.name?.slice(name.length + 1)) * 60_000 - first) / HOUR_MS,
            // Another controller may create pods of the same job.
            succeeded: (status?.succeeded ?? 0) > 0,
          }))
          .sort((a, b) => b.hours - a.hours)[0],
        active: (status?.active ?? []).length,
        last: (Date.parse(status?.lastScheduleTime ?? "") - first) / HOUR_MS,
      };
    };
    for (const hours of [0, 6, 12]) {
      clock.set(first + hours * HOUR_MS - 2000);
      const isDone = async (): Promise<boolean> => {
        const { job, active } = await read();
        return active === 0 && job?.hours === hours && job.succeeded;
      };
      await scene.step(read, isDone);
    }
    await client.patch(cronJobKind, { name, namespace }, "merge", { spec: { suspend: true } });
  },
};
