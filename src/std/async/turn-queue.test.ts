import { setImmediate as nextTurn } from "node:timers/promises";
import t from "tap";
import { TurnQueue } from "./turn-queue.ts";

t.test("TurnQueue runs callbacks in their order, a limited number in a turn of the event loop", async (t) => {
  const queue = new TurnQueue(3);
  let ran = "";
  const add = (names: string): void => {
    for (const name of names) queue.add(() => (ran += name));
  };
  add("ab");
  t.equal(ran, "ab", "at once");
  add("cdefgh");
  t.equal(ran, "abc");
  await nextTurn();
  t.equal(ran, "abcdef");
  add("i");
  t.equal(ran, "abcdef", "after those that wait");
  await nextTurn();
  t.equal(ran, "abcdefghi");
  await nextTurn();
  add("jkl");
  t.equal(ran, "abcdefghijkl");
});

t.test("TurnQueue runs what a callback adds after those that wait", async (t) => {
  const queue = new TurnQueue(1);
  const ran: string[] = [];
  queue.add(() => {
    ran.push("a");
    queue.add(() => ran.push("c"));
  });
  queue.add(() => ran.push("d"));
  t.same(ran, ["a"]);
  await nextTurn();
  await nextTurn();
  t.same(ran, ["a", "c", "d"]);
});
