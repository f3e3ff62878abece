import t from "tap";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeRuntime } from "../../testing/agent/fake-runtime.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { labels } from "./observation.ts";
import { Relister } from "./relister.ts";
import type { Runtime } from "./runtime.ts";

interface Fixture extends AsyncDisposable {
  readonly clock: FakeClock;
  readonly fake: FakeRuntime;
  readonly relister: Relister;
  /** Calls of `onChange`. */
  readonly changes: string[];
  /** What `onChange` returns. */
  isProcessed: boolean;
  listings(): number;
}

function createFixture(): Fixture {
  const clock = new FakeClock();
  const fake = new FakeRuntime(clock);
  const stop = new AbortController();
  const changes: string[] = [];
  let listings = 0;
  const runtime: Runtime = {
    ...fake.runtime,
    listContainers(request, signal) {
      listings++;
      return fake.runtime.listContainers(request, signal);
    },
  };
  const onChange = (uid: string, digest: string) => {
    changes.push(`${uid}: ${digest.replace(/^[^=]+/, "sandbox")}`);
    return fixture.isProcessed;
  };
  const relister = new Relister({ runtime, clock, log: silentLogger, onChange, signal: stop.signal });
  const running = relister.run();
  const fixture: Fixture = {
    clock,
    fake,
    relister,
    changes,
    isProcessed: true,
    listings: () => listings,
    async [Symbol.asyncDispose]() {
      stop.abort(new Error("over"));
      await running;
    },
  };
  return fixture;
}

t.test("Relister lists once soon after any number of requests", async (t) => {
  await using fixture = createFixture();
  await fixture.clock.advance(60_000);
  const before = fixture.listings();
  for (let times = 0; times < 20; times++) {
    fixture.relister.requestRelist();
    await fixture.clock.advance(0);
  }
  t.equal(fixture.listings(), before, "requests are coalesced");
  await fixture.clock.advance(100);
  t.equal(fixture.listings(), before + 1);
});

t.test("Relister reports the digest of each pod that changed", async (t) => {
  await using fixture = createFixture();
  await fixture.clock.advance(1_000);
  const metadata = { name: "web", uid: "1", namespace: "default", attempt: 0 };
  const config = { metadata, labels: { [labels.podUid]: "1" } };
  const { podSandboxId } = await fixture.fake.runtime.runPodSandbox({ config });
  await fixture.clock.advance(10_000);
  await fixture.fake.runtime.stopPodSandbox({ podSandboxId });
  await fixture.clock.advance(10_000);
  await fixture.fake.runtime.removePodSandbox({ podSandboxId });
  await fixture.clock.advance(10_000);
  t.same(fixture.changes, ["1: sandbox=ready", "1: sandbox=stopped", "1: "]);
});

t.test("Relister.findPod() has a pod of the last listing while that is recent", async (t) => {
  await using fixture = createFixture();
  const { clock, fake, relister } = fixture;
  t.equal(relister.findPod("1"), undefined);
  const metadata = { name: "web", uid: "1", namespace: "default", attempt: 0 };
  await fake.runtime.runPodSandbox({ config: { metadata, labels: { [labels.podUid]: "1" } } });
  await clock.advance(10_000);
  const { digest = "", requestedAt = Number.NaN } = relister.findPod("1") ?? {};
  t.match(digest, /=ready$/);
  t.ok(clock.monotonic() - requestedAt <= 1_000);
  fake.fail("listContainers", new Error("the runtime is away"), 100);
  await clock.advance(15_000);
  t.ok(relister.findPod("1"));
  await clock.advance(10_000);
  t.equal(relister.findPod("1"), undefined);
});

t.test("Relister reports a change again after the next listing if onChange returned false", async (t) => {
  await using fixture = createFixture();
  t.equal(fixture.relister.isAbsent("1"), false, "false before the first listing");
  await fixture.clock.advance(1_000);
  t.equal(fixture.relister.isAbsent("1"), true);
  fixture.isProcessed = false;
  const metadata = { name: "web", uid: "1", namespace: "default", attempt: 0 };
  await fixture.fake.runtime.runPodSandbox({ config: { metadata, labels: { [labels.podUid]: "1" } } });
  fixture.relister.requestRelist();
  await fixture.clock.advance(100);
  fixture.isProcessed = true;
  t.same(fixture.changes, ["1: sandbox=ready"]);
  t.equal(fixture.relister.isAbsent("1"), false);
  await fixture.clock.advance(10_000);
  t.same(fixture.changes, ["1: sandbox=ready", "1: sandbox=ready"]);
});

t.test("Relister lists rarely while events announce changes", async (t) => {
  await using fixture = createFixture();
  const { clock, fake, relister } = fixture;
  const metadata = { name: "web", uid: "1", namespace: "default", attempt: 0 };
  await fake.runtime.runPodSandbox({ config: { metadata, labels: { [labels.podUid]: "1" } } });
  await clock.advance(60_000);
  const countIn = async (milliseconds: number): Promise<number> => {
    const before = fixture.listings();
    await clock.advance(milliseconds);
    return fixture.listings() - before;
  };
  t.equal(await countIn(60_000), 60, "each second without events");
  relister.setEventStream(true);
  await clock.advance(10_000);
  t.equal(await countIn(60_000), 6);
  relister.requestRelist();
  const soon = await countIn(5_000);
  t.ok(soon >= 6 && soon <= 9, `after an event as without events: ${soon}`);
  fixture.isProcessed = false;
  await fake.runtime.stopPodSandbox({ podSandboxId: [...fake.sandboxes.keys()][0] ?? "" });
  await clock.advance(20_000);
  t.ok((await countIn(10_000)) >= 10, "each second while a change is not processed");
  fixture.isProcessed = true;
  await clock.advance(20_000);
  t.equal(await countIn(60_000), 6);
  relister.setEventStream(false);
  t.equal(await countIn(100), 1, "at once when the stream ends");
});
