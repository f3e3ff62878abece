/** Requests that a client sends on one connection without waiting for the response to the previous one. */
import { once } from "node:events";
import { connect } from "node:net";
import t from "tap";
import { silentLogger } from "../../../std/log/logger.ts";
import type { Handler } from "../../message.ts";
import { textResponse } from "../../respond.ts";
import { listen } from "../server.ts";

async function raw(port: number, bytes: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  let response = "";
  socket.on("data", (chunk: Buffer) => {
    response += chunk.toString("latin1");
  });
  socket.write(bytes);
  await once(socket, "close");
  return response;
}

t.test("listen() responds to a request before it rejects what follows, and at once to a malformed body", async (t) => {
  const handler: Handler = async () => textResponse(200, "ok");
  const listener = await listen({ handler, log: silentLogger, host: "127.0.0.1", tls: undefined });
  t.teardown(() => listener.close());
  const body = '{"kind":"DeleteOptions"}';
  const text = await raw(listener.port, `DELETE /echo HTTP/1.1\r\nHost: x\r\n\r\n${body}`);
  t.match(text, /^HTTP\/1\.1 200 .*HTTP\/1\.1 400 /s);
  const unknown = `GET /echo HTTP/1.1\r\nHost: x\r\n\r\nFOO / HTTP/1.1\r\nHost: x\r\n\r\n`;
  t.match(await raw(listener.port, unknown), /^HTTP\/1\.1 200 .*HTTP\/1\.1 200 .*connection: close/s);
  const chunked = "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n";
  t.match(await raw(listener.port, chunked), /^HTTP\/1\.1 400 /);
  t.match(await raw(listener.port, `GET /echo HTTP/1.1\r\nHost: x\r\n\r\n${chunked}`), /HTTP\/1\.1 400 /);
});
