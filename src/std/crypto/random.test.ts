import t from "tap";
import { randomSuffix, randomUuid, seededRandom, systemRandom } from "./random.ts";

t.test("uuid() is a version 4 UUID", async (t) => {
  for (const random of [systemRandom, seededRandom(3)]) {
    t.match(randomUuid(random), /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  }
  t.not(randomUuid(systemRandom), randomUuid(systemRandom));
});

t.test("suffix() uses Kubernetes' alphabet", async (t) => {
  t.match(randomSuffix(systemRandom), /^[bcdfghjklmnpqrstvwxz2456789]{5}$/);
  t.equal(randomSuffix(systemRandom, 12).length, 12);
});

t.test("seededRandom() repeats itself", async (t) => {
  t.same(seededRandom(42).bytes(8), seededRandom(42).bytes(8));
  t.notSame(seededRandom(42).bytes(8), seededRandom(43).bytes(8));
  const random = seededRandom(1);
  for (let i = 0; i < 100; i++) {
    const fraction = random.fraction();
    t.ok(fraction >= 0 && fraction < 1);
  }
  const system = systemRandom.fraction();
  t.ok(system >= 0 && system < 1);
});
