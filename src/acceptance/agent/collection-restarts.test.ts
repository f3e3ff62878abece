/** An agent that ends at each step of a collection: the next one finds what is left, and removes no more than that. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t, { type Test } from "tap";
import { ContainerCollector } from "../../agent/garbage-collection/container-collector.ts";
import { ImageCollector } from "../../agent/garbage-collection/image-collector.ts";
import { PullRecords } from "../../agent/images/pull-records/pull-records.ts";
import type { ObservedContainer } from "../../agent/runtime/observation.ts";
import type { FileSystem } from "../../agent/stats/file-systems.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeRuntime } from "../../testing/agent/fake-runtime.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";

const MINUTE = 60_000;

function makeDirectory(t: Test): string {
  const directory = mkdtempSync(join(tmpdir(), "svc-collect-"));
  t.teardown(() => rmSync(directory, { recursive: true }));
  return directory;
}

const KILLED = "the agent is killed";

/** Counts the steps that change something, and ends the agent at one of them, before or after it is done. */
class Steps {
  count = 0;
  isKilled = false;
  readonly #killAt: number;

  constructor(killAt: number) {
    this.#killAt = killAt;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    this.#next();
    const result = await work();
    this.#next();
    return result;
  }

  /** Every further step fails as well. */
  #next(): void {
    this.isKilled ||= this.count++ === this.#killAt;
    if (this.isKilled) throw new Error(KILLED);
  }
}

t.test("containers: their logs go with them, whenever the agent ends", async (t) => {
  for (let killAt = 0; killAt < 4; killAt++) {
    const directory = makeDirectory(t);
    const containers = Array.from({ length: 4 }, (_, run): ObservedContainer => {
      const logPath = join(directory, `${run}.log`);
      writeFileSync(logPath, "");
      writeFileSync(`${logPath}.20261122-100000.gz`, "");
      return { id: `${run}`, name: "c", state: "exited", createdAt: run, logPath } as ObservedContainer;
    });
    const collect = async (steps: Steps): Promise<void> => {
      const runtime = {
        removeContainer: ({ containerId = "" }) =>
          steps.run(async () => {
            const index = containers.findIndex(({ id }) => id === containerId);
            if (index >= 0) containers.splice(index, 1);
            return {};
          }),
      };
      const pods = () => [{ observation: { sandboxes: [], containers } as never }];
      const common = { minAgeMs: 0, clock: new FakeClock(), log: silentLogger };
      await new ContainerCollector({ runtime, pods, deadMax: 1, ...common }).collect();
    };
    const steps = new Steps(killAt);
    // A container that cannot be removed fails the collection only if no other can.
    await collect(steps).catch((error: unknown) => t.match(error, { message: KILLED }));
    t.ok(steps.isKilled);
    await collect(new Steps(-1));
    t.same(
      containers.map(({ id }) => id),
      ["2", "3"],
      "the newest run, and one more",
    );
    for (const run of [0, 1]) t.notOk(existsSync(join(directory, `${run}.log`)), `log ${run}`);
    for (const run of [2, 3]) t.ok(existsSync(join(directory, `${run}.log`)), `log ${run}`);
  }
});

t.test("images: the next agent removes the others, and the records of those that are gone", async (t) => {
  for (let killAt = 0; killAt < 6; killAt++) {
    const directory = makeDirectory(t);
    mkdirSync(join(directory, "agent"));
    const clock = new FakeClock();
    const fake = new FakeRuntime(clock);
    fake.present.clear();
    fake.imageDirectory = "/images";
    for (const name of ["a:1", "b:1", "used:1"]) fake.addImage(name, { size: 600n });
    const used = () => [...fake.present.values()].reduce((sum, { size = 0n }) => sum + Number(size), 0);
    const start = async (steps: Steps) => {
      const records = await PullRecords.open({
        config: { policy: "NeverVerifyPreloadedImages", allowlist: [] },
        rootDir: join(directory, "agent"),
        images: fake.images,
        clock,
        log: silentLogger,
      });
      const { removeImage } = fake.images;
      const collector = new ImageCollector({
        images: { ...fake.images, removeImage: (request) => steps.run(() => removeImage(request)) },
        inUse: () => new Set(["used:1"]),
        kept: new Set(),
        readFileSystem: async () => ({ capacityBytes: 2000, availableBytes: 2000 - used() }) as FileSystem,
        recordEvent: () => {},
        onCollected: () => {},
        onEnded: (present, startedAt) => steps.run(() => records.prune(present, startedAt)),
        clock,
        log: silentLogger,
        highPercent: 85,
        lowPercent: 40,
        minAgeMs: 2 * MINUTE,
        maxAgeMs: 0,
      });
      return { collector, records };
    };
    const first = await start(new Steps(killAt));
    for (const name of ["a:1", "b:1", "used:1"]) await first.records.recordPulled(name, `sha256:${name}`, undefined);
    await first.collector.observe();
    await clock.advance(5 * MINUTE);
    await t.rejects(first.collector.collect());
    const next = await start(new Steps(-1));
    await next.collector.observe();
    await clock.advance(5 * MINUTE);
    await next.collector.collect();
    // One image less is below the high threshold.
    const left = killAt === 1 || killAt === 2 ? ["b:1", "used:1"] : ["used:1"];
    t.same([...fake.present.keys()], left, `killed at step ${killAt}`);
    t.equal(await next.records.mustPull("used:1", "sha256:used:1", []), false, "its record stays");
    t.equal(readdirSync(join(directory, "agent/image_manager/pulled")).length, left.length);
  }
});
