import t from "tap";
import { Wakeup } from "./wakeup.ts";

t.test("Wakeup.notify() resolves the waits that are pending, not later ones", async (t) => {
  const wakeup = new Wakeup();
  const { signal } = new AbortController();
  wakeup.notify();
  let woken = 0;
  const sleepers = [1, 2].map(() => wakeup.wait(signal).then(() => woken++));
  await Promise.resolve();
  t.equal(woken, 0);
  wakeup.notify();
  await Promise.all(sleepers);
  t.equal(woken, 2);
});

t.test("Wakeup.wait() resolves when its signal aborts", async (t) => {
  const wakeup = new Wakeup();
  const controller = new AbortController();
  const asleep = wakeup.wait(controller.signal);
  controller.abort();
  await asleep;
  await wakeup.wait(controller.signal);
  t.pass();
});
