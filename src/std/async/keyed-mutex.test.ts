import t from "tap";
import { KeyedMutex } from "./keyed-mutex.ts";

t.test(
  "KeyedMutex.run() runs work of a key in order, also after a failure, and that of others meanwhile",
  async (t) => {
    const mutex = new KeyedMutex();
    const order: string[] = [];
    const first = Promise.withResolvers<void>();
    const run = (key: string, name: string, work: Promise<void> = Promise.resolve()) =>
      mutex.run(key, async () => {
        order.push(name);
        await work;
        return name;
      });
    const failed = run("a", "a1", first.promise);
    const second = run("a", "a2");
    t.equal(await run("b", "b1"), "b1");
    t.same(order, ["a1", "b1"]);
    first.reject(new Error("broken"));
    await t.rejects(failed, /broken/);
    t.equal(await second, "a2");
  },
);
