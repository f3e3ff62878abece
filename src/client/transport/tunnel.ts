/** Ways through a proxy: it is asked to connect to a server, and hands on bytes from then on. */
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import type { Socket } from "node:net";
import type { Clock } from "../../std/time/clock.ts";

const TIMEOUT_MS = 30_000;

/** A socket to the server (`host:port`). `proxy` is `http://user:password@host:port`, or `https:`. */
export function tunnel(proxy: URL, server: string, clock: Clock): Promise<Socket> {
  const { protocol, username, password } = proxy;
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  const authorization =
    username === "" ? {} : { "proxy-authorization": `Basic ${Buffer.from(pair).toString("base64")}` };
  const options = {
    method: "CONNECT",
    host: proxy.hostname.replace(/^\[|\]$/g, ""),
    port: proxy.port === "" ? (protocol === "https:" ? 443 : 80) : Number(proxy.port),
    path: server,
    headers: { host: server, ...authorization },
    agent: false as const,
  };
  return new Promise((resolve, reject) => {
    const asking = protocol === "https:" ? httpsRequest(options) : httpRequest(options);
    const timer = clock.timer(TIMEOUT_MS, () => asking.destroy(new Error(`no answer in ${TIMEOUT_MS / 1000} s`)));
    const failed = (why: string, cause?: unknown): void => {
      timer.cancel();
      reject(new Error(`Cannot reach ${server} through the proxy ${proxy.host}: ${why}`, { cause }));
    };
    asking.once("error", (error) => failed(error.message, error));
    asking.once("response", (answer) => {
      answer.destroy();
      failed(`it answered ${answer.statusCode}`);
    });
    asking.once("connect", (answer, socket: Socket, head) => {
      timer.cancel();
      if (answer.statusCode !== 200) {
        socket.destroy();
        failed(`it answered ${answer.statusCode}`);
        return;
      }
      if (head.length > 0) socket.unshift(head);
      resolve(socket);
    });
    asking.end();
  });
}
