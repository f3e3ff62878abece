/** The errors of query parameters: in the order in which Kubernetes decodes and validates them, with Go's messages. */
import t from "tap";
import { answerTo, createConfigMap, NAMESPACE, sendAndWait, startTableServer } from "./table.ts";

const PODS = `${NAMESPACE}/pods`;
const MAPS = `${NAMESPACE}/configmaps`;

const syntax = (text: string): string => `400 BadRequest: strconv.ParseInt: parsing "${text}": invalid syntax`;
const range = (text: string): string => `400 BadRequest: strconv.ParseInt: parsing "${text}": value out of range`;
const listInvalid = (...why: readonly string[]): string =>
  `422 Invalid: ListOptions.meta.k8s.io "" is invalid: ${why.length === 1 ? why[0] : `[${why.join(", ")}]`}`;
const WITHOUT_VERSION =
  "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided";

t.test("whole numbers are parsed as Go's strconv does, wherever they stand", async (t) => {
  await using server = await startTableServer();
  const numbers: Readonly<Record<string, string>> = {
    abc: syntax("abc"),
    "": syntax(""),
    "1.5": syntax("1.5"),
    "1e3": syntax("1e3"),
    "0x10": syntax("0x10"),
    "1_000": syntax("1_000"),
    "%205": syntax(" 5"),
    "5+": syntax("5 "),
    "--5": syntax("--5"),
    "9223372036854775808": range("9223372036854775808"),
    "-9223372036854775809": range("-9223372036854775809"),
    "99999999999999999999": range("99999999999999999999"),
    "9223372036854775807": "200",
    "%2B5": "200",
    "-5": "200",
    "007": "200",
    // A bad escape drops the parameter, and so does a semicolon.
    "%zz": "200",
    "%": "200",
    "%2": "200",
    "1;x": "200",
  };
  for (const [text, answer] of Object.entries(numbers)) {
    for (const name of ["limit", "timeoutSeconds"]) {
      t.equal(await answerTo(server, `GET ${PODS}?${name}=${text}`), answer, `${name}=${text}`);
    }
    const watch = `GET ${PODS}?watch=1&timeoutSeconds=1&limit=${text}`;
    t.equal(await answerTo(server, watch), answer, `watch with limit=${text}`);
    const deletion = `DELETE ${MAPS}/a?dryRun=All&gracePeriodSeconds=${text}`;
    t.equal(await answerTo(server, deletion), answer, `gracePeriodSeconds=${text}`);
  }
});

t.test(
  "options of a list decode before they are validated, and are validated before fields are looked up",
  async (t) => {
    await using server = await startTableServer();
    const label = "400 BadRequest: unable to parse requirement: found '', expected: identifier";
    const unsupported = 'resourceVersionMatch: Unsupported value: "Foo": supported values: "Exact", "NotOlderThan", ""';
    const answers: Readonly<Record<string, string>> = {
      "limit=abc&timeoutSeconds=xyz": syntax("xyz"),
      "labelSelector=!&limit=abc": syntax("abc"),
      "resourceVersionMatch=Foo&limit=abc": syntax("abc"),
      "resourceVersionMatch=Foo&labelSelector=!": label,
      "labelSelector=!&fieldSelector=x": label,
      "resourceVersionMatch=Foo&fieldSelector=x": "400 BadRequest: invalid selector: 'x'; can't understand 'x'",
      "resourceVersionMatch=Foo&fieldSelector=x%3Dy": listInvalid(WITHOUT_VERSION, unsupported),
      "resourceVersionMatch=Exact&continue=abc": listInvalid(
        WITHOUT_VERSION,
        "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided",
      ),
      "sendInitialEvents=true&resourceVersionMatch=NotOlderThan": listInvalid(
        WITHOUT_VERSION,
        "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list",
      ),
      "resourceVersion=0&resourceVersionMatch=Exact": listInvalid(
        'resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
      ),
      "watch=False&limit=0": "200",
      "watch=FALSE": "200",
      "labelSelector=%zz": "200",
      "fieldSelector=%": "200",
      // A term of nothing is none.
      "fieldSelector=%3D,!%3D,%3D%3D": "200",
      "fieldSelector=%3Dx": "400 BadRequest: field label not supported: ",
    };
    for (const [query, answer] of Object.entries(answers)) {
      t.equal(await answerTo(server, `GET ${PODS}?${query}`), answer, query);
    }
    const deletion = await answerTo(server, `DELETE ${MAPS}?dryRun=All&resourceVersionMatch=Foo&limit=abc`);
    t.equal(deletion, syntax("abc"), "deletion of a collection");
  },
);

t.test("options of the deprecated watch paths are validated as those of a list", async (t) => {
  await using server = await startTableServer();
  const watch = "/api/v1/watch/namespaces/default/configmaps";
  const unlisted = listInvalid("sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list");
  const answers: Readonly<Record<string, string>> = {
    "resourceVersionMatch=NotOlderThan": listInvalid(WITHOUT_VERSION),
    "resourceVersionMatch=NotOlderThan&resourceVersion=0": "200",
    "sendInitialEvents=true": unlisted,
    "sendInitialEvents=true&watch=false": unlisted,
  };
  for (const [query, answer] of Object.entries(answers)) {
    t.equal(await answerTo(server, `GET ${watch}?timeoutSeconds=1&${query}`), answer, query);
  }
  const requested = await answerTo(server, `GET ${watch}?watch=1&sendInitialEvents=true`);
  t.match(requested, /^422 .*sendInitialEvents requires setting resourceVersionMatch/, "a query that requests a watch");
});

t.test("a resourceVersion is compared as a number, and is a precondition where a collection is deleted", async (t) => {
  await using server = await startTableServer();
  for (const version of ["0", "00"]) {
    const { text } = await sendAndWait(server, `GET ${MAPS}?watch=1&timeoutSeconds=1&resourceVersion=${version}`);
    t.match(text, /^\{"type":"ADDED"/, `watch from ${version}`);
  }
  const { resourceVersion } = (await server.send(`GET ${MAPS}/a`)).json.metadata;
  const deletion = `DELETE ${MAPS}?dryRun=All&resourceVersionMatch=NotOlderThan&resourceVersion=`;
  t.equal(await answerTo(server, `${deletion}${resourceVersion}`), "200");
  t.match(await answerTo(server, `${deletion}1`), /^409 Conflict: .*the ResourceVersion in the precondition \(1\)/);
  t.match(await answerTo(server, `DELETE ${MAPS}?resourceVersion=18446744073709551615`), /^504 Timeout: /);
});

t.test("a resourceVersion that is no number gets a 400 for a list and a 500 otherwise", async (t) => {
  await using server = await startTableServer();
  const whys: Readonly<Record<string, string>> = {
    abc: "invalid syntax",
    "-1": "invalid syntax",
    "1.5": "invalid syntax",
    "%2B1": "invalid syntax",
    "%201": "invalid syntax",
    "18446744073709551616": "value out of range",
  };
  for (const [text, why] of Object.entries(whys)) {
    const quoted = JSON.stringify(decodeURIComponent(text));
    const message = `resourceVersion: Invalid value: ${quoted}: strconv.ParseUint: parsing ${quoted}: ${why}`;
    t.equal(await answerTo(server, `GET ${MAPS}/a?resourceVersion=${text}`), `500 : ${message}`);
    t.equal(await answerTo(server, `GET ${MAPS}/none?resourceVersion=${text}`), `500 : ${message}`);
    const watch = `GET ${MAPS}?watch=1&timeoutSeconds=1&resourceVersion=${text}`;
    t.equal(await answerTo(server, watch), `500 : ${message}`);
    for (const more of ["", "&limit=1", "&resourceVersionMatch=Exact", "&resourceVersionMatch=NotOlderThan"]) {
      const list = await answerTo(server, `GET ${MAPS}?resourceVersion=${text}${more}`);
      t.equal(list, `400 BadRequest: invalid resource version: ${message}`, more);
    }
  }
  t.equal(await answerTo(server, `GET ${MAPS}/a?resourceVersion=01`), "200");
});

t.test("a resourceVersion of the future gets a 504 with the current one", async (t) => {
  await using server = await startTableServer();
  for (const version of ["999999999", "18446744073709551615"]) {
    const answer = new RegExp(`^504 Timeout: Timeout: Too large resource version: ${version}, current: \\d+$`);
    t.match(await answerTo(server, `GET ${MAPS}/a?resourceVersion=${version}`), answer);
    t.match(await answerTo(server, `GET ${MAPS}?resourceVersion=${version}`), answer);
  }
  for (const more of ["limit=1", "resourceVersionMatch=Exact"]) {
    const future = "500 : etcdserver: mvcc: required revision is a future revision";
    for (const version of ["999999999", "9223372036854775807"])
      t.equal(await answerTo(server, `GET ${MAPS}?resourceVersion=${version}&${more}`), future, "that of etcd");
    const answer = await server.send(`GET ${MAPS}?resourceVersion=9223372036854775808&${more}`);
    t.match(answer.json.message, /^Timeout: Too large resource version: 9223372036854775808, current: \d+$/);
    t.same(Object.keys(answer.json.details), ["causes"], "exact reads propose no time to retry");
  }
});

t.test("continue tokens decode as in Kubernetes", async (t) => {
  await using server = await startTableServer();
  const { resourceVersion } = (await server.send(`GET ${MAPS}`)).json.metadata;
  const rv = Number(resourceVersion);
  const v = "meta.k8s.io/v1";
  const notValid = "400 BadRequest: invalid continue token: continue key is not valid: ";
  const into = (found: string, what: string): string => `${notValid}json: cannot unmarshal ${found} into Go ${what}`;
  const tokens: readonly (readonly [unknown, string])[] = [
    [
      { v: "meta.k8s.io/v2", rv, start: "x" },
      `${notValid}server does not recognize this encoded version meta.k8s.io/v2`,
    ],
    [{ v: "", rv, start: "x" }, `${notValid}server does not recognize this encoded version `],
    [{}, `${notValid}server does not recognize this encoded version `],
    [null, `${notValid}server does not recognize this encoded version `],
    [[], into("array", "value of type storage.continueToken")],
    [5, into("number", "value of type storage.continueToken")],
    ["x", into("string", "value of type storage.continueToken")],
    [{ v: 5, rv, start: "x" }, into("number", "struct field continueToken.v of type string")],
    [{ v, rv: "1", start: "x" }, into("string", "struct field continueToken.rv of type int64")],
    [{ v, rv: 1.5, start: "x" }, into("number 1.5", "struct field continueToken.rv of type int64")],
    [{ v, rv, start: true }, into("bool", "struct field continueToken.start of type string")],
    [{ v, rv: 0, start: "x" }, `${notValid}incorrect encoded start resourceVersion (version meta.k8s.io/v1)`],
    [{ v, start: "x" }, `${notValid}incorrect encoded start resourceVersion (version meta.k8s.io/v1)`],
    [{ v, rv }, `${notValid}encoded start key empty (version meta.k8s.io/v1)`],
    ...["../x", "a/../x", "./x", "x/", "x//y", "//x", "x/."].map(
      (start) => [{ v, rv, start }, notValid + start] as const,
    ),
    ...["x", "/x", "/", "a/b", "...", "x\0"].map((start) => [{ v, rv, start }, "200"] as const),
    [{ V: v, RV: rv, Start: "x" }, "200"],
    [{ v, rv: -1, start: "x" }, "200"],
    [{ v, rv, start: "x", more: 1 }, "200"],
  ];
  for (const [value, answer] of tokens) {
    const token = Buffer.from(JSON.stringify(value)).toString("base64url");
    t.equal(await answerTo(server, `GET ${MAPS}?limit=1&continue=${token}`), answer, JSON.stringify(value));
  }
  for (const [start, names] of Object.entries({ a: ["a"], "a\0": [], b: [] })) {
    const token = Buffer.from(JSON.stringify({ v, rv, start })).toString("base64url");
    const { items } = (await server.send(`GET ${MAPS}?continue=${token}`)).json;
    const found = (items as readonly { metadata: { name: string } }[]).map(({ metadata }) => metadata.name);
    t.same(found, names, `the page starts at ${JSON.stringify(start)}, and includes it`);
  }
  const texts: Readonly<Record<string, string>> = {
    "!!!": `${notValid}illegal base64 data at input byte 0`,
    "ab%3D": `${notValid}illegal base64 data at input byte 2`,
    abcde: `${notValid}illegal base64 data at input byte 4`,
    abc: `${notValid}invalid character 'i' looking for beginning of value`,
    "": "200",
    "%zz": "200",
  };
  for (const [text, answer] of Object.entries(texts)) {
    t.equal(await answerTo(server, `GET ${MAPS}?continue=${text}`), answer, text);
  }
  const future = Buffer.from(JSON.stringify({ v, rv: 999_999, start: "x" })).toString("base64url");
  t.match(await answerTo(server, `GET ${MAPS}?continue=${future}`), /^500 : etcdserver: .* future revision$/);
});

t.test("no mutation of a query gets a 500 or hangs", async (t) => {
  await using server = await startTableServer();
  const names = [
    "limit",
    "continue",
    "labelSelector",
    "fieldSelector",
    "timeoutSeconds",
    "resourceVersionMatch",
    "pretty",
  ];
  names.push("watch", "allowWatchBookmarks", "sendInitialEvents", "dryRun", "fieldManager", "fieldValidation", "force");
  names.push("gracePeriodSeconds", "propagationPolicy", "orphanDependents", "uid", "timeout", "");
  const values = [
    "",
    "0",
    "1",
    "-1",
    "abc",
    "%zz",
    "%00",
    "%ff",
    "%F0%9F%98%80",
    "a%3Db",
    "!",
    "a,b",
    "true",
    "All",
    ";",
    "\\",
  ];
  const expected = new Set(["200", "201", "400", "404", "409", "410", "422", "504"]);
  for (const name of names) {
    for (const value of values) {
      const query = `timeoutSeconds=1&${name}=${value}`;
      for (const line of [`GET ${MAPS}/a`, `GET ${MAPS}`, `DELETE ${MAPS}/a`, `DELETE ${MAPS}`, `POST ${MAPS}`]) {
        const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "b" } };
        const answer = await answerTo(server, `${line}?${query}`, line.startsWith("POST") ? { body } : {});
        t.ok(expected.has(answer.slice(0, 3)), `${line}?${query}: ${answer}`);
      }
      await createConfigMap(server, "a");
    }
  }
});
