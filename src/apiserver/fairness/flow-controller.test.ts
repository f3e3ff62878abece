import t from "tap";
import { AuditAnnotations } from "../../admission/chain/audit-annotations.ts";
import type { FlowSchema } from "../../api/flowcontrol/flow-schema/schema.ts";
import { mandatoryFlowSchemas, mandatoryPriorityLevels } from "../../api/flowcontrol/mandatory-configuration.ts";
import type {
  LimitedPriorityLevelConfiguration,
  PriorityLevelConfiguration,
} from "../../api/flowcontrol/priority-level-configuration/schema.ts";
import { suggestedFlowSchemas, suggestedPriorityLevels } from "../../api/flowcontrol/suggested-configuration.ts";
import { makeRequest } from "../../http/request.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { createDebugDumps } from "../debug/flow-control-dumps.ts";
import type { RequestContext } from "../request/request-context.ts";
import { parseRequestInfo } from "../request/request-info.ts";
import { type ActiveFlowSchema, FlowController } from "./flow-controller.ts";
import type { FlowRequest } from "./flow-request.ts";

const withNames = <S>(specs: Readonly<Record<string, S>>) =>
  Object.entries(specs).map(([name, spec]) => ({ metadata: { name, uid: `uid-${name}` }, spec }));
const defaultLevels = withNames({ ...mandatoryPriorityLevels, ...suggestedPriorityLevels });
const defaultSchemas = withNames({ ...mandatoryFlowSchemas, ...suggestedFlowSchemas });

function limited(name: string, spec: LimitedPriorityLevelConfiguration): PriorityLevelConfiguration {
  const limitResponse = { type: "Queue", queuing: { queues: 2, handSize: 1, queueLengthLimit: 10 } };
  return { metadata: { name, uid: name }, spec: { type: "Limited", limited: { limitResponse, ...spec } } };
}

/** All requests of the user of that name. */
function schemaFor(name: string, level: string, matchingPrecedence = 100): FlowSchema {
  const rules = [
    { subjects: [{ kind: "User", user: { name } }], nonResourceRules: [{ verbs: ["*"], nonResourceURLs: ["*"] }] },
  ];
  return {
    metadata: { name, uid: name },
    spec: { priorityLevelConfiguration: { name: level }, matchingPrecedence, rules },
  };
}

class Fixture {
  readonly clock = new FakeClock();
  readonly registry = new MetricRegistry();
  readonly controller: FlowController;

  constructor(concurrencyLimit = 600) {
    this.controller = new FlowController({
      concurrencyLimit,
      clock: this.clock,
      log: silentLogger,
      metrics: this.registry,
    });
  }

  classify(name: string, path = "/version", groups: readonly string[] = ["system:authenticated"]): ActiveFlowSchema {
    const info = parseRequestInfo({ method: "GET", path, query: "" });
    return this.controller.classify(info, { name, uid: "", groups, extra: {} });
  }

  start(flow: ActiveFlowSchema, seats = 1): FlowRequest | undefined {
    this.controller.recordActivity();
    const request = makeRequest({ path: "/version", query: "" });
    const context: RequestContext = {
      request,
      info: parseRequestInfo(request),
      user: { name: "jo", uid: "", groups: [], extra: {} },
      signal: request.signal,
      warnings: [],
      auditId: "",
      annotations: new AuditAnnotations(),
    };
    const estimate = { initialSeats: seats, finalSeats: 0, additionalLatencyMs: 0 };
    const { hand, seats: flowSeats } = flow.flowOf("jo");
    return flow.level.queueSet.start({ flow: flow.metrics, flowSeats, distinguisher: "jo", context, estimate }, hand);
  }

  limits(): Readonly<Record<string, number | undefined>> {
    return Object.fromEntries(
      [...this.controller.levels.values()].map(({ name, currentLimit }) => [name, currentLimit]),
    );
  }

  dump(name: string, query = ""): readonly string[] {
    const dumps = createDebugDumps(this.controller, this.clock);
    const found = dumps.find(({ path }) => path === `/debug/api_priority_and_fairness/dump_${name}`);
    return String(found?.respond(new URLSearchParams(query)).body)
      .trimEnd()
      .split("\n");
  }
}

t.test("FlowController divides the seats of the server by shares", async (t) => {
  const { controller } = new Fixture();
  controller.configure(defaultLevels, defaultSchemas);
  const found = [...controller.levels.values()].map(
    ({ name, nominalLimit, lowerLimit, upperLimit, requestSeatsMax }) => [
      name,
      nominalLimit,
      lowerLimit,
      upperLimit,
      requestSeatsMax,
    ],
  );
  t.same(found.toSorted(), [
    ["catch-all", 13, 13, 613, 0],
    ["exempt", 0, 0, 600, 0],
    ["global-default", 49, 24, 649, 8],
    ["leader-election", 25, 25, 625, 4],
    ["node-high", 98, 73, 698, 15],
    ["system", 74, 50, 674, 12],
    ["workload-high", 98, 49, 698, 15],
    ["workload-low", 245, 24, 845, 37],
  ]);
});

t.test("FlowController applies the mandatory objects when there are no others", async (t) => {
  const f = new Fixture();
  t.equal(f.classify("jo", "/version", ["system:masters"]).name, "exempt");
  t.equal(f.classify("jo").name, "catch-all");
  t.equal(f.classify("jo", "/version", []).name, "catch-all", "even without a group");
  t.equal(f.classify("jo").uid, "");
  t.ok(f.classify("jo", "/version", ["system:masters"]).level.isExempt);
});

t.test("the flow schema with the lowest precedence that matches counts, of equal ones the first name", async (t) => {
  const f = new Fixture();
  const own = [schemaFor("jo", "workload-low", 200), schemaFor("kim", "nowhere", 200)];
  const equal = { ...schemaFor("jo", "system", 200), metadata: { name: "a", uid: "a" } };
  f.controller.configure(defaultLevels, [...defaultSchemas, ...own, equal]);
  t.equal(f.classify("jo").name, "a");
  t.equal(f.classify("jo").level.name, "system");
  t.equal(f.classify("kim").name, "global-default", "its level does not exist");
  f.controller.configure(defaultLevels, [
    ...defaultSchemas,
    ...own,
    { ...equal, spec: { ...equal.spec!, matchingPrecedence: 201 } },
  ]);
  t.equal(f.classify("jo").name, "jo");
  t.equal(f.classify("jo", "/healthz").name, "probes");
});

t.test("flows are distinguished by user or namespace, where a level has several queues", async (t) => {
  const f = new Fixture();
  const spec = { ...schemaFor("jo", "two").spec!, distinguisherMethod: { type: "ByNamespace" } };
  const schemas = [
    { metadata: { name: "a" }, spec },
    { ...schemaFor("kim", "two"), spec: { ...schemaFor("kim", "two").spec!, distinguisherMethod: { type: "ByUser" } } },
    schemaFor("lee", "two"),
  ];
  const info = parseRequestInfo({ method: "GET", path: "/api/v1/namespaces/ns/pods", query: "" });
  const distinguisher = (name: string): string =>
    f.classify(name).distinguisherOf(info, { name, uid: "", groups: [], extra: {} });
  f.controller.configure([limited("two", { nominalConcurrencyShares: 5 })], schemas);
  t.same(["jo", "kim", "lee"].map(distinguisher), ["ns", "kim", ""]);
  const queuing = { queues: 1, handSize: 1, queueLengthLimit: 9 };
  f.controller.configure([limited("two", { limitResponse: { type: "Queue", queuing } })], schemas);
  t.same(["jo", "kim", "lee"].map(distinguisher), ["", "", ""]);
  t.same(f.classify("jo").flowOf("").hand, [0]);
});

t.test("levels lend seats that they do not use to levels that need them", async (t) => {
  const f = new Fixture(100);
  const levels = [
    limited("busy", { nominalConcurrencyShares: 20 }),
    limited("lender", { nominalConcurrencyShares: 60, lendablePercent: 50 }),
    limited("bounded", { nominalConcurrencyShares: 10, borrowingLimitPercent: 50 }),
  ];
  const schemas = ["busy", "lender", "bounded"].map((name) => schemaFor(name, name));
  f.controller.configure(levels, schemas);
  const requests = Array.from({ length: 60 }, () => f.start(f.classify("busy")));
  const bounded = Array.from({ length: 60 }, () => f.start(f.classify("bounded")));
  await f.clock.advance(10_000);
  const { lender = 0, busy = 0, bounded: borrowed = 0 } = f.limits();
  t.ok(lender < 40, `${lender} of 64 seats`);
  t.ok(busy > 30, `${busy}`);
  t.ok(borrowed <= 17, `${borrowed}`);
  t.equal(
    requests.filter((request) => request?.isExecuting).length + 0 > 20,
    true,
    "waiting requests get them at once",
  );
  const own = Array.from({ length: 60 }, () => f.start(f.classify("lender")));
  await f.clock.advance(20_000);
  t.ok((f.limits().lender ?? 0) >= 32, "it takes its seats back when it needs them");
  t.ok((f.limits().lender ?? 0) > lender, String(f.limits().lender));
  for (const request of [...requests, ...bounded, ...own]) {
    if (request?.isExecuting) f.controller.finish(f.classify(request.flow.schema).level, request);
  }
  f.controller[Symbol.dispose]();
});

t.test(
  "the limits are adjusted every ten seconds while there are requests, and not when the server is idle",
  async (t) => {
    const f = new Fixture();
    f.controller.configure(defaultLevels, defaultSchemas);
    t.equal(f.clock.pending, 0);
    const flow = f.classify("jo");
    const request = f.start(flow);
    t.equal(f.clock.pending, 1);
    await f.clock.advance(30_000);
    t.equal(f.clock.pending, 1, "a request executes");
    t.ok(flow.level.smoothedDemand >= 1);
    f.controller.finish(flow.level, request!);
    await f.clock.advance(3_600_000);
    t.equal(f.clock.pending, 0);
    t.ok(flow.level.smoothedDemand < 0.01);
    f.start(flow);
    t.equal(f.clock.pending, 1);
    f.controller[Symbol.dispose]();
    t.equal(f.clock.pending, 0);
  },
);

t.test("a level whose object is deleted executes the requests that it has", async (t) => {
  const f = new Fixture();
  f.controller.configure([limited("mine", { nominalConcurrencyShares: 1 })], [schemaFor("jo", "mine")]);
  const flow = f.classify("jo");
  const request = f.start(flow);
  f.controller.configure([], []);
  t.equal(f.classify("jo").name, "catch-all");
  t.match(f.dump("priority_levels")[3], /^mine, +0, +false, +true, +0, +1, +1, +0, +0, +0$/);
  f.controller.finish(flow.level, request!);
  t.notOk(f.controller.levels.has("mine"));
  f.controller.configure([limited("mine", {})], [schemaFor("jo", "mine")]);
  t.notOk(f.classify("jo").level.quiescing);
});

t.test("a level of another name than exempt cannot be exempt", async (t) => {
  const f = new Fixture();
  f.controller.configure([{ metadata: { name: "x" }, spec: { type: "Exempt", exempt: {} } }], [schemaFor("jo", "x")]);
  t.equal(f.classify("jo").name, "catch-all");
  t.notOk(f.controller.levels.has("x"));
});

t.test("the debug pages list levels, queues and requests", async (t) => {
  const f = new Fixture(1);
  const shares = { nominalConcurrencyShares: 30, borrowingLimitPercent: 0 };
  f.controller.configure([limited("mine", shares)], [schemaFor("jo", "mine")]);
  const flow = f.classify("jo");
  f.start(flow);
  await f.clock.advance(500);
  f.start(flow, 2);
  const [head, ...levels] = f.dump("priority_levels");
  t.match(
    head,
    /^PriorityLevelName, ActiveQueues, IsIdle, IsQuiescing, WaitingRequests, ExecutingRequests, Dispatched/,
  );
  t.match(levels[2], /^mine, +1, +false, +false, +1, +1, +1, +0, +0, +0$/);
  const queues = f.dump("queues");
  t.equal(queues.length, 3);
  t.match(queues[0], /^PriorityLevelName, Index, {2}PendingRequests, ExecutingRequests, SeatsInUse, NextDispatchR,/);
  t.ok(
    queues.some((line) => /^mine, +\d, +1, +1, +1, +0\.\d{8}ss, +2, +2, +0\.00600000ss$/.test(line)),
    queues.join("\n"),
  );
  const requests = f.dump("requests", "includeRequestDetails=1");
  t.match(requests[0], /StartTime, +UserName, Verb, +APIPath, +Namespace, Name, +APIVersion, Resource, SubResource$/);
  t.match(
    requests[1],
    /^mine, +jo, +\d, +0, +jo, +2026-01-01T00:00:00\.5Z, +2, +0, +0s, +0001-01-01T00:00:00Z, +jo, +get, +\/version, /,
  );
  t.match(requests[2], /^mine, +jo, +\d, +-1, +jo, +2026-01-01T00:00:00Z, +1, /);
  t.notMatch(f.dump("requests")[0], /UserName/);
  f.controller[Symbol.dispose]();
});
