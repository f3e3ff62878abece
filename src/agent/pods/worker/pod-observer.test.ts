import t from "tap";
import { FakeRuntime } from "../../../testing/agent/fake-runtime.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { digestOf, labels } from "../../runtime/observation.ts";
import { PodObserver } from "./pod-observer.ts";

t.test("PodObserver.refresh() requests nothing after a later listing of the same state", async (t) => {
  const clock = new FakeClock();
  const { runtime, calls } = new FakeRuntime(clock);
  const metadata = { name: "p", uid: "u", namespace: "default", attempt: 0 };
  await runtime.runPodSandbox({ config: { metadata, labels: { [labels.podUid]: "u" } } });
  const observer = new PodObserver({
    runtime,
    clock,
    pod: () => ({ metadata: { name: "p", uid: "u" }, spec: { containers: [] } }),
    onObservation: () => {},
    onStatusError: () => {},
    signal: new AbortController().signal,
  });
  const requestsOf = async (adopt: () => void): Promise<boolean> => {
    observer.isCurrent = false;
    const before = calls.length;
    adopt();
    t.equal((await observer.refresh()).sandboxes.length, 1);
    return calls.length > before;
  };
  const requestedAt = clock.monotonic();
  await clock.advance(1_000);
  t.ok(await requestsOf(() => {}), "without a listing");
  const digest = digestOf(observer.observation);
  t.ok(await requestsOf(() => observer.adoptListing({ digest, requestedAt })), "the listing is older");
  const later = () => ({ digest, requestedAt: clock.monotonic() });
  t.ok(await requestsOf(() => observer.adoptListing({ ...later(), digest: "other" })), "the state differs");
  t.notOk(await requestsOf(() => observer.adoptListing(later())));
  await observer.create(async () => undefined);
  t.ok(await requestsOf(() => observer.adoptListing(later())), "after a creation");
});
