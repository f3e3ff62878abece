import { MessageChannel } from "node:worker_threads";
import t from "tap";
import { createMemoryStore } from "../../storage/memory.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import type { FromWorker } from "./messages.ts";
import { PoolLink } from "./pool-link.ts";

t.test("PoolLink sends audit lines to the main thread, and rejects when that cannot write them", async (t) => {
  const { port1, port2 } = new MessageChannel();
  const link = new PoolLink(port2, new FakeClock());
  port1.on("message", (message: FromWorker) => {
    if (message.type !== "appendAudit") return;
    const error = message.text === "good\n" ? undefined : "the disk is full";
    link.handle({ type: "result", id: message.id, result: undefined, error });
  });
  const log = await link.openAuditLog();
  await log.append("good\n");
  await t.rejects(log.append("bad\n"), { message: "the disk is full" });
  port1.close();
});

t.test("PoolLink opens a remote store itself, and no embedded store that the main thread does not have", async (t) => {
  const { port1, port2 } = new MessageChannel();
  const link = new PoolLink(port2, new FakeClock());
  const store = createMemoryStore({ clock: new FakeClock() });
  t.equal(await link.openStore(["https://192.0.2.1:2379"], async () => store), store);
  await t.rejects(
    link.openStore(["level:///tmp/none"], async () => store),
    /the main thread has not opened it/,
  );
  port1.close();
});

t.test("PoolLink sends no metrics before there are some", async (t) => {
  const { port1, port2 } = new MessageChannel();
  const link = new PoolLink(port2, new FakeClock());
  const sent = new Promise((resolve) => {
    port1.on("message", resolve);
  });
  link.handle({ type: "collect" });
  t.same(await sent, { type: "collected", metrics: { all: [], slis: [] } });
  port1.close();
});

t.test("PoolLink returns the last metrics of the other threads when the main thread does not answer", async (t) => {
  const { port1, port2 } = new MessageChannel();
  const clock = new FakeClock();
  const link = new PoolLink(port2, clock);
  const others = [{ all: [], slis: [] }];
  const answer = new Promise<void>((resolve) => {
    port1.once("message", ({ id }: { readonly id: number }) => {
      link.handle({ type: "result", id, result: others, error: undefined });
      resolve();
    });
  });
  t.same(await link.collectMetrics(), others);
  await answer;
  const late = link.collectMetrics();
  await clock.advance(2000);
  t.same(await late, others);
  port1.close();
});
