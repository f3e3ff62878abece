import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import t, { type Test } from "tap";
import { systemClock } from "../../std/time/clock.ts";
import { fetchManifest } from "./url-source.ts";

const MANIFEST = "kind: Pod\n";

/** `/N?to=URL` responds with the status N, `/loop` with a redirect to itself, others with a manifest. */
async function serve(t: Test) {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    const url = new URL(request.url ?? "/", "http://h");
    const status = Number(/^\/(\d+)$/.exec(url.pathname)?.[1] ?? 200);
    const location = url.pathname === "/loop" ? "/loop" : url.searchParams.get("to");
    response.writeHead(location === "/loop" ? 302 : status, location === null ? {} : { location });
    response.end(status === 200 ? MANIFEST : "");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.teardown(() => void server.close().closeAllConnections());
  return { requests, port: (server.address() as AddressInfo).port };
}

async function fetchText(url: string, headers: Readonly<Record<string, readonly string[]>> = {}): Promise<string> {
  const { signal } = new AbortController();
  const { content } = await fetchManifest({ url, headers, clock: systemClock, signal });
  return content instanceof Uint8Array ? new TextDecoder().decode(content) : content.problem;
}

t.test("fetchManifest() follows the redirects that Go's client follows, at most ten requests", async (t) => {
  const { port, requests } = await serve(t);
  const base = `http://127.0.0.1:${port}`;
  for (const status of [301, 302, 303, 307, 308]) {
    t.equal(await fetchText(`${base}/${status}?to=${encodeURIComponent("/pod?a=b")}`), MANIFEST, `${status}`);
    t.equal(requests.at(-1)?.url, "/pod?a=b");
  }
  t.equal(await fetchText(`${base}/300?to=/pod`), "cannot be fetched: the server answered 300");
  t.equal(await fetchText(`${base}/404`), "cannot be fetched: the server answered 404");
  requests.length = 0;
  t.equal(await fetchText(`${base}/loop`), "cannot be fetched: stopped after 10 redirects");
  t.equal(requests.length, 10);
});

t.test("fetchManifest() sends no credentials to another domain", async (t) => {
  const { port, requests } = await serve(t);
  const other = await serve(t);
  const headers = { "X-Site": ["edge-7", "backup"], Authorization: ["Bearer secret"] };
  const to = encodeURIComponent(`http://localhost:${other.port}/pod`);
  t.equal(await fetchText(`http://127.0.0.1:${port}/302?to=${to}`, headers), MANIFEST);
  t.match(requests[0]?.headers, { "x-site": "edge-7, backup", authorization: "Bearer secret" });
  t.match(other.requests[0]?.headers, { "x-site": "edge-7, backup", authorization: undefined });
});

t.test("fetchManifest() sends the URL's user unless there is an Authorization header", async (t) => {
  const { port, requests } = await serve(t);
  const url = `http://user:p%40ss@127.0.0.1:${port}/pod`;
  await fetchText(url);
  t.equal(requests.at(-1)?.headers.authorization, `Basic ${btoa("user:p@ss")}`);
  await fetchText(url, { authorization: ["Bearer own"] });
  t.equal(requests.at(-1)?.headers.authorization, "Bearer own");
});
