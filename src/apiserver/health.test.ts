import t from "tap";
import { silentLogger } from "../std/log.ts";
import { testServer } from "./fixture.ts";
import { answerHealth } from "./health.ts";

const text = async (path: string, server: Awaited<ReturnType<typeof testServer>>) => {
  const answer = await server.ask(`GET ${path}`);
  return [answer.status, answer.text];
};

t.test("health endpoints answer all checks together or one alone", async (t) => {
  await using server = await testServer();
  t.same(await text("/healthz", server), [200, "ok"]);
  t.same(await text("/livez?verbose", server), [200, "[+]ping ok\n[+]log ok\n[+]kvstore ok\nlivez check passed\n"]);
  t.same(await text("/livez?verbose&exclude=kvstore&exclude=x", server), [
    200,
    '[+]ping ok\n[+]log ok\n[+]kvstore excluded: ok\nwarn: some health checks cannot be excluded: no matches for "x"\nlivez check passed\n',
  ]);
  t.same(await text("/readyz/ping", server), [200, "ok"]);
  t.same(await text("/readyz/none", server), [404, "404 page not found\n"]);
  t.same(await text("/healthz/", server), [404, "404 page not found\n"]);
  t.equal((await server.ask("POST /healthz")).status, 200);
  t.equal((await server.ask("HEAD /healthz")).status, 200);
});

t.test("a server that stops is alive and not ready", async (t) => {
  await using server = await testServer();
  server.parts.readiness.stopping();
  const [status, body] = await text("/readyz", server);
  t.equal(status, 500);
  t.match(body, /\[-\]shutdown failed: reason withheld\nreadyz check failed\n$/);
  t.same(await text("/livez", server), [200, "ok"]);
  t.equal(await server.parts.readiness.alive(), true);
});

t.test("answerHealth() keeps the reason for itself", async (t) => {
  const failing = { name: "disk", check: () => Promise.reject(new Error("secret path")) };
  const endpoint = { name: "livez", checks: [failing] };
  const all = await answerHealth(endpoint, "", new URLSearchParams(), silentLogger);
  t.equal(all.status, 500);
  t.equal(String(all.body), "[-]disk failed: reason withheld\nlivez check failed\n");
  const one = await answerHealth(endpoint, "disk", new URLSearchParams(), silentLogger);
  t.equal(String(one.body), "internal server error: reason withheld\n");
});

t.test("a store that is gone makes the server unhealthy", async (t) => {
  await using server = await testServer();
  await server.ask("GET /healthz");
  await server.parts.server[Symbol.asyncDispose]();
  t.equal((await server.ask("GET /livez")).status, 500);
  t.equal(await server.parts.readiness.alive(), false);
});
