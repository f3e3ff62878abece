import t from "tap";
import { lazy } from "./lazy.ts";

t.test("creates once, with the first call", async (t) => {
  let calls = 0;
  const get = lazy(async () => ++calls);
  t.equal(calls, 0);
  t.strictSame(await Promise.all([get(), get()]), [1, 1]);
  t.equal(await get(), 1);
});

t.test("creates again after a rejection", async (t) => {
  let calls = 0;
  const get = lazy(async () => {
    if (++calls === 1) throw new Error("first");
    return calls;
  });
  await t.rejects(get(), /first/);
  t.equal(await get(), 2);
});
