import { gunzipSync } from "node:zlib";
import t from "tap";
import { startTestServer, type TestResponse, type TestServer } from "../../testing/apiserver/server-fixture.ts";
import { defaultConfig } from "../config/default-config.ts";

/** Requests a profile and advances the clock until the response. */
async function profiled(server: TestServer, line: string, seconds: number): Promise<TestResponse> {
  let answer: TestResponse | undefined;
  const pending = server.send(line).then((found) => {
    answer = found;
  });
  for (let tries = 0; answer === undefined && tries < 1000; tries++) {
    await new Promise((resolve) => setImmediate(resolve));
    await server.clock.advance((seconds * 1000) / 4);
  }
  await pending;
  if (answer === undefined) throw new Error(`${line} got no response`);
  return answer;
}

t.test("/debug/pprof/ serves CPU and heap profiles", async (t) => {
  await using server = await startTestServer();
  for (const name of ["profile", "heap", "allocs"]) {
    const answer = await profiled(server, `GET /debug/pprof/${name}?seconds=2`, 2);
    t.equal(answer.status, 200, name);
    t.equal(answer.headers["content-disposition"], `attachment; filename="${name}"`);
    t.ok(gunzipSync(answer.bytes).length > 0, name);
  }
  const forChrome = await profiled(server, "GET /debug/pprof/profile?seconds=2&format=cpuprofile", 2);
  t.match(forChrome.json, { nodes: [{ callFrame: { functionName: "(root)" } }] });
  t.match((await profiled(server, "GET /debug/pprof/heap?format=heapprofile", 10)).json, { head: {} });
  t.match(await server.send("GET /debug/pprof/profile?seconds=4000"), { status: 400, text: /at most 300/ });
});

t.test("/debug/pprof/ takes one profile at a time", async (t) => {
  await using server = await startTestServer();
  const first = profiled(server, "GET /debug/pprof/profile", 30);
  const second = await server.send("GET /debug/pprof/profile");
  t.match(second, { status: 500, text: "Could not enable cpu profiling: cpu profiling already in use\n" });
  t.equal((await first).status, 200);
});

t.test("a profile ends when its client disconnects", async (t) => {
  await using server = await startTestServer();
  const leaving = new AbortController();
  const pending = server.send("GET /debug/pprof/profile", { signal: leaving.signal }).catch(() => {});
  await new Promise((resolve) => setTimeout(resolve, 20));
  leaving.abort();
  await pending;
  t.equal((await profiled(server, "GET /debug/pprof/profile?seconds=1", 1)).status, 200);
});

t.test("/debug/flags/v changes the verbosity of logs", async (t) => {
  const levels: number[] = [];
  await using server = await startTestServer({}, { setVerbosity: (level) => void levels.push(level) });
  t.match(await server.send("PUT /debug/flags/v", { body: "4" }), { status: 200, text: /verbosity to 4$/ });
  t.match(await server.send("PUT /debug/flags/v", { body: "loud" }), { status: 400 });
  t.match(await server.send("GET /debug/flags/v"), { status: 406 });
  t.same(levels, [4]);
  t.equal((await server.send("PUT /debug/flags/v", { body: "9", user: "jo" })).status, 200, "AlwaysAllow");
  await using strict = await startTestServer({ authorizationModes: ["RBAC"] });
  t.equal((await strict.send("PUT /debug/flags/v", { body: "9", user: "jo" })).status, 403);
});

t.test("/debug/pprof/ serves its index, cmdline, symbol and block", async (t) => {
  const observe = { ...defaultConfig.observability, contentionProfiling: true };
  await using server = await startTestServer({ observability: observe });
  t.match(await server.send("GET /debug/pprof/"), { headers: { "content-type": /^text\/html/ }, text: /block/ });
  t.equal((await server.send("GET /debug/pprof/cmdline")).text, process.argv.join("\0"));
  t.equal((await server.send("GET /debug/pprof/symbol")).text, "num_symbols: 1\n");
  t.ok(gunzipSync((await server.send("GET /debug/pprof/block")).bytes).length > 0);
  t.notMatch((await server.send("GET /")).text, /debug/, "not listed by the root path");
});
