import t from "tap";
import { createLogger } from "../../std/log/logger.ts";
import { startTestServer } from "../../testing/apiserver/server-fixture.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";

function captureLog(verbosity: number) {
  const lines: string[] = [];
  const stderr = { write: (line: string) => lines.push(line), flushSync: () => {} };
  const log = createLogger({ verbosity }, { clock: new FakeClock(), stderr });
  return { log, requests: () => lines.filter((line) => line.includes('"HTTP"')) };
}

t.test("-v=3 logs method, URI, status and latency of each request", async (t) => {
  const { log, requests } = captureLog(3);
  await using server = await startTestServer({}, { log });
  await server.send("GET /api/v1/pods?limit=1", { headers: { "user-agent": "test/1" } });
  await server.send("GET /api/v1/namespaces/default/pods/none", { headers: { authorization: "Bearer hidden" } });
  const [list = "", denied = "", ...more] = requests();
  t.match(
    list,
    /"HTTP" verb="LIST" URI="\/api\/v1\/pods\?limit=1" latency="0s" userAgent="test\/1" audit-ID="[0-9a-f-]{36}" srcIP="local" apf_pl="exempt" apf_fs="exempt" apf_iseats=1 apf_fseats=0 apf_additionalLatency="0s" apf_execution_time="0s" resp=200\n/,
  );
  t.match(denied, /verb="GET" URI="\/api\/v1\/namespaces\/default\/pods\/none" .* resp=401/);
  t.notMatch(denied, "hidden");
  t.same(more, []);
});

t.test("-v=3 logs a watch when it ends", async (t) => {
  const { log, requests } = captureLog(3);
  await using server = await startTestServer({}, { log });
  const { body } = await server.open("GET /api/v1/pods?watch=1");
  t.same(requests(), []);
  await (body as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]().return?.();
  t.match(requests(), [/verb="WATCH" .* resp=200/]);
});

t.test("-v=2 logs no requests", async (t) => {
  const { log, requests } = captureLog(2);
  await using server = await startTestServer({}, { log });
  await server.send("GET /api/v1/pods");
  t.same(requests(), []);
});
