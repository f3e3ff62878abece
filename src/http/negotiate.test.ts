import t from "tap";
import { negotiate, parseAccept, parseMediaType } from "./negotiate.ts";

const json = { mediaType: "application/json" };
const yaml = { mediaType: "application/yaml" };
const protobuf = { mediaType: "application/vnd.kubernetes.protobuf" };
const offers = [json, yaml, protobuf];

const choices: readonly (readonly [string | undefined, object | undefined])[] = [
  [undefined, json],
  ["", json],
  ["*/*", json],
  ["application/*", json],
  ["*", json],
  ["text/html, image/gif, *; q=.2, */*; q=.2", json],
  ["*;as=Table, application/yaml;q=0.1", yaml],
  ["**", undefined],
  ["text/html", undefined],
  ["text/html, */*;q=0.1", json],
  ["application/json;q=0.5, application/yaml", yaml],
  ["application/json;q=0, application/yaml;q=0.1", yaml],
  ["*/*, application/yaml", yaml],
  ["application/vnd.kubernetes.protobuf, application/json", protobuf],
  ["APPLICATION/YAML", undefined],
  ["application / yaml", yaml],
  ["application/yaml/", yaml],
  ["application/yaml/x", undefined],
  ["application/json;q=banana", json],
  ["application/json;q=0", json],
  ["application/json;q=0, application/yaml;q=banana", json],
  ["application/json;q=-1, application/yaml;q=0", yaml],
  ["application/json, application/yaml;q=5", yaml],
  ["*/*, application/yaml;q=0.5", yaml],
  ["application/yaml;q=0.5, */*", json],
  ["application/*, application/yaml;q=0.5", yaml],
  ["garbage", undefined],
  [";;;,,,///", undefined],
  ['application/json;x="a,b;q=0"', json],
];

t.test("negotiate() follows the client's order and weights", async (t) => {
  for (const [accept, expected] of choices) t.equal(negotiate(accept, offers)?.offer, expected, String(accept));
});

t.test("negotiate() lets the caller check parameters, and returns them", async (t) => {
  const table = (_: unknown, params: Readonly<Record<string, string>>) =>
    params.as === undefined || (params.as === "Table" && params.v === "v1");
  const accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1,application/json";
  const negotiated = negotiate(accept, offers, table);
  t.equal(negotiated?.offer, json);
  t.strictSame({ ...negotiated?.params }, { as: "Table", v: "v1", g: "meta.k8s.io" });
  t.strictSame({ ...negotiate("application/json;as=Other, application/json", offers, table)?.params }, {});
});

t.test("parseAccept() takes parameters as they are, and omits those without one value", async (t) => {
  const paramsOf = (text: string): object => ({ ...parseAccept(`a/b;${text}`)[0]?.params });
  t.strictSame(paramsOf("as=Table; v = v1 ;g=x"), { as: "Table", v: "v1", g: "x" });
  t.strictSame(paramsOf('as="Table";AS=x'), { as: '"Table"', AS: "x" });
  t.strictSame(paramsOf("as=;v;g=a=b;;q=0.5"), {});
});

t.test("parseMediaType() parses parameters, and returns undefined for a malformed type", async (t) => {
  const media = parseMediaType('Application/JSON; Charset="utf-8" ;stream=watch; __proto__=x');
  t.equal(media?.type, "application/json");
  t.equal(media?.params.charset, "utf-8");
  t.equal(media?.params.stream, "watch");
  t.notOk("constructor" in (media?.params ?? {}));
  for (const good of ["a/b;", "a/b ; ", 'a/b;c="";', 'a/b;c="\\"";d=e'])
    t.equal(parseMediaType(good)?.type, "a/b", good);
  const bad = ["", "json", "a/b/c", "a /b", "a/b;c d=1", "\u0000/x", "a/b;c", "a/b;;", "a/b; ;", "a/b;c=", 'a/b;c="d'];
  for (const text of [...bad, "a/b;c=d;c=e", "a/b;c=d e", 'a/b;c="d"e'])
    t.equal(parseMediaType(text), undefined, JSON.stringify(text));
});

t.test("parseAccept() parses a bounded number of clauses", async (t) => {
  t.ok(parseAccept("a/b,".repeat(100_000)).length <= 64);
  t.ok(parseAccept('a/b;x="y",'.repeat(100_000)).length <= 64);
  t.strictSame(parseAccept('"'.repeat(100_000)), []);
});
