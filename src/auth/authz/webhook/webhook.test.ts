import t from "tap";
import { StatusError } from "../../../api/status.ts";
import { silentLogger } from "../../../std/log/logger.ts";
import { seededRandom } from "../../../std/crypto/random.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import type { Attributes } from "../../user.ts";
import type { AccessRequest } from "./match-conditions.ts";
import { type AskAccess, type WebhookOptions, webhookAuthorizer } from "./webhook.ts";

function asks(more: Partial<Attributes> = {}): Attributes {
  const user = { name: "ann", uid: "1", groups: ["g"], extra: { k: ["v"] } };
  const about = { resource: "pods", subresource: "", name: "", namespace: "ns", apiGroup: "", apiVersion: "v1" };
  return { user, verb: "list", isResourceRequest: true, path: "", ...about, ...more };
}

function webhook(answers: readonly (Awaited<ReturnType<AskAccess>> | Error)[], more: Partial<WebhookOptions> = {}) {
  const clock = new FakeClock();
  const asked: AccessRequest[] = [];
  const events: string[] = [];
  const authorizer = webhookAuthorizer({
    name: "w",
    async ask(spec) {
      const answer = answers[Math.min(asked.push(spec), answers.length) - 1]!;
      if (answer instanceof Error) throw answer;
      return answer;
    },
    authorizedTtlMs: 1000,
    unauthorizedTtlMs: 100,
    failurePolicy: "NoOpinion",
    matchConditions: [],
    clock,
    random: seededRandom(1),
    log: silentLogger,
    observe: {
      asked: (_, result) => events.push(result),
      failedOpen: (_, result) => events.push(`open:${result}`),
      conditionsTook: () => events.push("evaluated"),
      conditionsFailed: () => events.push("condition"),
      excluded: () => events.push("excluded"),
    },
    ...more,
  });
  return { authorizer, asked, events, clock };
}

t.test("webhookAuthorizer() asks with all that is known of the request", async (t) => {
  const { authorizer, asked } = webhook([{ allowed: true }]);
  await authorizer.authorize(asks({ fieldSelector: "a=b,c!=d\\,e", labelSelector: "x in (1,2),!y,z>3" }));
  await authorizer.authorize(asks({ isResourceRequest: false, path: "/x", verb: "get" }));
  t.same(asked, [
    {
      resourceAttributes: {
        namespace: "ns",
        verb: "list",
        version: "v1",
        resource: "pods",
        fieldSelector: {
          requirements: [
            { key: "a", operator: "In", values: ["b"] },
            { key: "c", operator: "NotIn", values: ["d,e"] },
          ],
        },
        labelSelector: {
          requirements: [
            { key: "x", operator: "In", values: ["1", "2"] },
            { key: "y", operator: "DoesNotExist" },
          ],
        },
      },
      user: "ann",
      groups: ["g"],
      extra: { k: ["v"] },
      uid: "1",
    },
    { nonResourceAttributes: { path: "/x", verb: "get" }, user: "ann", groups: ["g"], extra: { k: ["v"] }, uid: "1" },
  ]);
});

t.test("webhookAuthorizer() decides as the answer says", async (t) => {
  const decisions = [
    [
      { allowed: true, reason: "ok" },
      { decision: "allow", reason: "ok" },
    ],
    [
      { allowed: false, reason: "no" },
      { decision: "no-opinion", reason: "no" },
    ],
    [
      { allowed: false, denied: true },
      { decision: "deny", reason: "" },
    ],
    [
      { allowed: true, denied: true },
      { decision: "deny", error: /both allow and deny/ },
    ],
  ] as const;
  for (const [answer, decision] of decisions) t.match(await webhook([answer]).authorizer.authorize(asks()), decision);
});

t.test("webhookAuthorizer() remembers answers for as long as it is told, and asks once at a time", async (t) => {
  const { authorizer, asked, clock } = webhook([{ allowed: true }, { allowed: false }]);
  await Promise.all([authorizer.authorize(asks()), authorizer.authorize(asks())]);
  await authorizer.authorize(asks());
  t.equal(asked.length, 1);
  await clock.advance(1000);
  t.match(await authorizer.authorize(asks()), { decision: "no-opinion" });
  await clock.advance(100);
  await authorizer.authorize(asks());
  t.equal(asked.length, 3);
  const name = "x".repeat(10_000);
  await authorizer.authorize(asks({ name }));
  await authorizer.authorize(asks({ name }));
  t.equal(asked.length, 5, "what a client made long is not remembered");
});

t.test("webhookAuthorizer() asks again when that may help, and then does as its failure policy says", async (t) => {
  const overloaded = new StatusError(429, "TooManyRequests", "busy");
  const passing = webhook([overloaded, { allowed: true }]);
  const answer = passing.authorizer.authorize(asks());
  await passing.clock.advance(1000);
  t.match(await answer, { decision: "allow" });
  t.same(passing.events, ["error", "success"]);
  const refused = new Error("connect ECONNREFUSED");
  const open = webhook([refused]);
  t.match(await open.authorizer.authorize(asks()), { decision: "no-opinion", error: /ECONNREFUSED/ });
  t.same(open.events, ["error", "open:error"]);
  const closed = webhook([refused], { failurePolicy: "Deny" });
  t.match(await closed.authorizer.authorize(asks()), { decision: "deny", error: /ECONNREFUSED/ });
  const down = webhook([new StatusError(500, "InternalError", "down")]);
  const last = down.authorizer.authorize(asks());
  for (let i = 0; i < 10; i++) await down.clock.advance(5000);
  t.match(await last, { decision: "no-opinion", error: "down" });
  t.equal(down.asked.length, 5);
});

t.test("webhookAuthorizer() asks only what its conditions hold for", async (t) => {
  const aboutNs = "has(request.resourceAttributes) && request.resourceAttributes.namespace == 'ns'";
  const notAdmin = "!('admin' in request.groups) && user != 'root'";
  const both = webhook([{ allowed: true }], { matchConditions: [aboutNs, notAdmin] });
  t.match(await both.authorizer.authorize(asks()), { decision: "allow" });
  t.match(await both.authorizer.authorize(asks({ namespace: "other" })), { decision: "no-opinion" });
  t.match(await both.authorizer.authorize(asks({ isResourceRequest: false, path: "/" })), { decision: "no-opinion" });
  t.equal(both.asked.length, 1);
  const failing = "request.extra['missing'][0] == 'x'";
  const open = webhook([{ allowed: true }], { matchConditions: [failing] });
  t.match(await open.authorizer.authorize(asks()), { decision: "no-opinion", error: /cel evaluation error: / });
  const closed = webhook([{ allowed: true }], { matchConditions: [failing], failurePolicy: "Deny" });
  t.match(await closed.authorizer.authorize(asks()), { decision: "deny" });
  const skipped = webhook([{ allowed: true }], { matchConditions: [failing, "false"], failurePolicy: "Deny" });
  t.match(await skipped.authorizer.authorize(asks()), { decision: "no-opinion", reason: "" });
  t.same([...open.events, ...skipped.events], ["evaluated", "condition", "evaluated", "excluded"]);
});
