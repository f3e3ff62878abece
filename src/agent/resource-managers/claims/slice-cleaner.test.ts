import t from "tap";
import type { ListQuery } from "../../../client/client.ts";
import { seededRandom } from "../../../std/crypto/random.ts";
import { silentLogger } from "../../../std/log/logger.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { SliceCleaner } from "./slice-cleaner.ts";

const DRIVER = "gpu.example.com";
const OF_DRIVER = `spec.nodeName=n1,spec.driver=${DRIVER}`;

function start(t: { teardown(stop: () => Promise<void>): void }) {
  const clock = new FakeClock();
  const deleted: (string | undefined)[] = [];
  const failures: Error[] = [];
  const client = {
    async deleteCollection(_kind: unknown, { fieldSelector }: ListQuery) {
      const failure = failures.shift();
      if (failure !== undefined) throw failure;
      deleted.push(fieldSelector);
    },
  };
  const options = { client, nodeName: "n1", clock, random: seededRandom(1), log: silentLogger };
  const open = () => {
    const cleaner = new SliceCleaner(options);
    t.teardown(async () => await cleaner[Symbol.asyncDispose]());
    return cleaner;
  };
  return { clock, deleted, failures, open };
}

t.test("the slices of the node are deleted when the agent starts", async (t) => {
  const { clock, deleted, failures, open } = start(t);
  failures.push(new Error("no API server"), new Error("no API server"));
  open();
  await clock.advance(0);
  t.same(deleted, []);
  await clock.advance(2_000);
  t.same(deleted, []);
  await clock.advance(3_000);
  t.same(deleted, ["spec.nodeName=n1"]);
});

t.test("the slices of a driver that is gone are deleted after 30 s, unless it comes back", async (t) => {
  const { clock, deleted, open } = start(t);
  const cleaner = open();
  await clock.advance(0);
  deleted.length = 0;
  cleaner.driverDeregistered(DRIVER);
  await clock.advance(29_000);
  cleaner.driverRegistered(DRIVER);
  await clock.advance(60_000);
  t.same(deleted, []);
  cleaner.driverDeregistered(DRIVER);
  await clock.advance(20_000);
  cleaner.driverDeregistered(DRIVER);
  await clock.advance(11_000);
  t.same(deleted, [OF_DRIVER]);
});

t.test("a stop ends waits for drivers", async (t) => {
  const { clock, deleted, open } = start(t);
  const cleaner = open();
  await clock.advance(0);
  cleaner.driverDeregistered(DRIVER);
  await cleaner[Symbol.asyncDispose]();
  await clock.advance(60_000);
  t.same(deleted, ["spec.nodeName=n1"]);
});
