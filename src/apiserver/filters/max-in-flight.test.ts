import t from "tap";
import { AuditAnnotations } from "../../admission/chain/audit-annotations.ts";
import { makeRequest } from "../../http/request.ts";
import { textResponse } from "../../http/respond.ts";
import type { RequestContext } from "../request/request-context.ts";
import { parseRequestInfo } from "../request/request-info.ts";
import { type InFlightLimits, withMaxInFlightLimit } from "./max-in-flight.ts";

type Limits = Pick<InFlightLimits, "readOnly" | "mutating">;

function context(line: string, groups: readonly string[] = []): RequestContext {
  const [method = "", target = ""] = line.split(" ");
  const [path = "", query] = target.split("?");
  const request = makeRequest({ method, path, query });
  const user = { name: "jo", uid: "", groups, extra: {} };
  return {
    request,
    info: parseRequestInfo(request),
    user,
    signal: request.signal,
    warnings: [],
    auditId: "",
    annotations: new AuditAnnotations(),
  };
}

/** Starts the requests one after the other and reports which are admitted (`+`) and rejected (`-`). */
async function admitted(limits: Limits, lines: readonly (readonly [string, string?])[]): Promise<string> {
  const release = Promise.withResolvers<void>();
  let entered = 0;
  const filter = withMaxInFlightLimit(limits)(async () => {
    entered++;
    await release.promise;
    return textResponse(200, "");
  });
  const marks: string[] = [];
  const answers: Promise<{ status: number }>[] = [];
  for (const [line, group] of lines) {
    const before = entered;
    answers.push(filter(context(line, group === undefined ? [] : [group])));
    await Promise.resolve();
    marks.push(entered > before ? "+" : "-");
  }
  release.resolve();
  const statuses = (await Promise.all(answers)).map(({ status }) => (status === 200 ? "+" : "-"));
  if (statuses.join("") !== marks.join("")) throw new Error("admitted requests must get a response");
  return marks.join("");
}

const read = ["GET /api/v1/pods"] as const;
const write = ["POST /api/v1/namespaces/default/pods"] as const;
const watch = ["GET /api/v1/pods?watch=1"] as const;
const masterRead = ["GET /api/v1/pods", "system:masters"] as const;
const masterWrite = ["DELETE /api/v1/nodes/n", "system:masters"] as const;
const probe = ["GET /readyz"] as const;

t.test(
  "withMaxInFlightLimit() counts read-only and mutating requests separately, and exempts masters and watches",
  async (t) => {
    const limits = { readOnly: 2, mutating: 1 };
    t.equal(
      await admitted(limits, [read, read, read, write, write, watch, masterRead, masterWrite, probe]),
      "++-+-+++-",
    );
    t.equal(await admitted(limits, [masterRead, read, read]), "++-", "requests of masters are counted below the limit");
    t.equal(await admitted({ ...limits, readOnly: 0 }, [read, read, read, write, write]), "++++-", "0 is no limit");
    t.equal(await admitted({ ...limits, mutating: 0 }, [write, write, read, read, read]), "++++-");
    t.equal(await admitted({ readOnly: 0, mutating: 0 }, [write, write, read, read]), "++++");
  },
);

t.test("withMaxInFlightLimit() responds 429 as Kubernetes does, and counts down after a failed request", async (t) => {
  const release = Promise.withResolvers<void>();
  let fails = true;
  const filter = withMaxInFlightLimit({ readOnly: 1, mutating: 0 })(async () => {
    await release.promise;
    if (fails) throw new Error("oh");
    return textResponse(200, "");
  });
  const first = filter(context(read[0]));
  const refused = await filter(context(read[0]));
  t.match(refused, { status: 429, headers: { "retry-after": "1", "content-type": "text/plain; charset=utf-8" } });
  t.equal(String(refused.body), "Too many requests, please try again later.\n");
  release.resolve();
  await t.rejects(first);
  fails = false;
  t.match(await filter(context(read[0])), { status: 200 });
});
