import { connect } from "node:net";
import t from "tap";
import { silentLogger } from "../../../std/log/logger.ts";
import { textResponse } from "../../respond.ts";
import { listen } from "../server.ts";

const head = (length: number, rest = ""): string =>
  `POST /refused HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n${rest}\r\n`;

/** What the server sends until it closes the connection, or has sent two responses. */
async function exchange(port: number, first: string, second: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  let text = "";
  socket.write(first);
  for await (const chunk of socket) {
    const isFirst = text === "";
    text += String(chunk);
    if (isFirst) socket.write(second);
    if (text.match(/HTTP\/1\.1 403/g)?.length === 2) break;
  }
  socket.destroy();
  return text;
}

t.test("a connection is used again after a refused body of up to 256 KiB, and closed after a longer one", async (t) => {
  const listener = await listen({
    handler: async () => textResponse(403, "refused"),
    log: silentLogger,
    host: "127.0.0.1",
    tls: undefined,
  });
  t.teardown(() => listener.close());
  const short = `${head(3)}abc`;
  const long = head(256 * 1024) + "x".repeat(256 * 1024);
  t.notMatch(await exchange(listener.port, short, short), /connection: close/i);
  t.notMatch(await exchange(listener.port, long, short), /connection: close/i);
  t.match(await exchange(listener.port, head(256 * 1024 + 1), ""), /connection: close/i);
  t.match(await exchange(listener.port, head(3, "Expect: 100-continue\r\n"), ""), /connection: close/i);
  t.match(await exchange(listener.port, head(3), ""), /connection: close/i, "a body that does not arrive");
});

t.test("a body that becomes the response's is not discarded", async (t) => {
  const listener = await listen({
    handler: async ({ body }) => ({ ...textResponse(200, ""), body }),
    log: silentLogger,
    host: "127.0.0.1",
    tls: undefined,
  });
  t.teardown(() => listener.close());
  const socket = connect(listener.port, "127.0.0.1");
  let text = "";
  socket.write(`${head(6)}abc`);
  for await (const chunk of socket) {
    text += String(chunk);
    if (text.includes("abc") && !text.includes("def")) socket.write("def");
    if (text.includes("def")) break;
  }
  socket.destroy();
  t.match(text, /200 OK[\s\S]*abc[\s\S]*def/);
});
