import t from "tap";
import { Leases } from "./leases.ts";

t.test("Leases expires values of about the same time together, and none before its time to live ends", async (t) => {
  const leases = new Leases(60);
  const ends = [0, 1, 59, 60, 61, 125].map((second) => leases.expiresAt(3600, second * 1000) / 1000);
  t.same(ends, [3660, 3660, 3660, 3660, 3721, 3785]);
});

t.test("Leases extends no time to live by more than a twentieth", async (t) => {
  const leases = new Leases(60);
  t.equal(leases.expiresAt(100, 0), 105_000);
  t.equal(leases.expiresAt(100, 5000), 105_000);
  t.equal(leases.expiresAt(100, 5001), 110_001);
  t.equal(leases.expiresAt(15, 5001), 20_751, "another time to live has a lease of its own");
});

t.test("Leases of 0 seconds share nothing; a lease has at most a thousand values", async (t) => {
  const none = new Leases(0);
  t.same(
    [0, 10, 10].map((now) => none.expiresAt(1, now)),
    [1000, 1010, 1010],
  );
  const full = new Leases(60);
  const ends = new Set<number>();
  for (let now = 0; now < 1001; now++) ends.add(full.expiresAt(3600, now));
  t.same([...ends], [3_660_000, 3_661_000]);
});
