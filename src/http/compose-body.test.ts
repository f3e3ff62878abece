import { randomBytes } from "node:crypto";
import { createGunzip, createGzip } from "node:zlib";
import t from "tap";
import { seededRandom } from "../std/crypto/random.ts";
import { composeBody } from "./compose-body.ts";
import { discardBody } from "./server/write-body.ts";

const block = randomBytes(300_000);
const sleep = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));

async function* chunks(sizes: readonly number[], pauseMs = 0): AsyncGenerator<Uint8Array> {
  for (const size of sizes) {
    if (pauseMs > 0) await sleep(pauseMs);
    yield block.subarray(0, size);
  }
}

t.test("composeBody() passes on the body, and the error of its source to the reader", async (t) => {
  const parts: Uint8Array[] = [];
  const body = composeBody(chunks([100, 200_000]), createGzip(), createGunzip());
  for await (const part of body) parts.push(part as Uint8Array);
  t.same(Buffer.concat(parts), Buffer.concat([block.subarray(0, 100), block.subarray(0, 200_000)]));
  async function* failing(): AsyncGenerator<Uint8Array> {
    yield block;
    throw new Error("the source has failed");
  }
  await t.rejects(async () => {
    for await (const _ of composeBody(failing(), createGzip()));
  }, /the source has failed/);
});

t.test("a reader that stops at any time ends no process", async (t) => {
  // An error of a stream without a listener is an uncaught exception, which fails the test.
  const random = seededRandom(1);
  const fraction = (): number => random.fraction();
  const readUntil = async (stopMs: number): Promise<void> => {
    const sizes = Array.from({ length: Math.floor(fraction() * 4) }, () => Math.floor(fraction() * block.length));
    const reader = composeBody(chunks(sizes, fraction() * 3), createGzip({ level: 1 }))[Symbol.asyncIterator]();
    let isStopped = false;
    const stopped = sleep(stopMs).then(async () => {
      isStopped = true;
      await reader.return?.();
    });
    while ((await reader.next()).done !== true && !isStopped) if (fraction() < 0.3) await sleep(fraction() * 3);
    await stopped;
  };
  for (let round = 0; round < 6; round++) {
    await Promise.all(Array.from({ length: 40 }, () => readUntil(fraction() * 12)));
  }
  discardBody(composeBody(chunks([100]), createGzip()));
  await sleep(20);
  t.pass("no uncaught exception");
});
