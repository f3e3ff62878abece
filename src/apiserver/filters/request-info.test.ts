import t from "tap";
import type { HttpResponse } from "../../http/message.ts";
import { makeRequest } from "../../http/request.ts";
import { bytesResponse } from "../../http/respond.ts";
import { seededRandom } from "../../std/crypto/random.ts";
import { withRequestInfo } from "./request-info.ts";

const respond = async (response: HttpResponse): Promise<readonly string[]> => {
  const handler = withRequestInfo(async ({ warnings }) => {
    warnings.push("old");
    return response;
  }, seededRandom(1));
  return Object.keys((await handler(makeRequest({ path: "/api" }))).headers).sort();
};

t.test("responses get the server's headers", async (t) => {
  const response = bytesResponse(200, "text/plain", Buffer.from("a"));
  t.same(await respond(response), ["audit-id", "cache-control", "content-type", "warning"]);
});

t.test("responses by which a connection switches protocols, or is refused to, get no headers", async (t) => {
  const body = Buffer.alloc(0);
  t.same(await respond({ status: 101, headers: { upgrade: "SPDY/3.1" }, body }), ["upgrade"]);
  const refusal = { status: 403, headers: { "content-type": "text/plain" }, body, asReceived: true } as const;
  t.same(await respond(refusal), ["content-type"]);
});
