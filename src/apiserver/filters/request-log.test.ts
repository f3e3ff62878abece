import t from "tap";
import { AuditAnnotations } from "../../admission/chain/audit-annotations.ts";
import { notFound } from "../../api/status.ts";
import { makeRequest } from "../../http/request.ts";
import { textResponse } from "../../http/respond.ts";
import { createLogger } from "../../std/log/logger.ts";
import { startTestServer } from "../../testing/apiserver/server-fixture.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import type { RequestContext } from "../request/request-context.ts";
import { parseRequestInfo } from "../request/request-info.ts";
import { withErrorResponses } from "./error-responses.ts";
import { addLogField, withRequestLog } from "./request-log.ts";

function captureAll(verbosity: number) {
  const lines: string[] = [];
  const stderr = { write: (line: string) => lines.push(line), flushSync: () => {} };
  return { log: createLogger({ verbosity }, { clock: new FakeClock(), stderr }), lines };
}

function captureLog(verbosity: number) {
  const { log, lines } = captureAll(verbosity);
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

t.test("-v=2 logs what requests change, without what components write all the time", async (t) => {
  const { log, lines } = captureAll(2);
  await using server = await startTestServer({}, { log });
  const configMaps = "/api/v1/namespaces/default/configmaps";
  await server.send(`POST ${configMaps}`, { body: { metadata: { name: "a" } } });
  await server.send(`POST ${configMaps}`, { body: { metadata: { generateName: "g-" } } });
  await server.send(`POST ${configMaps}?dryRun=All`, { body: { metadata: { name: "b" } } });
  await server.send(`GET ${configMaps}/a`);
  await server.send("POST /apis/coordination.k8s.io/v1/namespaces/default/leases", {
    body: { metadata: { name: "a" } },
  });
  await server.send(`DELETE ${configMaps}/a`);
  t.match(
    lines.filter((line) => line.includes('"Changed"')),
    [
      /verb="create" resource="configmaps" version="v1" namespace="default" name="a" user="admin" resp=201/,
      /verb="create" resource="configmaps" version="v1" namespace="default" name="g-\w{5}" user="admin" resp=201/,
      /verb="delete" resource="configmaps" version="v1" namespace="default" name="a" user="admin" resp=200/,
    ],
  );
});

t.test("-v=4 logs decisions of authorization and admission, -v=6 what the caches do", async (t) => {
  const send = async (verbosity: number): Promise<string> => {
    const { log, lines } = captureAll(verbosity);
    await using server = await startTestServer({ authorizationModes: ["RBAC"] }, { log });
    const pod = { metadata: { name: "a" }, spec: { containers: [{ name: "c", image: "i" }] } };
    await server.send("POST /api/v1/namespaces/default/pods", { body: pod });
    await server.send("POST /api/v1/namespaces/none/pods", { body: pod });
    await server.send("GET /api/v1/namespaces/default/pods", { user: "bob" });
    await server.send("GET /api/v1/namespaces/default/pods");
    return lines.join("");
  };
  t.notMatch(await send(3), /"Allowed"|"Forbidden"|Admission plugin|Listed all objects/);
  const decisions = await send(4);
  t.match(
    decisions,
    /"Allowed" URI="\/api\/v1\/namespaces\/default\/pods" verb="create" user="admin" decision="allow"/,
  );
  t.match(decisions, /"Forbidden" URI="\/api\/v1\/namespaces\/default\/pods" verb="list" user="bob"/);
  t.match(
    decisions,
    /"Admission plugin changed the object" plugin="\w+" phase="mutate" operation="CREATE" resource="pods"/,
  );
  t.match(decisions, /"Admission plugin denied the request" plugin="NamespaceLifecycle" .* reason=".*not found/);
  t.match(decisions, /"Admitted" phase="validate" operation="CREATE" resource="pods" namespace="default"/);
  const caches = await send(6);
  t.match(caches, /"Listed all objects" cache="pods" objects=\d+ revision=\d+/);
  t.match(caches, /"Received a change" cache="pods" type="put" key="\/registry\/pods\/default\/a"/);
});

t.test("the line of a request that failed has the stack of the error, unless the client caused it", async (t) => {
  const respond = async (error: Error): Promise<string> => {
    const { log, lines } = captureAll(3);
    const fail = withErrorResponses(log.child("http"))(async () => {
      throw error;
    });
    const request = makeRequest({ path: "/api/v1/pods" });
    await withRequestLog(log.child("httplog"), new FakeClock())(fail)({
      ...{ request, info: parseRequestInfo(request), auditId: "", user: undefined, warnings: [] },
      ...{ annotations: new AuditAnnotations(), signal: request.signal },
    });
    return lines.at(-1) ?? "";
  };
  t.match(await respond(new TypeError("broken")), /resp=500 statusStack="?\\?n?TypeError: broken.*addedInfo=/s);
  t.notMatch(await respond(notFound({ group: "", resource: "pods", name: "a" })), "statusStack");
});

t.test("an error response of the server is in the log, with the latency of slow filters", async (t) => {
  const { log, lines } = captureAll(3);
  const clock = new FakeClock();
  const requests = withRequestLog(
    log.child("httplog"),
    clock,
  )(async ({ request }) => {
    addLogField(request, "fl_authentication", "200ms");
    await clock.advance(250);
    return textResponse(500, "broken\n");
  });
  const request = makeRequest({
    method: "PATCH",
    path: "/api/v1/namespaces/a/pods/b",
    query: "force=true&token=secret",
  });
  const headers = { "content-type": "application/apply-patch+yaml" };
  const info = parseRequestInfo(request);
  const context: RequestContext = {
    ...{ request: { ...request, headers }, info, auditId: "x".repeat(70) },
    ...{ user: undefined, warnings: [], annotations: new AuditAnnotations(), signal: request.signal },
  };
  await requests(context);
  const [line = ""] = lines;
  t.match(line, /verb="APPLY" URI="\/api\/v1\/namespaces\/a\/pods\/b\?force=true&token=…" latency="250ms"/);
  t.match(line, /audit-ID="x{64}\.\.\." .*fl_authentication="200ms" resp=500 addedInfo="\\nlogging error output: /);
});
