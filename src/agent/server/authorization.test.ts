import t from "tap";
import { createClient } from "../../client/api-client.ts";
import { makeRequest } from "../../http/request.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeApi } from "../../testing/agent/fake-api.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { defaultAgentConfig } from "../options.ts";
import { createAgentAuthorization, findSubresources } from "./authorization.ts";

const user = { name: "ali", uid: "", groups: ["g"], extra: {} };
const { authorization } = defaultAgentConfig("n1").server;

function fixture(fineGrained = false, api = new FakeApi()) {
  const clock = new FakeClock(0);
  const authorize = createAgentAuthorization({
    nodeName: "n1",
    settings: { ...authorization, mode: "Webhook", fineGrained },
    client: createClient({ transport: api.transport }),
    clock,
    log: silentLogger,
  });
  const authorizeRequest = async (method: string, path: string): Promise<string> => {
    const denied = await authorize?.(user, makeRequest({ method, path }));
    return denied === undefined ? "allowed" : `${denied.status} ${Buffer.from(denied.body as Uint8Array)}`;
  };
  return { api, clock, authorizeRequest };
}

t.test("createAgentAuthorization() creates a SubjectAccessReview for the subresource of a path", async (t) => {
  const { api, authorizeRequest } = fixture();
  t.equal(
    await authorizeRequest("GET", "/pods"),
    "403 Forbidden (user=ali, verb=get, resource=nodes, subresource(s)=[proxy])\n",
  );
  t.match(await authorizeRequest("TRACE", "/metrics/cadvisor"), /verb=, resource=nodes, subresource\(s\)=\[metrics\]/);
  api.allowed.add("ali create nodes/proxy");
  t.equal(await authorizeRequest("POST", "/exec/default/web/c"), "allowed");
  t.equal(api.accessReviews, 3);
  await authorizeRequest("POST", "/exec/default/web/d");
  await authorizeRequest("GET", "/pods");
  t.equal(api.accessReviews, 3, "results are cached");
});

t.test("createAgentAuthorization() accepts the fine-grained or the coarse subresource, with the gate", async (t) => {
  const { api, authorizeRequest } = fixture(true);
  t.match(await authorizeRequest("GET", "/pods"), /subresource\(s\)=\[pods proxy\]/);
  api.allowed.add("ali get nodes/configz");
  t.equal(await authorizeRequest("GET", "/configz"), "allowed");
  t.match(await authorizeRequest("GET", "/stats/summary"), /subresource\(s\)=\[stats\]/);
  const coarse = fixture(true);
  coarse.api.allowed.add("ali get nodes/proxy");
  t.equal(await coarse.authorizeRequest("GET", "/healthz/ping"), "allowed");
});

t.test("findSubresources() matches whole path segments only", async (t) => {
  const table = [
    ["/stats/summary", "stats"],
    ["/statsx", "proxy"],
    ["/logs", "log"],
    ["/checkpoint/a/b/c", "checkpoint"],
    ["/flagz", "configz"],
    ["/metric%73", "metrics"],
    ["/metrics%2Fcadvisor", "proxy"],
    ["/", "proxy"],
    ["//metrics", "proxy"],
  ] as const;
  for (const [path, subresource] of table) t.same(findSubresources(path, false), [subresource], path);
  t.same(findSubresources("/runningpods/", true), ["pods", "proxy"]);
  t.same(findSubresources("/podsx", true), ["proxy"]);
});

t.test(
  "createAgentAuthorization() denies when the API server is not reachable, and throws when there is none",
  async (t) => {
    const api = new FakeApi();
    api.isDown = true;
    const { authorizeRequest, clock } = fixture(false, api);
    const result = authorizeRequest("GET", "/pods");
    for (let pause = 0; pause < 5; pause++) await clock.advance(10_000);
    t.equal(await result, "500 Authorization error (user=ali, verb=get, resource=nodes, subresource=proxy)");
    const none = { nodeName: "n1", client: undefined, clock: new FakeClock(0), log: silentLogger };
    t.equal(
      createAgentAuthorization({ ...none, settings: authorization }),
      undefined,
      "AlwaysAllow needs no API server",
    );
    t.throws(() => createAgentAuthorization({ ...none, settings: { ...authorization, mode: "Webhook" } }), {
      message: /^Cannot serve: authorization mode Webhook.*set authorization\.mode/,
    });
  },
);
