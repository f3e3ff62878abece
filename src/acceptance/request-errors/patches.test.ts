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
