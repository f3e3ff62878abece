import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { PassThrough, Writable } from "node:stream";
import t, { type Test } from "tap";
import { makeRequest } from "../request.ts";
import { copyConnection, forwardUpgrade } from "./forward-upgrade.ts";

/** A server that switches protocols and echoes. */
async function startEcho(t: Test): Promise<number> {
  const server = createServer((socket: Socket) => {
    socket.once("data", () => {
      socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n");
      socket.pipe(socket);
    });
    socket.on("error", () => {});
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.teardown(() => server.close());
  return (server.address() as AddressInfo).port;
}

async function forward(port: number, limits: { readonly lifetimeMs?: number; readonly idleMs?: number }) {
  const body = new PassThrough();
  const request = { ...makeRequest({ path: "/", headers: { upgrade: "echo" } }), upgradable: true, body };
  const to = { method: "GET", secure: false, host: "127.0.0.1", port, path: "/", headers: { upgrade: "echo" } };
  const response = await forwardUpgrade(request, { ...to, signal: request.signal, ...limits });
  return { body, response: response.body as AsyncIterable<Uint8Array> };
}

/** Sends a byte after each one that is received; resolves when the connection ends. */
async function converse({ body, response }: Awaited<ReturnType<typeof forward>>, rounds: number): Promise<number> {
  let received = 0;
  body.write("x");
  try {
    for await (const chunk of response) {
      received += chunk.length;
      if (received < rounds) setTimeout(() => body.write("x"), 5);
    }
  } catch {
    // The connection is destroyed, not ended.
  }
  return received;
}

t.test("a forwarded connection ends after its lifetime although bytes pass, and when it is idle", async (t) => {
  const port = await startEcho(t);
  t.ok((await converse(await forward(port, { lifetimeMs: 200, idleMs: 5_000 }), 100_000)) > 1, "after its lifetime");
  t.equal(await converse(await forward(port, { lifetimeMs: 60_000, idleMs: 200 }), 5), 5, "when no byte passes");
});

t.test("copyConnection() pauses the source when 256 KiB wait for the sink, until it drains", async (t) => {
  const waiting: (() => void)[] = [];
  const sink = new Writable({ highWaterMark: 64 * 1024, write: (_chunk, _encoding, done) => void waiting.push(done) });
  const source = new PassThrough({ highWaterMark: 2 ** 24 });
  const copying = copyConnection(source, sink);
  const chunk = Buffer.alloc(64 * 1024);
  for (let count = 0; count < 16; count++) source.write(chunk);
  await new Promise(setImmediate);
  t.equal(sink.writableLength, 256 * 1024);
  t.ok(source.isPaused());
  const written = async (): Promise<void> => {
    while (waiting.length > 0) {
      waiting.shift()?.();
      await new Promise(setImmediate);
    }
  };
  source.end();
  await written();
  await copying;
  t.equal(sink.writableLength, 0);
});
