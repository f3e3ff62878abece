/**
 * CEL expressions near their cost limits: the longest turn of the event loop of a server that evaluates them for one
 * request. `SVC_ATTACKS=all` (`make attacks`) evaluates all and prints a table; otherwise some.
 */
import t from "tap";
import { until } from "../../testing/std/until.ts";
import { type MeasuredServer, startMeasuredServer } from "./measured-server.ts";

const POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
const DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";
const all = process.env.SVC_ATTACKS === "all";
/** Several times what one expression takes, and less than all of a request take together. */
const TURN_MS_MAX = 250;

function many<T>(count: number, create: (index: number) => T): readonly T[] {
  return Array.from({ length: count }, (_, index) => create(index));
}

interface Case {
  readonly what: string;
  /** Creates what evaluates the expressions. */
  readonly prepare: (server: MeasuredServer) => Promise<unknown>;
  readonly path: string;
  readonly body: object;
}

const replaced = "object.data.all(x, object.data[x].replace('v', 'ww').replace('w', 'vv').replace('v', 'ww') != '')";

interface Policy {
  readonly what: string;
  readonly validations: readonly string[];
  readonly variables?: readonly string[];
  /** Of the config map. */
  readonly data?: Readonly<Record<string, string>>;
}

const manyKeys = Object.fromEntries(many(8000, (each) => [`k${each}`, "v".repeat(20)]));
const longTexts = { a: "a".repeat(100_000), wide: "\u{1F600}".repeat(20_000), part: `b${"a".repeat(50_000)}` };

/** A policy for config maps with a label of its name. */
function policyCase({ what, validations, variables = [], data = manyKeys }: Policy, index: number): Case {
  const name = `policy-${index}`;
  const matchConstraints = {
    objectSelector: { matchLabels: { policy: name } },
    resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["configmaps"] }],
  };
  const spec = {
    failurePolicy: "Ignore",
    matchConstraints,
    variables: variables.map((expression, at) => ({ name: `v${at}`, expression })),
    validations: validations.map((expression) => ({ expression })),
  };
  const labels = { policy: name };
  const probe = { metadata: { generateName: "probe-", labels }, data: { k: "v" } };
  return {
    what,
    prepare: async (server) => {
      const failing = [...spec.validations, { expression: "size(object.data) > 1", message: "the policy acts" }];
      await server.create(POLICIES, { metadata: { name }, spec: { ...spec, validations: failing } });
      const binding = { policyName: name, validationActions: ["Deny"] };
      await server.create(BINDINGS, { metadata: { name }, spec: binding });
      await until(`${name} acts`, async () => {
        const { status } = await server.send({ line: `POST ${CONFIG_MAPS}`, body: JSON.stringify(probe) }, "admin");
        return status === 422 ? true : undefined;
      });
    },
    path: CONFIG_MAPS,
    body: { metadata: { generateName: "large-", labels }, data },
  };
}

/** Objects whose rules together are within their budget. */
function rulesCase(): Case {
  const items = { type: "array", maxItems: 200, items: { type: "integer" } };
  const rules = many(15, (index) => ({ rule: `self.a.all(x, self.a.all(y, x + y >= ${index - 100}))` }));
  const spec = { type: "object", properties: { a: items }, "x-kubernetes-validations": rules };
  const names = { plural: "sums", singular: "sum", kind: "Sum", listKind: "SumList" };
  const schema = { openAPIV3Schema: { type: "object", properties: { spec } } };
  const path = "/apis/example.com/v1/namespaces/default/sums";
  return {
    what: "object under 15 rules of a definition",
    prepare: async (server) => {
      const version = { name: "v1", served: true, storage: true, schema };
      await server.create(DEFINITIONS, {
        metadata: { name: "sums.example.com" },
        spec: { group: "example.com", scope: "Namespaced", names, versions: [version] },
      });
      await until("the definition is served", async () =>
        (await server.send({ line: `GET ${path}` }, "admin")).status === 200 ? true : undefined,
      );
    },
    path,
    body: {
      apiVersion: "example.com/v1",
      kind: "Sum",
      metadata: { generateName: "sum-" },
      spec: { a: many(200, (x) => x) },
    },
  };
}

const loop = "object.data.all(x, object.data.all(y, x != y + 'z'))";
const policies: readonly Policy[] = [
  { what: "10 validations that replace text", validations: many(10, () => replaced) },
  {
    what: "8 variables in one validation",
    validations: [many(8, (index) => `variables.v${index}`).join(" && ")],
    variables: many(8, () => replaced),
  },
  {
    what: "8 authorization checks, each after a loop",
    validations: many(
      8,
      (index) => `${replaced} && authorizer.group('').resource('pods').namespace('n${index}').check('get').allowed()`,
    ),
  },
  { what: "10 loops that exceed their limit", validations: many(10, () => loop) },
  {
    what: "10 loops over functions that scan a long text",
    validations: many(10, () => "object.data.a.split('').all(x, object.data.wide.charAt(9) != x)"),
    data: longTexts,
  },
  {
    what: "10 searches for a long text",
    validations: many(10, () => "object.data.a.lastIndexOf(object.data.part) <= object.data.a.indexOf('b')"),
    data: longTexts,
  },
  { what: "10 regular expressions", validations: many(10, () => "object.data.all(x, x.matches('^(k|kk|[0-9])*$'))") },
];
const cases = [...policies.map(policyCase), rulesCase()];

t.setTimeout(600_000);

t.test("expressions of one request are evaluated in turns", async (t) => {
  await using server = await startMeasuredServer(t.testdir());
  const rows: string[] = [];
  for (const { what, prepare, path, body } of all ? cases : cases.slice(0, 1)) {
    await prepare(server);
    const [{ status, text }, { ms, heapMiB }] = await server.measure(() =>
      server.send({ line: `POST ${path}`, body: JSON.stringify(body) }, "admin"),
    );
    t.equal(status, 201, `${what}: ${status === 201 ? "" : text.slice(0, 300)}`);
    t.ok(ms < TURN_MS_MAX, `${what}: ${Math.round(ms)} ms`);
    rows.push(`| ${what} | ${Math.round(ms)} | ${Math.round(heapMiB)} |`);
  }
  if (all) console.error(`| expressions | longest turn, ms | heap, MiB |\n|---|---|---|\n${rows.join("\n")}`);
});
