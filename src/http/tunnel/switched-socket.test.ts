import { once } from "node:events";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import t from "tap";
import { SwitchedSocket } from "./switched-socket.ts";

t.test("SwitchedSocket carries bytes both ways, and each side ends on its own", async (t) => {
  const received = new PassThrough();
  const socket = new SwitchedSocket(received);
  received.end("from the client");
  let read = "";
  socket.on("data", (chunk) => {
    read += chunk;
  });
  await once(socket, "end");
  t.equal(read, "from the client");
  socket.end("to the client");
  t.equal(await text(socket.sent), "to the client");
});

t.test("SwitchedSocket closes with the response, and waits while the client does not read", async (t) => {
  const received = new PassThrough();
  const socket = new SwitchedSocket(received);
  let isWritten = false;
  socket.write(Buffer.alloc(1_000_000), () => {
    isWritten = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  t.notOk(isWritten);
  socket.sent.resume();
  await new Promise((resolve) => socket.sent.once("drain", resolve));
  const closed = new Promise<void>((resolve) => socket.once("close", resolve));
  socket.sent.destroy();
  await closed;
  t.ok(socket.destroyed);
});
