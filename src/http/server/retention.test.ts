/** What the server keeps in memory of connections that are closed. */
import { once } from "node:events";
import { connect } from "node:http2";
import { Agent, request } from "node:https";
import { buffer } from "node:stream/consumers";
import t from "tap";
import { silentLogger } from "../../std/log/logger.ts";
import { makeServerCertificate } from "../../testing/http/test-certificates.ts";
import { bytesLeftPerCall } from "../../testing/std/heap-growth.ts";
import { readBody } from "../body.ts";
import { bytesResponse } from "../respond.ts";
import { listen } from "./server.ts";

t.setTimeout(300_000);

/** More than what may be left. */
const BODY = Buffer.alloc(64 * 1024, "x");
/** Client and server are in one process: sessions of TLS on both sides. */
const LEFT_MAX = 16 * 1024;

t.test("a connection that is closed, at its end or in the middle of a request, leaves nothing", async (t) => {
  const { ca, server } = await makeServerCertificate();
  await using stack = new AsyncDisposableStack();
  const listener = await listen({
    handler: async (incoming) => bytesResponse(200, "text/plain", await readBody(incoming, 1_000_000)),
    log: silentLogger,
    host: "127.0.0.1",
    tls: { cert: server.cert, key: server.key },
  });
  stack.defer(() => listener.close());
  const url = `https://localhost:${listener.port}`;
  const http2 = async (isComplete: boolean): Promise<void> => {
    const session = connect(url, { ca: ca.cert });
    session.on("error", () => {});
    const stream = session.request({ ":method": "POST", ":path": "/" });
    stream.on("error", () => {});
    if (isComplete) {
      stream.end(BODY);
      if ((await buffer(stream)).length !== BODY.length) throw new Error("The body is incomplete");
    } else {
      await once(session, "connect");
      stream.write(BODY);
    }
    const closed = once(session, "close");
    session.destroy();
    await closed;
  };
  const http1 = async (): Promise<void> => {
    const agent = new Agent({ ca: ca.cert });
    const sent = request(url, { method: "POST", agent });
    sent.end(BODY);
    const [response] = await once(sent, "response");
    if ((await buffer(response)).length !== BODY.length) throw new Error("The body is incomplete");
    agent.destroy();
  };
  const left = await bytesLeftPerCall(async (call) => await (call % 3 === 0 ? http1() : http2(call % 3 === 1)));
  t.ok(left < LEFT_MAX, `${left} bytes for each connection`);
});
