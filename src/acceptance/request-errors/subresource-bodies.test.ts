/** Bodies of evictions, bindings, scales, token requests and deletions: wrong types, unknown fields, wrong JSON. */
import t from "tap";
import { tokenRequest } from "../../api/authentication/token-request.ts";
import { scale } from "../../api/autoscaling/scale/schema.ts";
import { binding } from "../../api/core/binding/schema.ts";
import { deleteOptions } from "../../api/meta/options.ts";
import { eviction } from "../../api/policy/eviction.ts";
import { membersOf } from "../../schema/members.ts";
import type { ObjectSchema, Schema } from "../../schema/schema.ts";
import type { TestServer } from "../../testing/apiserver/server-fixture.ts";
import { answerTo, NAMESPACE, startTableServer } from "./table.ts";

interface Target {
  readonly kind: string;
  readonly schema: ObjectSchema;
  readonly group: string;
  readonly apiVersion: string;
  readonly line: string;
  readonly body: Readonly<Record<string, unknown>>;
  readonly done: string;
}

const DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments";
const TARGETS: readonly Target[] = [
  {
    kind: "Eviction",
    schema: eviction,
    group: "policy",
    apiVersion: "policy/v1",
    line: `POST ${NAMESPACE}/pods/p/eviction?dryRun=All`,
    body: { metadata: { name: "p" }, deleteOptions: { gracePeriodSeconds: 1, dryRun: ["All"] } },
    done: "201",
  },
  {
    kind: "Binding",
    schema: binding,
    group: "core",
    apiVersion: "v1",
    line: `POST ${NAMESPACE}/pods/p/binding?dryRun=All`,
    body: { metadata: { name: "p" }, target: { kind: "Node", name: "n" } },
    done: "201",
  },
  {
    kind: "Scale",
    schema: scale,
    group: "autoscaling",
    apiVersion: "autoscaling/v1",
    line: `PUT ${DEPLOYMENTS}/d/scale?dryRun=All`,
    body: { metadata: { name: "d", namespace: "default" }, spec: { replicas: 1 } },
    done: "200",
  },
  {
    kind: "TokenRequest",
    schema: tokenRequest,
    group: "authentication",
    apiVersion: "authentication.k8s.io/v1",
    line: `POST ${NAMESPACE}/serviceaccounts/s/token?dryRun=All`,
    body: { metadata: {}, spec: { audiences: ["a"], expirationSeconds: 600 } },
    done: "201",
  },
];

async function startServer(): Promise<TestServer> {
  const server = await startTableServer();
  const spec = { containers: [{ name: "c", image: "i" }] };
  const labels = { a: "b" };
  const deployment = { selector: { matchLabels: labels }, template: { metadata: { labels }, spec } };
  await server.send(`POST ${NAMESPACE}/serviceaccounts`, { body: { metadata: { name: "s" } } });
  t.equal(await answerTo(server, `POST ${NAMESPACE}/pods`, { body: { metadata: { name: "p" }, spec } }), "201");
  const body = { metadata: { name: "d" }, spec: deployment };
  t.equal(await answerTo(server, `POST ${DEPLOYMENTS}`, { body }), "201");
  return server;
}

const SCHEME = 'in scheme "pkg/api/legacyscheme/scheme.go:30"';
const NO_OBJECT =
  'Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }';

t.test("bodies of subresources are checked like those of objects", async (t) => {
  await using server = await startServer();
  for (const { kind, group, apiVersion, line, body, done } of TARGETS) {
    const version = apiVersion.split("/").at(-1);
    const unrecognized = (why: string, excerpt: string): string =>
      `400 BadRequest: the object provided is unrecognized (must be of type ${kind}): ${why} (${excerpt})`;
    const notJson = (why: string, excerpt: string): string =>
      unrecognized(`couldn't get version/kind; json parse error: ${why}`, excerpt);
    const cannotHandle = (found: string, why: string): string =>
      `400 BadRequest: ${found} in version "${version}" cannot be handled as a ${kind}: ${why}`;
    const whole = { apiVersion, kind, ...body };
    const text = JSON.stringify(whole);
    const rows: readonly (readonly [unknown, string, string])[] = [
      [whole, "", done],
      [body, "", done],
      [
        { ...whole, kind: "X" },
        "",
        cannotHandle("X", `no kind "X" is registered for version "${apiVersion}" ${SCHEME}`),
      ],
      [
        { ...whole, apiVersion: `x/${version}` },
        "",
        cannotHandle(kind, `no kind "${kind}" is registered for version "x/${version}" ${SCHEME}`),
      ],
      [
        { ...whole, apiVersion: "a/b/c" },
        "",
        unrecognized("unexpected GroupVersion string: a/b/c", '{"apiVersion":"a/b/c","kind":" ...'),
      ],
      [
        { ...whole, apiVersion: "v1", kind: "Pod" },
        "",
        `400 BadRequest: Pod in version "v1" cannot be handled as a ${kind}: converting (v1.Pod) to (${group}.${kind}): unknown conversion`,
      ],
      [{ ...whole, extra: 1 }, "Strict", cannotHandle(kind, 'strict decoding error: unknown field "extra"')],
      [{ ...whole, extra: 1 }, "Warn", `${done} | "unknown field \\"extra\\""`],
      [{ ...whole, extra: 1 }, "Ignore", done],
      [
        text.replace('"kind"', `"kind":"${kind}","kind"`),
        "Strict",
        cannotHandle(kind, 'strict decoding error: duplicate field "kind"'),
      ],
      [text.replace('"kind"', `"kind":"${kind}","kind"`), "Warn", `${done} | "duplicate field \\"kind\\""`],
      ["", "", notJson("unexpected end of JSON input", "<empty>")],
      ["{", "", notJson("unexpected end of JSON input", "{")],
      ["[]", "", notJson(`json: cannot unmarshal array into ${NO_OBJECT}`, "5b5d")],
      ["5", "", notJson(`json: cannot unmarshal number into ${NO_OBJECT}`, "35")],
    ];
    for (const [sent, fieldValidation, answer] of rows) {
      const query = fieldValidation === "" ? "" : `&fieldValidation=${fieldValidation}`;
      const found = await answerTo(server, `${line}${query}`, { body: sent });
      t.equal(found, answer, `${kind} ${fieldValidation} ${JSON.stringify(sent)}`);
    }
  }
});

interface WrongValue {
  readonly path: readonly string[];
  readonly value: string;
}

/** For each member a value that Go does not decode into it. */
function wrongValues(schema: ObjectSchema, path: readonly string[] = []): readonly WrongValue[] {
  return membersOf(schema).flatMap(({ name, schema: member }) => {
    const at = [...path, name];
    if (name === "apiVersion" || name === "kind") return [];
    const own = wrongValuesOf(member).map((value) => ({ path: at, value }));
    return member.type === "object" && at.length < 3 ? [...own, ...wrongValues(member, at)] : own;
  });
}

function wrongValuesOf(schema: Schema): readonly string[] {
  switch (schema.type) {
    case "string":
      return ["5", "{}"];
    case "integer":
      return ['"x"', "1.0", "1.5", "1e1", "99999999999999999999"];
    case "boolean":
      return ['"x"', "1"];
    case "list":
      return ['"x"', "{}"];
    case "object":
    case "map":
      return ['"x"', "[]"];
    default:
      return [];
  }
}

function textOf({ path, value }: WrongValue): string {
  return path.reduceRight((text, name) => `{${JSON.stringify(name)}:${text}}`, value);
}

t.test("each member of a wrong type is reported with its path", async (t) => {
  await using server = await startServer();
  let values = 0;
  for (const { kind, schema, line } of TARGETS) {
    for (const wrong of wrongValues(schema)) {
      values++;
      const answer = await answerTo(server, line, { body: textOf(wrong) });
      const where = `Go struct field \\S+\\.${wrong.path.join("\\.")} of type `;
      t.match(
        answer,
        new RegExp(`^400 BadRequest: ${kind} in version "\\w+" cannot be handled .* into ${where}`),
        kind,
      );
    }
  }
  for (const wrong of wrongValues(deleteOptions)) {
    values++;
    const answer = await answerTo(server, `DELETE ${NAMESPACE}/configmaps/a`, { body: textOf(wrong) });
    const where = `Go struct field \\S+\\.${wrong.path.join("\\.")} of type `;
    t.match(answer, new RegExp(`^500 : json: cannot unmarshal .* into ${where}`), "DeleteOptions");
  }
  t.ok(values > 100, `${values} values`);
});

t.test("delete options with errors delete nothing", async (t) => {
  await using server = await startServer();
  const scheme = 'in scheme "pkg/apis/meta/internalversion/scheme/register.go:27"';
  const invalid = (why: string): string => `422 Invalid: DeleteOptions.meta.k8s.io "" is invalid: ${why}`;
  const rows: readonly (readonly [string, RegExp | string])[] = [
    ['{"kind":"X","apiVersion":"v1"}', `500 : no kind "X" is registered for version "v1" ${scheme}`],
    ['{"kind":"Pod","apiVersion":"v1"}', `500 : no kind "Pod" is registered for version "v1" ${scheme}`],
    ['{"apiVersion":"a/b/c"}', "500 : unexpected GroupVersion string: a/b/c"],
    ["{", "500 : couldn't get version/kind; json parse error: unexpected end of JSON input"],
    ["[]", `500 : couldn't get version/kind; json parse error: json: cannot unmarshal array into ${NO_OBJECT}`],
    [
      '{"orphanDependents":true,"propagationPolicy":"Orphan"}',
      invalid(
        'propagationPolicy: Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set',
      ),
    ],
    [
      '{"propagationPolicy":"x"}',
      invalid(
        'propagationPolicy: Unsupported value: "x": supported values: "Foreground", "Background", "Orphan", "nil"',
      ),
    ],
    ['{"dryRun":["x"]}', invalid('dryRun: Unsupported value: []string{"x"}: supported values: "All"')],
    [
      '{"preconditions":{"uid":"x"}}',
      /^409 Conflict: Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition \(x\) does not match /,
    ],
    [
      '{"preconditions":{"resourceVersion":"1"}}',
      /^409 Conflict: Operation cannot be fulfilled on ConfigMap "a": the ResourceVersion in the precondition \(1\) does /,
    ],
  ];
  for (const [body, answer] of rows) {
    const found = await answerTo(server, `DELETE ${NAMESPACE}/configmaps/a`, { body });
    if (typeof answer === "string") t.equal(found, answer, body);
    else t.match(found, answer, body);
  }
  t.equal(await answerTo(server, `GET ${NAMESPACE}/configmaps/a`), "200");
  // Field validation does not apply to options.
  const unknown = '{"gracePeriodSeconds":1,"gracePeriodSeconds":0,"extra":1}';
  t.equal(await answerTo(server, `DELETE ${NAMESPACE}/configmaps/a?fieldValidation=Strict`, { body: unknown }), "200");
});
