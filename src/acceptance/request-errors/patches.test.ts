/** Which patches are applied, and the errors of the others, by the rules of Kubernetes' decoders and libraries. */
import t from "tap";
import type { TestServer } from "../../testing/apiserver/server-fixture.ts";
import { answerTo, createConfigMap, NAMESPACE, startTableServer } from "./table.ts";

const JSON_PATCH = "application/json-patch+json";
const MERGE = "application/merge-patch+json";
const STRATEGIC = "application/strategic-merge-patch+json";
const REFUSED = "422 Invalid: the server rejected our request due to an error in our request";

async function patchOf(server: TestServer, type: string, body: string, query = "dryRun=All"): Promise<string> {
  return await answerTo(server, `PATCH ${NAMESPACE}/configmaps/a?${query}`, { body, type });
}

t.test("JSON patches that do not decode get a 400, those that do not apply a 422", async (t) => {
  await using server = await startTableServer();
  const decode = "400 BadRequest: error decoding patch: ";
  const mismatch = (found: string, into: string): string => `${decode}json: cannot unmarshal ${found} into Go ${into}`;
  const field = (name: string): string => `struct field jsonPatchOp.${name} of type string`;
  const answers: readonly (readonly [string, string])[] = [
    ["[]", "200"],
    ["null", "200"],
    ["[null]", REFUSED],
    ["[{}]", REFUSED],
    ['[{"op":"add"}]', REFUSED],
    ['[{"op":null,"path":"/data/b"}]', REFUSED],
    ['[{"op":"add","path":null,"value":"x"}]', REFUSED],
    ['[{"op":"Add","path":"/data/b","value":"x"}]', REFUSED],
    ['[{"op":5,"path":"/data/b"}]', mismatch("number", field("op"))],
    ['[{"op":true,"path":"/data/b"}]', mismatch("bool", field("op"))],
    ['[{"op":"add","path":["data"]}]', mismatch("array", field("path"))],
    ['[{"op":"copy","path":"/data/b","from":{}}]', mismatch("object", field("from"))],
    ["{}", mismatch("object", "value of type []handlers.jsonPatchOp")],
    ['"x"', mismatch("string", "value of type []handlers.jsonPatchOp")],
    ["5", mismatch("number", "value of type []handlers.jsonPatchOp")],
    ["false", mismatch("bool", "value of type []handlers.jsonPatchOp")],
    ["[5]", mismatch("number", "value of type handlers.jsonPatchOp")],
    ["[[]]", mismatch("array", "value of type handlers.jsonPatchOp")],
    ["", `${decode}unexpected end of JSON input`],
    ["[", `${decode}unexpected end of JSON input`],
    ["[]x", `${decode}invalid character 'x' after top-level value`],
    ['[{"op":"add","path":"/data/a/b","value":"x"}]', REFUSED],
    ['[{"op":"add","path":"","value":{}}]', REFUSED],
    ['[{"op":"copy","from":"","path":"/data/b"}]', REFUSED],
    ['[{"op":"copy","from":"/data/none","path":"/data/b"}]', "200"],
    ['[{"op":"copy","from":"/none/a","path":"/data/b"}]', REFUSED],
    ['[{"op":"move","from":"/data/none","path":"/data/b"}]', REFUSED],
    ['[{"op":"replace","path":"/data/none","value":"x"}]', "200"],
    ['[{"op":"add","path":"data","value":"x"}]', REFUSED],
    ['[{"op":"add","path":"data/b","value":"x"}]', '200 | "unknown field \\"b\\""'],
    ['[{"op":"add","path":"x/data/b","value":"x"}]', "200"],
    ['[{"op":"add","path":"/data/b","value":"x","note":1}]', '200 | "json patch unknown field \\"[0].note\\""'],
    ['[{"op":"add","op":"add","path":"/data/b","value":"x"}]', '200 | "json patch duplicate field \\"[0].op\\""'],
    ['[{"OP":"add","path":"/data/b","value":"x"}]', REFUSED],
  ];
  for (const [body, answer] of answers) t.equal(await patchOf(server, JSON_PATCH, body), answer, body);
  const many = JSON.stringify(Array(10_001).fill({ op: "test", path: "/data/a", value: "1" }));
  const message = "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001";
  t.equal(await patchOf(server, JSON_PATCH, many), `413 RequestEntityTooLarge: ${message}`);
});

t.test("fieldValidation decides which decoder reports the errors of a patch", async (t) => {
  await using server = await startTableServer();
  const ignore = "dryRun=All&fieldValidation=Ignore";
  const answers: readonly (readonly [string, string, string])[] = [
    [JSON_PATCH, "{}", "400 BadRequest: json: cannot unmarshal object into Go value of type jsonpatch.Patch"],
    [JSON_PATCH, "[5]", "400 BadRequest: json: cannot unmarshal number into Go value of type jsonpatch.Operation"],
    [JSON_PATCH, '[{"op":5}]', REFUSED],
    [JSON_PATCH, "[", "400 BadRequest: unexpected end of JSON input"],
    [JSON_PATCH, '[{"op":"add","path":"/data/b","value":"x","note":1}]', "200"],
    [MERGE, "{", "400 BadRequest: Invalid JSON Patch"],
    [MERGE, "5", "400 BadRequest: Invalid JSON Patch"],
    [MERGE, "null", "400 BadRequest: Invalid JSON Patch"],
    [MERGE, '{"data":{"b":"1","b":"2"}}', "200"],
    [STRATEGIC, "{", "400 BadRequest: unexpected end of JSON input"],
    [STRATEGIC, "5", "400 BadRequest: json: cannot unmarshal number into Go value of type map[string]interface {}"],
    [STRATEGIC, "null", "200"],
  ];
  for (const [type, body, answer] of answers) t.equal(await patchOf(server, type, body, ignore), answer, body);
  t.match(await patchOf(server, MERGE, "[]", ignore), /^422 Invalid: {2}"" is invalid: patch: Invalid value: "\[\]": /);
  t.equal(await patchOf(server, STRATEGIC, "null"), "200");
  t.equal(await patchOf(server, MERGE, "null"), "400 BadRequest: Invalid JSON Patch");
  const strict = "dryRun=All&fieldValidation=Strict";
  const note = '[{"op":"add","path":"/data/b","value":"x","note":1}]';
  t.match(await patchOf(server, JSON_PATCH, note, strict), /: strict decoding error: json patch unknown field /);
  t.match(
    await patchOf(server, MERGE, '{"data":{"b":"1","b":"2"}}', strict),
    /decoding error: duplicate field "data.b"$/,
  );
});

t.test("a patch of a missing object gets a 404 whatever it contains", async (t) => {
  await using server = await startTableServer();
  for (const type of [JSON_PATCH, MERGE, STRATEGIC]) {
    for (const body of ["{}", "[", "5", "[]"]) {
      const answer = await answerTo(server, `PATCH ${NAMESPACE}/configmaps/none`, { body, type });
      t.equal(answer, '404 NotFound: configmaps "none" not found', `${type} ${body}`);
    }
  }
});

t.test("a copy of a missing member writes an empty value", async (t) => {
  await using server = await startTableServer();
  await createConfigMap(server, "b");
  const body = '[{"op":"copy","from":"/data/none","path":"/data/b"}]';
  await answerTo(server, `PATCH ${NAMESPACE}/configmaps/b`, { body, type: JSON_PATCH });
  t.same((await server.send(`GET ${NAMESPACE}/configmaps/b`)).json.data, { a: "1", b: "" });
});

t.test("no mutation of a patch gets a 500", async (t) => {
  await using server = await startTableServer();
  const paths = [
    "",
    "/",
    "data",
    "/data",
    "/data/a",
    "/data/a/x",
    "/metadata",
    "/metadata/labels",
    "/kind",
    "/x/-",
    "//",
  ];
  const values = ["", ',"value":null', ',"value":"x"', ',"value":5', ',"value":[]', ',"value":{"a":"b"}'];
  const counts = new Map<string, number>();
  for (const op of ["add", "remove", "replace", "move", "copy", "test", "frob"]) {
    for (const path of paths) {
      for (const more of op === "move" || op === "copy" ? paths.map((from) => `,"from":"${from}"`) : values) {
        const body = `[{"op":"${op}","path":"${path}"${more}}]`;
        const code = (await patchOf(server, JSON_PATCH, body)).slice(0, 3);
        counts.set(code, (counts.get(code) ?? 0) + 1);
        t.ok(["200", "400", "409", "422"].includes(code), `${code} ${body}`);
      }
    }
  }
  t.ok([...counts.keys()].length > 2, "the mutations have different answers");
});

const DEPLOYMENT = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "d", finalizers: ["a.b/c", "a.b/d"] },
  spec: {
    selector: { matchLabels: { app: "d" } },
    template: {
      metadata: { labels: { app: "d" } },
      spec: { containers: [{ name: "c1", image: "i" }], volumes: [{ name: "v", emptyDir: {} }] },
    },
  },
};

t.test("directives of strategic merge patches have Kubernetes' errors", async (t) => {
  await using server = await startTableServer();
  const deployments = "/apis/apps/v1/namespaces/default/deployments";
  await server.send(`POST ${deployments}`, { body: DEPLOYMENT });
  const pod = (spec: object): object => ({ spec: { template: { spec } } });
  const containers = (...items: readonly unknown[]): object => pod({ containers: items });
  const notList = (found: string): string => `500 : expected a []interface {}, but received a ${found}`;
  const notMap = (found: string): string => `500 : expected a map[string]interface {}, but received a ${found}`;
  const retain = "400 BadRequest: invalid patch format of retainKeys";
  const order = "$setElementOrder/containers";
  const answers: readonly (readonly [object, string])[] = [
    [{ $patch: "merge" }, "500 : unknown patch type: merge in map: map[$patch:merge]"],
    [{ $patch: 5 }, "500 : unknown patch type: %!s(int64=5) in map: map[$patch:5]"],
    [{ $patch: null }, "500 : unknown patch type: %!s(<nil>) in map: map[$patch:<nil>]"],
    [{ metadata: { $patch: true } }, "500 : unknown patch type: %!s(bool=true) in map: map[$patch:true]"],
    [containers({ name: "c1", $patch: "merge" }), "500 : merging lists cannot yet be specified in the patch"],
    [containers({ $patch: "delete" }), "500 : map: map[$patch:delete] does not contain declared merge key: name"],
    [containers({ image: "j" }), "500 : map: map[image:j] does not contain declared merge key: name"],
    [containers({ name: "c1" }, { $patch: "merge" }), "500 : merging lists cannot yet be specified in the patch"],
    [{ metadata: { finalizers: [5] } }, "500 : list element types are not identical: [[a.b/c a.b/d] [5]]"],
    [{ metadata: { finalizers: [null] } }, "500 : list element types are not identical: [[a.b/c a.b/d] [<nil>]]"],
    [{ metadata: { "$deleteFromPrimitiveList/finalizers": ["a.b/c"] } }, "200"],
    [{ metadata: { "$deleteFromPrimitiveList/finalizers": "a.b/c" } }, "200"],
    [{ metadata: { "$deleteFromPrimitiveList/finalizers": null } }, "200"],
    [{ metadata: { "$deleteFromPrimitiveList/none": ["x"] } }, "200"],
    [
      { metadata: { "$deleteFromPrimitiveList/finalizers": [{}] } },
      "500 : list element types are not identical: [[a.b/c a.b/d] [map[]]]",
    ],
    [{ metadata: { $deleteFromPrimitiveList: [] } }, "400 BadRequest: invalid patch format of primitive list"],
    [{ metadata: { $deleteFromPrimitiveListOf: [] } }, "400 BadRequest: invalid patch format of primitive list"],
    [{ metadata: { "$setElementOrder/finalizers": ["a.b/d"] } }, "200"],
    [{ metadata: { "$setElementOrder/finalizers": [] } }, "200"],
    [{ metadata: { "$setElementOrder/finalizers": "x" } }, notList("string")],
    [{ metadata: { "$setElementOrder/finalizers": null } }, notList("%!s(<nil>)")],
    [{ metadata: { "$setElementOrder/finalizers": {} } }, notList("map[string]interface {}")],
    [{ metadata: { "$setElementOrder/finalizers": 5 } }, notList("int64")],
    [{ metadata: { "$setElementOrder/finalizers": ["a.b/c"], finalizers: "x" } }, notList("string")],
    [{ metadata: { $setElementOrder: [] } }, "400 BadRequest: invalid patch format of setElementOrder list"],
    [{ metadata: { $setElementOrder: "x" } }, notList("string")],
    [
      { metadata: { "$setElementOrder/none": [] } },
      '500 : unable to find api field in struct ObjectMeta for the json field "none"',
    ],
    [pod({ [order]: [{ name: "c1" }] }), "200"],
    [pod({ [order]: [{ image: "x" }] }), "200"],
    [pod({ [order]: ["c1"] }), "500 : value for key 0 is not a map."],
    [pod({ [order]: ["c1"], containers: [{ name: "c1" }] }), notMap("string")],
    [
      pod({ [order]: [{ image: "x" }], containers: [{ name: "c1" }] }),
      "500 : map: map[image:x] does not contain declared merge key: name",
    ],
    [
      pod({ [order]: [{ name: "c2" }], containers: [{ name: "c1" }] }),
      "500 : The order in patch list:\n[map[name:c1]]\n doesn't match $setElementOrder list:\n[map[name:c2]]\n",
    ],
    [pod({ [order]: [{ name: "c2" }], containers: [{ name: "c9", $patch: "delete" }] }), "200"],
    [{ spec: { strategy: { $retainKeys: "type" } } }, retain],
    [{ spec: { strategy: { $retainKeys: null } } }, retain],
    [{ spec: { strategy: { $retainKeys: ["type"], rollingUpdate: {} } } }, retain],
    [{ spec: { strategy: { $retainKeys: [5], type: "Recreate" } } }, retain],
    [{ spec: { strategy: { $retainKeys: ["type"], rollingUpdate: null, type: "Recreate" } } }, "200"],
    [pod({ volumes: [{ name: "v", $retainKeys: ["hostPath"], hostPath: { path: "/x" } }] }), retain],
  ];
  for (const [body, answer] of answers) {
    const line = `PATCH ${deployments}/d?dryRun=All`;
    t.equal(await answerTo(server, line, { body, type: STRATEGIC }), answer, JSON.stringify(body));
  }
});

t.test("the router looks for the type of a patch in the header, the handler compares the whole", async (t) => {
  await using server = await startTableServer();
  const map = `${NAMESPACE}/configmaps/a`;
  const unsupported = "415 UnsupportedMediaType: 415: Unsupported Media Type";
  const types = ["json-patch+json", "merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml"];
  const accepted = types.map((type) => `application/${type}`).join(", ");
  const format = "the body of the request was in an unknown format";
  const unknown = `415 UnsupportedMediaType: ${format} - accepted media types include: ${accepted}`;
  const answers: Readonly<Record<string, string>> = {
    "application/merge-patch+json": "200",
    "application/merge-patch+json;;x": "200",
    "application/merge-patch+json ;x": unknown,
    "application/json, application/merge-patch+json": unknown,
    "application/json": unsupported,
    "APPLICATION/MERGE-PATCH+JSON": unsupported,
    "application/apply-patch+cbor": unsupported,
  };
  for (const [type, answer] of Object.entries(answers)) {
    t.equal(await answerTo(server, `PATCH ${map}`, { body: {}, type }), answer, type);
    if (answer !== unsupported) continue;
    const empty = await answerTo(server, `PATCH ${map}`, { body: "", type });
    t.equal(empty, "406 NotAcceptable: 406: Not Acceptable\n\nAvailable representations: ", `${type}, an empty body`);
    const none = await answerTo(server, `PATCH ${map}`, { type });
    t.equal(none, `${unsupported}\n\nAvailable representations: `, `${type}, no body`);
  }
});
