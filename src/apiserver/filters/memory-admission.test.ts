import t from "tap";
import { AuditAnnotations } from "../../admission/chain/audit-annotations.ts";
import { makeRequest } from "../../http/request.ts";
import { textResponse } from "../../http/respond.ts";
import { HeapGuard } from "../../std/memory/heap-guard.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import type { RequestContext } from "../request/request-context.ts";
import { parseRequestInfo } from "../request/request-info.ts";
import { RequestMemory } from "../request/request-memory.ts";
import { withMemoryAdmission } from "./memory-admission.ts";

function context(line: string): RequestContext {
  const [method = "", target = ""] = line.split(" ");
  const [path = "", query] = target.split("?");
  const request = makeRequest({ method, path, query });
  const info = parseRequestInfo(request);
  const annotations = new AuditAnnotations();
  return { request, info, user: undefined, signal: request.signal, warnings: [], auditId: "", annotations };
}

t.test("withMemoryAdmission() refuses what needs memory while live objects fill the heap", async (t) => {
  const clock = new FakeClock();
  const heap = { share: 0.5 };
  const refused: string[] = [];
  const guard = new HeapGuard({ clock, collect: () => {}, usedShare: () => heap.share });
  const memory = new RequestMemory({ clock, bytes: 1000 });
  const filter = withMemoryAdmission(memory, guard, ({ info }) => refused.push(info.verb));
  const handle = filter(async () => textResponse(200, ""));
  const pods = "/api/v1/namespaces/default/pods";
  const lines = [
    `GET ${pods}/a`,
    `DELETE ${pods}/a`,
    `DELETE ${pods}`,
    "GET /readyz",
    "GET /metrics",
    `GET ${pods}`,
    `GET ${pods}?watch=1`,
    `POST ${pods}`,
    `PUT ${pods}/a`,
    `PATCH ${pods}/a`,
  ];
  const served = async (): Promise<readonly string[]> => {
    await clock.advance(5000);
    const outcomes = await Promise.allSettled(lines.map((line) => handle(context(line))));
    for (const outcome of outcomes) {
      if (outcome.status === "fulfilled") continue;
      t.match(outcome.reason, { status: { code: 429, details: { retryAfterSeconds: 5 } } });
    }
    return lines.filter((_, index) => outcomes[index]!.status === "fulfilled");
  };
  t.same(await served(), lines);
  heap.share = 0.9;
  t.same(await served(), lines.slice(0, 5));
  t.same(refused, ["list", "watch", "create", "update", "patch"]);
  heap.share = 0.6;
  t.same(await served(), lines);
});
