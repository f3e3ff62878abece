import t from "tap";
import { waitForAbort } from "./wait-for-abort.ts";

t.test("waitForAbort() resolves when the signal aborts, and at once when it has", async (t) => {
  const stop = new AbortController();
  let over = false;
  const waiting = waitForAbort(stop.signal).then(() => {
    over = true;
  });
  await Promise.resolve();
  t.notOk(over);
  stop.abort();
  await waiting;
  t.ok(over);
  await waitForAbort(stop.signal);
});
