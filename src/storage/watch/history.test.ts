import t from "tap";
import type { Revision } from "../store.ts";
import { History } from "./history.ts";

const entry = (revision: number, size = 1) => ({ revision: revision as Revision, size });

t.test("History keeps the latest entries within both limits", async (t) => {
  const history = new History({ items: 100, bytes: 1000 }, 5 as Revision);
  t.equal(history.start, 5);
  for (let revision = 6; revision <= 1000; revision++) history.push(entry(revision));
  t.same([history.length, history.start], [100, 900]);
  t.same(
    history.since(997 as Revision).map(({ revision }) => revision),
    [998, 999, 1000],
  );
  t.equal(history.since(1000 as Revision).length, 0);
  t.equal(history.since(900 as Revision).length, 100);
  history.push(entry(1001, 950));
  t.same([history.length, history.start], [51, 950]);
  history.push(entry(1002, 5000));
  t.same([history.length, history.start], [1, 1001], "the latest stays, whatever its size");
});

t.test("History.restart() drops all entries", async (t) => {
  const history = new History({ items: 10, bytes: 1000 }, 1 as Revision);
  history.push(entry(2));
  history.restart(9 as Revision);
  t.same([history.length, history.start, history.since(1 as Revision)], [0, 9, []]);
  history.push(entry(10));
  t.equal(history.since(9 as Revision).length, 1);
});
