import { setImmediate as turn } from "node:timers/promises";
import { MessageChannel } from "node:worker_threads";
import t from "tap";
import { PortStream } from "./port-stream.ts";

function connect(): readonly [PortStream, PortStream] {
  const { port1, port2 } = new MessageChannel();
  return [new PortStream(port1), new PortStream(port2)];
}

/** Leaves the other direction open, unlike an iteration. */
function read(stream: PortStream): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.once("end", () => resolve(Buffer.concat(chunks).toString()));
    stream.once("error", reject);
  });
}

t.test("bytes pass in both directions, each until its end", async (t) => {
  const [near, far] = connect();
  near.end("to far");
  t.equal(await read(far), "to far");
  far.write("to ");
  far.end("near");
  t.equal(await read(near), "to near");
});

t.test("a writer waits for a reader that does not read", async (t) => {
  const [near, far] = connect();
  const chunk = Buffer.alloc(64 * 1024, 1);
  let written = 0;
  for (let i = 0; i < 100; i++) near.write(chunk, () => (written += chunk.length));
  for (let i = 0; i < 50; i++) await turn();
  t.ok(written <= 512 * 1024, `${written} bytes written`);
  near.end();
  t.equal((await read(far)).length, 100 * chunk.length);
  far.end();
});

t.test("the end of a thread ends the connection with an error", async (t) => {
  const [near, far] = connect();
  near.write("part");
  await turn();
  near.destroy();
  await t.rejects(read(far), /the other thread closed the connection/);
});

t.test("a writer that waits ends when the reader has ended and closed", async (t) => {
  const [near, far] = connect();
  near.write(Buffer.alloc(1024 * 1024, 1));
  far.end("last");
  await turn();
  const closed = new Promise((resolve) => near.once("close", resolve));
  far.destroy();
  t.equal(await read(near), "last");
  await closed;
});
