import t from "tap";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeRuntime } from "../../testing/agent/fake-runtime.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { labels } from "./observation.ts";
import { Relister } from "./relister.ts";
import type { Runtime } from "./runtime.ts";

interface Watched extends AsyncDisposable {
  readonly clock: FakeClock;
  readonly fake: FakeRuntime;
  readonly relister: Relister;
  readonly told: string[];
  /** Whether those who are told want to know. */
  listens: boolean;
  listings(): number;
}

function watched(): Watched {
  const clock = new FakeClock();
  const fake = new FakeRuntime(clock);
  const stop = new AbortController();
  const told: string[] = [];
  let listings = 0;
  const runtime: Runtime = {
    ...fake.runtime,
    listContainers(request, signal) {
      listings++;
      return fake.runtime.listContainers(request, signal);
    },
  };
  const onChange = (uid: string, digest: string) => {
    told.push(`${uid}: ${digest.replace(/^[^=]+/, "sandbox")}`);
    return at.listens;
  };
  const relister = new Relister({ runtime, clock, log: silentLogger, onChange, signal: stop.signal });
  const running = relister.run();
  const at: Watched = {
    clock,
    fake,
    relister,
    told,
    listens: true,
    listings: () => listings,
    async [Symbol.asyncDispose]() {
      stop.abort(new Error("over"));
      await running;
    },
  };
  return at;
}

t.test("Relister lists once soon after any number of requests", async (t) => {
  await using at = watched();
  await at.clock.advance(60_000);
  const before = at.listings();
  for (let times = 0; times < 20; times++) {
    at.relister.requestRelist();
    await at.clock.advance(0);
  }
  t.equal(at.listings(), before, "all of them together");
  await at.clock.advance(100);
  t.equal(at.listings(), before + 1);
});

t.test("Relister reports the digest of each pod that changed", async (t) => {
  await using at = watched();
  await at.clock.advance(1_000);
  const metadata = { name: "web", uid: "1", namespace: "default", attempt: 0 };
  const config = { metadata, labels: { [labels.podUid]: "1" } };
  const { podSandboxId } = await at.fake.runtime.runPodSandbox({ config });
  await at.clock.advance(10_000);
  await at.fake.runtime.stopPodSandbox({ podSandboxId });
  await at.clock.advance(10_000);
  await at.fake.runtime.removePodSandbox({ podSandboxId });
  await at.clock.advance(10_000);
  t.same(at.told, ["1: sandbox=ready", "1: sandbox=stopped", "1: "]);
});

t.test("Relister reports a change again after the next listing if onChange returned false", async (t) => {
  await using at = watched();
  t.equal(at.relister.isAbsent("1"), false, "before the first listing nobody knows");
  await at.clock.advance(1_000);
  t.equal(at.relister.isAbsent("1"), true);
  at.listens = false;
  const metadata = { name: "web", uid: "1", namespace: "default", attempt: 0 };
  await at.fake.runtime.runPodSandbox({ config: { metadata, labels: { [labels.podUid]: "1" } } });
  at.relister.requestRelist();
  await at.clock.advance(100);
  at.listens = true;
  t.same(at.told, ["1: sandbox=ready"]);
  t.equal(at.relister.isAbsent("1"), false);
  await at.clock.advance(10_000);
  t.same(at.told, ["1: sandbox=ready", "1: sandbox=ready"]);
});
