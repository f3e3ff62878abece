import t from "tap";
import { createCustomKind } from "../../api/apiextensions/custom-resource/kind.ts";
import { Scheme } from "../../api/scheme.ts";
import { Registries } from "../../registry/registries.ts";
import { seededRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { createMemoryStore } from "../../storage/memory.ts";
import type { Revision } from "../../storage/store.ts";
import { widgets } from "../../testing/api/definition-fixture.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { ServedKind } from "./served-kind.ts";

t.test("ServedKind keeps its registry open until requests in flight are completed", async (t) => {
  const clock = new FakeClock();
  await using store = createMemoryStore({ clock });
  const deps = { store, prefix: "/registry", clock, random: seededRandom(1), log: silentLogger };
  await using registries = new Registries(new Scheme(), deps);
  const served = new ServedKind(createCustomKind(widgets({}), "v1"), { terminating: false }, registries);
  const { cache } = served.registry;
  const completed = Promise.withResolvers<void>();
  const request = served.runRequest(async () => {
    await completed.promise;
    await cache.ready();
    return "completed";
  });
  let retired = false;
  const retiring = served.retire().then(() => {
    retired = true;
  });
  t.equal(served.retired.aborted, true, "watches end at once");
  await Promise.resolve();
  t.equal(retired, false);
  completed.resolve();
  t.equal(await request, "completed");
  await retiring;
  await t.rejects(cache.waitFor((cache.revision() + 1) as Revision), { code: "closed" });
});
