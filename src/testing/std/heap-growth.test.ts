import t from "tap";
import { bytesLeftPerCall, collectGarbage } from "./heap-growth.ts";

t.test("bytesLeftPerCall() counts objects and buffers that are kept", async (t) => {
  const kept: unknown[] = [];
  t.ok((await bytesLeftPerCall(() => kept.push(Buffer.alloc(10_000)), { calls: 500 })) > 9000);
  t.ok((await bytesLeftPerCall((call) => kept.push(Array.from({ length: 1000 }, () => call)), { calls: 500 })) > 3000);
  t.ok((await bytesLeftPerCall(() => Buffer.alloc(10_000), { calls: 500 })) < 2000);
});

t.test("collectGarbage() collects what nothing refers to", async (t) => {
  const reference = new WeakRef({});
  await collectGarbage();
  t.equal(reference.deref(), undefined);
});
