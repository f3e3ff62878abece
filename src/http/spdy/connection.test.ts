import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import t, { type Test } from "tap";
import { until } from "../../testing/std/until.ts";
import { SpdyConnection, type SpdyConnectionOptions, type StreamEnd } from "./connection.ts";
import { dataHead, pingFrame, rstStreamFrame, SpdyError, synStreamFrame, windowUpdateFrame } from "./frames.ts";
import { HeaderEncoder } from "./header-block.ts";

/** Two ends of a TCP connection. */
async function pair(t: Test): Promise<readonly [Socket, Socket]> {
  const { promise, resolve } = Promise.withResolvers<Socket>();
  const server = createServer(resolve).listen(0, "127.0.0.1");
  await new Promise((listening) => server.once("listening", listening));
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const accepted = await promise;
  for (const socket of [client, accepted]) socket.on("error", () => {});
  t.teardown(() => {
    client.destroy();
    accepted.destroy();
    server.close();
  });
  return [client, accepted];
}

function open(socket: Socket, role: "client" | "server", onStream?: SpdyConnectionOptions["onStream"]): SpdyConnection {
  return new SpdyConnection({ input: socket, output: socket, role, onStream });
}

/** Runs until the test ends the connection. */
function run(connection: SpdyConnection): Promise<void> {
  return connection.run().catch(() => {});
}

const echo: SpdyConnectionOptions["onStream"] = (stream) => ({
  data: (chunk) => stream.write(chunk),
  end: () => void stream.end(),
});

t.test("streams carry bytes both ways, and each side ends on its own", async (t) => {
  const [near, far] = await pair(t);
  const server = open(far, "server", echo);
  void run(server);
  const client = open(near, "client");
  const running = run(client);
  const received: Buffer[] = [];
  const { promise, resolve } = Promise.withResolvers<StreamEnd>();
  const stream = client.open({ streamtype: "data" }, { data: (chunk) => void received.push(chunk), end: resolve });
  const sent = Buffer.alloc(3_000_000, "0123456789");
  await stream.write(sent);
  await stream.end();
  t.equal(await promise, "fin");
  t.ok(Buffer.concat(received).equals(sent));
  client.close();
  await running;
});

t.test("a handler that waits stops the peer: nothing is queued", async (t) => {
  const [near, far] = await pair(t);
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  let received = 0;
  const server = open(far, "server", () => ({
    data: async (chunk) => {
      await released;
      received += chunk.length;
    },
    end: () => {},
  }));
  void run(server);
  const client = open(near, "client");
  void run(client);
  const stream = client.open({}, { data: () => {}, end: () => {} });
  const size = 64 * 1024 * 1024;
  let isSent = false;
  const sending = stream.write(Buffer.alloc(size)).then(() => {
    isSent = true;
  });
  await new Promise((resolve) => setTimeout(resolve, 200));
  t.notOk(isSent, "the writer waits");
  release();
  await sending;
  await until("all data", () => received === size);
});

t.test("the windows of a peer are observed once it uses them", async (t) => {
  const [near, far] = await pair(t);
  const client = open(near, "client");
  void run(client);
  let received = 0;
  far.on("data", (chunk) => {
    received += chunk.length;
  });
  far.write(Buffer.from("800300040000000c000000010000000700000064", "hex"));
  await new Promise((resolve) => setTimeout(resolve, 50));
  const stream = client.open({}, { data: () => {}, end: () => {} });
  const writing = stream.write(Buffer.alloc(150));
  await new Promise((resolve) => setTimeout(resolve, 100));
  const before = received;
  t.ok(before >= 100 && before < 150, "no more than the window");
  far.write(windowUpdateFrame(1, 1000));
  await writing;
  await until("the rest", () => received === before + 50 + 8);
});

t.test("a reset ends both sides of a stream, and the end of the connection all streams", async (t) => {
  const [near, far] = await pair(t);
  const ends: string[] = [];
  const client = open(near, "client");
  const running = run(client);
  for (const name of ["a", "b"]) {
    client.open({ name }, { data: () => {}, end: (how) => void ends.push(`${name} ${how}`) });
  }
  far.write(rstStreamFrame(1, 5));
  await until("the reset", () => ends.length === 1);
  far.end();
  await running;
  t.same(ends, ["a reset", "b closed"]);
  t.throws(() => client.open({}, { data: () => {}, end: () => {} }), SpdyError);
});

t.test("pings are answered, streams without a handler refused", async (t) => {
  const [near, far] = await pair(t);
  void run(open(near, "client"));
  const received: Buffer[] = [];
  far.on("data", (chunk: Buffer) => received.push(chunk));
  far.write(
    Buffer.concat([pingFrame(2), pingFrame(3), synStreamFrame(2, new HeaderEncoder().encode({ a: "b" }), false)]),
  );
  const expected = Buffer.concat([pingFrame(2), rstStreamFrame(2, 3)]);
  await until("the answers", () => Buffer.concat(received).length >= expected.length);
  t.same(Buffer.concat(received), expected, "the ping of this side's parity is an answer");
});

t.test("hostile frames end one connection with GOAWAY", async (t) => {
  const encoder = (): Buffer => new HeaderEncoder().encode({ streamtype: "x" });
  const hostile: Readonly<Record<string, Buffer>> = {
    "a stream of the wrong parity": synStreamFrame(2, encoder(), false),
    "a stream number that repeats": Buffer.concat([
      synStreamFrame(3, encoder(), false),
      synStreamFrame(3, encoder(), false),
    ]),
    "headers that are no zlib stream": synStreamFrame(1, Buffer.from("garbage"), false),
    "another version": Buffer.from("8002000600000004", "hex"),
    "a window that overflows": Buffer.concat([synStreamFrame(1, encoder(), false), windowUpdateFrame(1, 0x7fff_ffff)]),
  };
  for (const [name, bytes] of Object.entries(hostile)) {
    const [near, far] = await pair(t);
    const running = open(far, "server", echo).run();
    near.write(Buffer.concat([bytes, dataHead(9, 3, false)]));
    await t.rejects(running, SpdyError, name);
  }
});
