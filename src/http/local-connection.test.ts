import { once } from "node:events";
import { Agent, createServer, type RequestOptions, request } from "node:http";
import type { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import t from "tap";
import { createLocalConnection } from "./local-connection.ts";

const CHUNK = Buffer.alloc(100_000, 1);

t.test("what one end writes the other reads, in both directions, and ends pass", async (t) => {
  const [one, other] = createLocalConnection();
  const closed = Promise.all([once(one, "close"), once(other, "close")]);
  one.write("a");
  one.cork();
  one.write(Buffer.from("b"));
  one.write("63", "hex");
  one.uncork();
  const received = text(other);
  one.end("d");
  t.equal(await received, "abcd");
  one.resume();
  await closed;
  t.ok(one.destroyed && other.destroyed, "both are closed when both have ended");
});

t.test("a writer waits for its reader after some chunks", async (t) => {
  const [one, other] = createLocalConnection();
  let written = 0;
  const write = (): void => {
    while (written < 50 && one.write(CHUNK, () => undefined)) written++;
  };
  one.on("drain", () => {
    written++;
    write();
  });
  write();
  for (let round = 0; round < 10; round++) await turn();
  t.ok(one.writableLength + other.readableLength <= 3 * CHUNK.length, "at most a chunk and the buffers are in memory");
  let received = 0;
  other.on("data", (chunk: Buffer) => {
    received += chunk.length;
  });
  while (received < 50 * CHUNK.length) await turn();
  t.equal(one.writableLength, 0);
  one.end();
});

t.test("destroying an end before its end resets the other", async (t) => {
  const [one, other] = createLocalConnection();
  other.pause();
  for (let count = 0; count < 10; count++) other.write(CHUNK);
  const error = once(other, "error");
  one.write("incomplete");
  one.destroy();
  t.match(await error, [{ code: "ECONNRESET" }]);
  t.ok(other.destroyed);
});

t.test("destroying an end after its end keeps what the other has not read", async (t) => {
  const [one, other] = createLocalConnection();
  one.end("complete");
  await once(one, "finish");
  one.destroy();
  t.equal(await text(other), "complete");
  const [late, reader] = createLocalConnection();
  reader.on("error", () => undefined);
  reader.write(CHUNK);
  reader.write(CHUNK);
  late.end();
  late.once("finish", () => late.destroy());
  t.match(await once(reader, "error"), [{ code: "ECONNRESET" }], "writes to a closed end fail");
});

t.test("setTimeout() reports a connection without data only", async (t) => {
  const [one, other] = createLocalConnection();
  other.resume();
  let timeouts = 0;
  other.setTimeout(60, () => timeouts++);
  for (let round = 0; round < 10; round++) {
    one.write("x");
    await sleep(15);
  }
  t.equal(timeouts, 0);
  while (timeouts === 0) await sleep(20);
  other.on("error", () => undefined);
  one.destroy();
});

t.test("node:http serves requests over it, keeps it alive, and switches its protocol", async (t) => {
  let connections = 0;
  const server = createServer((incoming, response) => {
    incoming.pipe(response);
  });
  server.on("upgrade", (_request, socket: Duplex, head: Buffer) => {
    socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n");
    socket.write(head);
    socket.pipe(socket);
  });
  class LocalAgent extends Agent {
    override createConnection(_options: RequestOptions): Duplex {
      const [client, served] = createLocalConnection();
      connections++;
      server.emit("connection", served);
      return client;
    }
  }
  const agent = new LocalAgent({ keepAlive: true });
  t.teardown(() => agent.destroy());
  const large = "x".repeat(1_000_000);
  const post = async (body: string): Promise<string> => {
    const outgoing = request({ agent, host: "local", method: "POST" });
    outgoing.setTimeout(60_000);
    outgoing.end(body);
    const [response] = await once(outgoing, "response");
    return await text(response);
  };
  t.equal(await post("one"), "one");
  t.equal(await post(large), large);
  t.equal(connections, 1, "the connection is reused");
  const outgoing = request({ agent, host: "local", headers: { connection: "Upgrade", upgrade: "echo" } });
  outgoing.end();
  const [, socket] = (await once(outgoing, "upgrade")) as [unknown, Duplex];
  socket.end(large);
  t.equal(await text(socket), large);
});
