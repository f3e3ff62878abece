/** Spellings and ranges of numbers in bodies and patches: exact in custom resources, checked in integer fields. */
import t from "tap";
import type { TestServer } from "../../testing/apiserver/server-fixture.ts";
import { answerTo, NAMESPACE, startTableServer } from "./table.ts";

const WIDGETS = "/apis/example.com/v1/namespaces/default/widgets";
const LARGEST = "9223372036854775807";
const UNSAFE = "9007199254740993";

async function defineWidgets(server: TestServer): Promise<void> {
  const spec = {
    type: "object",
    properties: {
      count: { type: "integer", format: "int64", minimum: 1 },
      set: { type: "array", items: { type: "integer" }, "x-kubernetes-list-type": "set" },
      any: { "x-kubernetes-preserve-unknown-fields": true },
    },
    "x-kubernetes-validations": [{ rule: `!has(self.count) || self.count != ${UNSAFE} + 2` }],
  };
  const schema = { openAPIV3Schema: { type: "object", properties: { spec } } };
  const body = {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "widgets.example.com" },
    spec: {
      group: "example.com",
      names: { plural: "widgets", singular: "widget", kind: "Widget", listKind: "WidgetList" },
      scope: "Namespaced",
      versions: [{ name: "v1", served: true, storage: true, schema }],
    },
  };
  await server.send("POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions", { body });
  for (let second = 0; second < 30; second++) {
    if ((await server.send(`GET ${WIDGETS}`)).status === 200) return;
    await server.clock.advance(1000);
  }
}

const widget = (name: string, spec: string): Buffer =>
  Buffer.from(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"${name}"},"spec":${spec}}`);

t.test("custom resources keep 64-bit integers through writes, patches, apply and other encodings", async (t) => {
  await using server = await startTableServer();
  await defineWidgets(server);
  const specOf = async (accept = "application/json"): Promise<string> => {
    const { text } = await server.send(`GET ${WIDGETS}/w`, { headers: { accept } });
    return text.slice(text.lastIndexOf("spec"));
  };
  const write = async (line: string, body: Buffer, type = "application/json"): Promise<string> =>
    await answerTo(server, line, { body, type });
  t.equal(await write(`POST ${WIDGETS}`, widget("w", `{"count":${LARGEST},"any":{"f":1.0,"e":1e2}}`)), "201");
  t.equal(await specOf(), `spec":{"any":{"e":100,"f":1},"count":${LARGEST}}}\n`);
  t.match(await specOf("application/yaml"), `count: ${LARGEST}\n`);
  const merge = Buffer.from(`{"spec":{"any":${UNSAFE}}}`);
  t.equal(await write(`PATCH ${WIDGETS}/w`, merge, "application/merge-patch+json"), "200");
  t.equal(await specOf(), `spec":{"any":${UNSAFE},"count":${LARGEST}}}\n`);
  const add = Buffer.from(`[{"op":"add","path":"/spec/any","value":[-${LARGEST}]}]`);
  t.equal(await write(`PATCH ${WIDGETS}/w`, add, "application/json-patch+json"), "200");
  t.equal(await specOf(), `spec":{"any":[-${LARGEST}],"count":${LARGEST}}}\n`);
  const apply = `PATCH ${WIDGETS}/w?force=true&fieldManager=`;
  const yaml = (set: string): Buffer =>
    Buffer.from(
      `apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\nspec: {set: [${set}], any: ${UNSAFE}}\n`,
    );
  t.equal(await write(`${apply}one`, yaml(UNSAFE), "application/apply-patch+yaml"), "200");
  t.equal(await write(`${apply}two`, yaml("9007199254740992"), "application/apply-patch+yaml"), "200");
  t.match(await specOf(), `"set":[${UNSAFE},9007199254740992]`, "items that differ only beyond 2^53 are two");
  t.match(
    await write(`POST ${WIDGETS}`, widget("x", `{"count":-${LARGEST}}`)),
    `Invalid value: -${LARGEST}: spec.count`,
  );
  t.match(await write(`POST ${WIDGETS}`, widget("x", `{"count":9007199254740995}`)), "failed rule");
  t.equal(await write(`POST ${WIDGETS}`, widget("x", `{"count":9007199254740994}`)), "201");
});

t.test("integer fields of Kubernetes' kinds accept decimal integers in range", async (t) => {
  await using server = await startTableServer();
  const pod = (grace: string, port: string): Buffer =>
    Buffer.from(
      `{"metadata":{"name":"n"},"spec":{"terminationGracePeriodSeconds":${grace},"containers":` +
        `[{"name":"c","image":"i","ports":[{"containerPort":${port}}]}]}}`,
    );
  const refused = (number: string, field: string, type: string): string =>
    `400 BadRequest: Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal number ${number} into Go struct field ${field} of type ${type}`;
  const port = "ContainerPort.spec.containers.ports.containerPort";
  const rows: readonly (readonly [string, string, string])[] = [
    ["1", "80", "201"],
    [LARGEST, "80", "201"],
    [String(2n ** 60n), "80", "201"],
    [
      UNSAFE,
      "80",
      refused(UNSAFE, "PodSpec.spec.terminationGracePeriodSeconds", "int64") +
        ": integers beyond 2^53 are supported only where a double represents them",
    ],
    ["1.0", "80", refused("1.0", "PodSpec.spec.terminationGracePeriodSeconds", "int64")],
    ["1", "8e1", refused("8e1", port, "int32")],
    ["1", "80.0", refused("80.0", port, "int32")],
    ["1", "2147483648", refused("2147483648", port, "int32")],
    ["1", UNSAFE, refused(UNSAFE, port, "int32")],
    [
      "9223372036854775808",
      "80",
      refused("9223372036854775808", "PodSpec.spec.terminationGracePeriodSeconds", "int64"),
    ],
  ];
  for (const [grace, containerPort, answer] of rows) {
    const body = pod(grace, containerPort);
    t.equal(
      await answerTo(server, `POST ${NAMESPACE}/pods?dryRun=All`, { body }),
      answer,
      `${grace}, ${containerPort}`,
    );
  }
  for (const exact of [LARGEST, String(2n ** 60n)]) {
    const name = `n${exact}`;
    const body = Buffer.from(String(pod(exact, "80")).replace('"n"', `"${name}"`));
    t.equal(await answerTo(server, `POST ${NAMESPACE}/pods`, { body }), "201");
    const change = Buffer.from('{"metadata":{"labels":{"a":"b"}}}');
    const type = "application/merge-patch+json";
    t.equal(await answerTo(server, `PATCH ${NAMESPACE}/pods/${name}`, { body: change, type }), "200");
    for (const accept of ["application/json", "application/yaml"]) {
      const { text } = await server.send(`GET ${NAMESPACE}/pods/${name}`, { headers: { accept } });
      t.match(text, new RegExp(`terminationGracePeriodSeconds"?: ?${exact}\\b`), "all digits are stored and shown");
    }
  }
});
