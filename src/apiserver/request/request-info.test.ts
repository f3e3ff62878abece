import t from "tap";
import { parseGoDuration } from "./go-duration.ts";
import { isLongRunning, parseRequestInfo } from "./request-info.ts";

const info = (line: string) => {
  const [method = "", target = ""] = line.split(" ");
  const [path = "", query = ""] = target.split("?");
  return parseRequestInfo({ method, path, query });
};

t.test("parseRequestInfo() parses verb, resource and name of a request", async (t) => {
  for (const [line, verb, group, namespace, resource, name, subresource] of [
    ["GET /api/v1/pods", "list", "", "", "pods", "", ""],
    ["GET /api/v1/pods?watch=true", "watch", "", "", "pods", "", ""],
    ["GET /api/v1/pods?watch=false", "list", "", "", "pods", "", ""],
    ["GET /api/v1/namespaces/x/pods?fieldSelector=metadata.name%3Dweb", "list", "", "x", "pods", "web", ""],
    ["GET /api/v1/namespaces/x/pods/web/log", "get", "", "x", "pods", "web", "log"],
    ["POST /api/v1/namespaces/x/pods/web/binding", "create", "", "x", "pods", "web", "binding"],
    ["DELETE /api/v1/namespaces/x/pods", "deletecollection", "", "x", "pods", "", ""],
    ["DELETE /api/v1/namespaces/x/pods/web", "delete", "", "x", "pods", "web", ""],
    ["GET /api/v1/namespaces/x", "get", "", "x", "namespaces", "x", ""],
    ["PUT /api/v1/namespaces/x/finalize", "update", "", "x", "namespaces", "x", "finalize"],
    [
      "PATCH /apis/coordination.k8s.io/v1/namespaces/x/leases/a%20b",
      "patch",
      "coordination.k8s.io",
      "x",
      "leases",
      "a b",
      "",
    ],
    ["GET /api/v1/watch/pods", "watch", "", "", "pods", "", ""],
    ["GET /api/v1/watch/namespaces/x/pods/web", "watch", "", "x", "pods", "web", ""],
    ["POST /api/v1/watch/namespaces/x/pods/web", "watch", "", "x", "pods", "web", ""],
    ["GET /api/v1/proxy/namespaces/x/pods/web/a/b", "proxy", "", "x", "pods", "web", ""],
    ["DELETE /api/v1/proxy/nodes/n1", "proxy", "", "", "nodes", "n1", ""],
    ["GET /api/v1/proxy", "list", "", "", "proxy", "", ""],
    ["HEAD /api/v1/nodes/n1", "get", "", "", "nodes", "n1", ""],
  ] as const) {
    t.match(
      info(line),
      { isResourceRequest: true, version: "v1", verb, group, namespace, resource, name, subresource },
      line,
    );
  }
});

t.test("parseRequestInfo() returns no resource for other paths", async (t) => {
  for (const line of ["GET /", "GET /api", "GET /api/v1", "GET /apis/apps/v1", "GET /healthz/x", "GET /apis"]) {
    t.match(info(line), { isResourceRequest: false, verb: "get", resource: "" }, line);
  }
});

t.test("parseRequestInfo() rewrites deprecated watch paths to query parameters", async (t) => {
  const { query } = info("GET /api/v1/watch/namespaces/x/pods/web?fieldSelector=spec.nodeName%3Dn");
  t.equal(query.get("watch"), "true");
  t.equal(query.get("fieldSelector"), "metadata.name=web,spec.nodeName=n");
});

t.test("isLongRunning() is true for watches and logs", async (t) => {
  t.ok(isLongRunning(info("GET /api/v1/pods?watch=1")));
  t.ok(isLongRunning(info("GET /api/v1/namespaces/x/pods/p/log?follow=true")));
  t.ok(isLongRunning(info("GET /api/v1/namespaces/x/pods/p/log")));
  t.notOk(isLongRunning(info("GET /api/v1/pods")));
});

t.test("parseGoDuration() parses Go durations and returns Go's error message for others", async (t) => {
  for (const [text, expected] of [
    ["1m30s", 90_000],
    ["1.5s", 1500],
    ["-2ms", -2],
    ["0", 0],
    ["1", 'time: missing unit in duration "1"'],
    ["abc", 'time: invalid duration "abc"'],
    ["1x", 'time: unknown unit "x" in duration "1x"'],
    ["", 'time: invalid duration ""'],
  ] as const) {
    t.equal(parseGoDuration(text), expected, text);
  }
});
