import { once } from "node:events";
import { connect } from "node:http2";
import { setImmediate as nextTurn } from "node:timers/promises";
import t from "tap";
import { silentLogger } from "../../std/log/logger.ts";
import { makeServerCertificate } from "../../testing/http/test-certificates.ts";
import { textResponse } from "../respond.ts";
import { BulkConnection, BulkReads, readHandleOf } from "./bulk-reads.ts";
import { listen } from "./server.ts";

class FakeHandle {
  isReading = true;

  readStart(): void {
    this.isReading = true;
  }

  readStop(): void {
    this.isReading = false;
  }
}

class Fixture {
  readonly reads = new BulkReads();
  readonly handles: FakeHandle[] = [];

  connect(): BulkConnection {
    const handle = new FakeHandle();
    this.handles.push(handle);
    return new BulkConnection(handle);
  }

  /** None of the requests starts meanwhile. */
  send(connection: BulkConnection, count: number, nowMs: number): void {
    for (let waiting = 0; waiting < count; waiting++) this.reads.record(connection, waiting, nowMs);
  }

  /** `1` for each connection that is read. */
  get reading(): string {
    return this.handles.map(({ isReading }) => (isReading ? "1" : "0")).join("");
  }
}

t.test("BulkReads reads one of the connections that send many requests at once in each turn", async (t) => {
  const f = new Fixture();
  const [one, two, three, rare] = [f.connect(), f.connect(), f.connect(), f.connect()];
  for (const connection of [one, two, three]) f.send(connection, 20, 0);
  t.equal(f.reading, "0111", "when the second was found to send many, the first was stopped");
  await nextTurn();
  t.equal(f.reading, "1111");
  f.send(rare, 1, 10);
  t.equal(f.reading, "1111", "a request of another connection stops none");
  f.send(two, 1, 10);
  t.equal(f.reading, "0101");
  f.send(two, 30, 10);
  await nextTurn();
  t.equal(f.reading, "1111");
});

t.test("BulkReads finds a crowd in the sockets of many connections", async (t) => {
  const f = new Fixture();
  const connections = Array.from({ length: 5 }, () => f.connect());
  for (const connection of connections.slice(1)) f.send(connection, 17, 0);
  await nextTurn();
  t.equal(f.reads.hasCrowd, false, "three were stopped");
  f.send(connections[0]!, 17, 0);
  t.equal(f.reading, "10000");
  t.equal(f.reads.hasCrowd, true);
  await nextTurn();
  t.equal(f.reading, "11111");
  t.equal(f.reads.hasCrowd, true, "of the turn before");
  await nextTurn();
  t.equal(f.reads.hasCrowd, false);
});

t.test("BulkReads stops no connection that sends its requests one after the other, nor one long after", async (t) => {
  const f = new Fixture();
  const [one, two] = [f.connect(), f.connect()];
  for (let ms = 0; ms < 300; ms++) {
    f.send(one, 10, ms);
    f.send(two, 10, ms);
  }
  t.equal(f.reading, "11");
  f.send(one, 20, 1000);
  f.send(two, 20, 20_000);
  t.equal(f.reading, "11");
});

t.test("BulkReads does not resume a connection that has been closed", async (t) => {
  const f = new Fixture();
  const [one, two] = [f.connect(), f.connect()];
  f.send(one, 20, 0);
  f.send(two, 20, 0);
  t.equal(f.reading, "01");
  f.reads.remove(one);
  await nextTurn();
  t.equal(f.reading, "01");
});

t.test("readHandleOf finds the handle of a socket, or none", async (t) => {
  const handle = new FakeHandle();
  t.equal(readHandleOf({ _handle: handle }), handle);
  for (const socket of [{}, { _handle: null }, { _handle: {} }, { _handle: { readStart: 1, readStop: 2 } }]) {
    t.equal(readHandleOf(socket), undefined);
  }
});

t.test("a server responds to all requests of connections that send many at once, round by round", async (t) => {
  const { ca, server } = await makeServerCertificate();
  await using listener = await listen({
    handler: async () => textResponse(200, "x"),
    log: silentLogger,
    host: "127.0.0.1",
    tls: { cert: server.cert, key: server.key },
  });
  const sessions = Array.from({ length: 4 }, () => connect(`https://localhost:${listener.port}`, { ca: ca.cert }));
  t.teardown(() => {
    for (const session of sessions) session.destroy();
  });
  await Promise.all(sessions.map((session) => once(session, "connect")));
  t.not(readHandleOf(sessions[0]!.socket as { readonly _handle?: unknown }), undefined, "Node has the handle");
  for (let round = 0; round < 3; round++) {
    const streams = sessions.flatMap((session) => Array.from({ length: 60 }, () => session.request({ ":path": "/" })));
    const statuses = await Promise.all(
      streams.map(async (stream) => {
        const [headers] = await once(stream, "response");
        stream.resume();
        return headers[":status"];
      }),
    );
    t.ok(
      statuses.every((status) => status === 200),
      `round ${round}`,
    );
  }
});
