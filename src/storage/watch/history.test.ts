import t from "tap";
import type { Revision } from "../store.ts";
import { History } from "./history.ts";

const entry = (revision: number, size = 1) => ({ revision: revision as Revision, size });

t.test("History keeps the latest entries within both limits", async (t) => {
  const history = new History({ items: 100, bytes: 1000, ageMs: 1000 }, 5 as Revision);
  t.equal(history.start, 5);
  for (let revision = 6; revision <= 1000; revision++) history.push(entry(revision), 0);
  t.same([history.length, history.start], [100, 900]);
  t.same(
    history.since(997 as Revision).map(({ revision }) => revision),
    [998, 999, 1000],
  );
  t.equal(history.since(1000 as Revision).length, 0);
  t.equal(history.since(900 as Revision).length, 100);
  history.push(entry(1001, 950), 0);
  t.same([history.length, history.start], [51, 950]);
  history.push(entry(1002, 5000), 0);
  t.same([history.length, history.start], [1, 1001], "the latest stays, whatever its size");
});

t.test("History.restart() drops all entries", async (t) => {
  const history = new History({ items: 10, bytes: 1000, ageMs: 1000 }, 1 as Revision);
  history.push(entry(2), 0);
  history.restart(9 as Revision);
  t.same([history.length, history.start, history.since(1 as Revision)], [0, 9, []]);
  history.push(entry(10), 0);
  t.equal(history.since(9 as Revision).length, 1);
});

t.test("History drops entries of an age, and keeps the latest hundred", async (t) => {
  const history = new History({ items: 10_000, bytes: 1e6, ageMs: 300_000 }, 0 as Revision);
  let revision = 0;
  for (let second = 0; second < 3600; second++) history.push(entry(++revision), second * 1000);
  t.ok(history.length >= 300 && history.length <= 331, `${history.length} entries of the last 300 s`);
  t.equal(history.start, revision - history.length);
  t.equal(history.since(history.start).length, history.length);
  history.push(entry(++revision), 20_000_000);
  t.equal(history.length, 101, "after hours the latest hundred are left, and the new one");
  for (let hour = 6; hour < 30; hour++) history.push(entry(++revision), hour * 3_600_000);
  t.ok(history.length >= 100 && history.length <= 101);
  history.restart(5000 as Revision);
  history.push(entry(5001), 110_000_000);
  t.same([history.length, history.start], [1, 5000]);
});
