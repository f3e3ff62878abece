import t from "tap";
import { StatusError } from "../../../api/status.ts";
import { seededRandom } from "../../../std/crypto/random.ts";
import { silentLogger } from "../../../std/log/logger.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import type { Attributes } from "../../user.ts";
import type { AccessRequest } from "./match-conditions.ts";
import { type ReviewAccess, type WebhookOptions, webhookAuthorizer } from "./webhook.ts";

function attributesOf(more: Partial<Attributes> = {}): Attributes {
  const user = { name: "ann", uid: "1", groups: ["g"], extra: { k: ["v"] } };
  const target = { resource: "pods", subresource: "", name: "", namespace: "ns", apiGroup: "", apiVersion: "v1" };
  return { user, verb: "list", isResourceRequest: true, path: "", ...target, ...more };
}

function createWebhook(
  responses: readonly (Awaited<ReturnType<ReviewAccess>> | Error)[],
  more: Partial<WebhookOptions> = {},
) {
  const clock = new FakeClock();
  const reviews: AccessRequest[] = [];
  const events: string[] = [];
  const authorizer = webhookAuthorizer({
    name: "w",
    async review(spec) {
      const answer = responses[Math.min(reviews.push(spec), responses.length) - 1]!;
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
      called: (_, result) => events.push(result),
      failedOpen: (_, result) => events.push(`open:${result}`),
      conditionsEvaluated: () => events.push("evaluated"),
      conditionsFailed: () => events.push("condition"),
      excluded: () => events.push("excluded"),
    },
    ...more,
  });
  return { authorizer, requested: reviews, events, clock };
}

t.test("webhookAuthorizer() sends all attributes of the request", async (t) => {
  const { authorizer, requested } = createWebhook([{ allowed: true }]);
  await authorizer.authorize(attributesOf({ fieldSelector: "a=b,c!=d\\,e", labelSelector: "x in (1,2),!y,z>3" }));
  await authorizer.authorize(attributesOf({ isResourceRequest: false, path: "/x", verb: "get" }));
  t.same(requested, [
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

t.test("webhookAuthorizer() returns the decision of the response", async (t) => {
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
  for (const [answer, decision] of decisions)
    t.match(await createWebhook([answer]).authorizer.authorize(attributesOf()), decision);
});

t.test("webhookAuthorizer() caches responses for their TTL, and calls once for concurrent requests", async (t) => {
  const { authorizer, requested, clock } = createWebhook([{ allowed: true }, { allowed: false }]);
  await Promise.all([authorizer.authorize(attributesOf()), authorizer.authorize(attributesOf())]);
  await authorizer.authorize(attributesOf());
  t.equal(requested.length, 1);
  await clock.advance(1000);
  t.match(await authorizer.authorize(attributesOf()), { decision: "no-opinion" });
  await clock.advance(100);
  await authorizer.authorize(attributesOf());
  t.equal(requested.length, 3);
  const name = "x".repeat(10_000);
  await authorizer.authorize(attributesOf({ name }));
  await authorizer.authorize(attributesOf({ name }));
  t.equal(requested.length, 5, "long requests are not cached");
});

t.test("webhookAuthorizer() retries temporary failures, then applies the failure policy", async (t) => {
  const overloaded = new StatusError(429, "TooManyRequests", "busy");
  const passing = createWebhook([overloaded, { allowed: true }]);
  const answer = passing.authorizer.authorize(attributesOf());
  await passing.clock.advance(1000);
  t.match(await answer, { decision: "allow" });
  t.same(passing.events, ["error", "success"]);
  const refused = new Error("connect ECONNREFUSED");
  const open = createWebhook([refused]);
  t.match(await open.authorizer.authorize(attributesOf()), { decision: "no-opinion", error: /ECONNREFUSED/ });
  t.same(open.events, ["error", "open:error"]);
  const closed = createWebhook([refused], { failurePolicy: "Deny" });
  t.match(await closed.authorizer.authorize(attributesOf()), { decision: "deny", error: /ECONNREFUSED/ });
  const down = createWebhook([new StatusError(500, "InternalError", "down")]);
  const last = down.authorizer.authorize(attributesOf());
  for (let i = 0; i < 10; i++) await down.clock.advance(5000);
  t.match(await last, { decision: "no-opinion", error: "down" });
  t.equal(down.requested.length, 5);
});

t.test("webhookAuthorizer() skips requests that do not match its conditions", async (t) => {
  const aboutNs = "has(request.resourceAttributes) && request.resourceAttributes.namespace == 'ns'";
  const notAdmin = "!('admin' in request.groups) && user != 'root'";
  const both = createWebhook([{ allowed: true }], { matchConditions: [aboutNs, notAdmin] });
  t.match(await both.authorizer.authorize(attributesOf()), { decision: "allow" });
  t.match(await both.authorizer.authorize(attributesOf({ namespace: "other" })), { decision: "no-opinion" });
  t.match(await both.authorizer.authorize(attributesOf({ isResourceRequest: false, path: "/" })), {
    decision: "no-opinion",
  });
  t.equal(both.requested.length, 1);
  const failing = "request.extra['missing'][0] == 'x'";
  const open = createWebhook([{ allowed: true }], { matchConditions: [failing] });
  t.same(await open.authorizer.authorize(attributesOf()), { decision: "no-opinion", reason: "" }, "not a 500");
  const closed = createWebhook([{ allowed: true }], { matchConditions: [failing], failurePolicy: "Deny" });
  t.same(await closed.authorizer.authorize(attributesOf()), { decision: "deny", reason: "" });
  const skipped = createWebhook([{ allowed: true }], { matchConditions: [failing, "false"], failurePolicy: "Deny" });
  t.match(await skipped.authorizer.authorize(attributesOf()), { decision: "no-opinion", reason: "" });
  t.same([...open.events, ...skipped.events], ["evaluated", "condition", "evaluated", "excluded"]);
});
