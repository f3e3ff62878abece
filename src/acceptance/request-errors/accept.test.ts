/** Which representation the Accept header selects, and the errors when there is none. */
import t from "tap";
import { answerTo, NAMESPACE, startTableServer } from "./table.ts";

const TYPES = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
const STREAMS = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
const onlyTypes = (types: string): string => `406 NotAcceptable: only the following media types are accepted: ${types}`;
const unavailable = (types: string): string =>
  `406 NotAcceptable: 406: Not Acceptable\n\nAvailable representations: ${types}`;
const as = (kind: string, version = "v1", group = "meta.k8s.io"): string => `;as=${kind};v=${version};g=${group}`;

/** Accept header; answers for an object, a list and a watch. */
const ANSWERS: readonly (readonly [string, string, string, string])[] = [
  ["application/json", "200", "200", "200"],
  ["application/yaml", "200", "200", "yaml"],
  ["application/yaml, application/json", "200", "200", "yaml"],
  ["application/json;q=0.1, application/yaml;q=0.9", "200", "200", "yaml"],
  ["application/json, application/yaml", "200", "200", "200"],
  [`application/yaml${as("Table")}`, "200", "200", onlyTypes(STREAMS)],
  [`application/yaml${as("PartialObjectMetadata")}`, "200", "list", onlyTypes(STREAMS)],
  [`application/json${as("Table")}`, "200", "200", "200"],
  [`application/json${as("Table", "v1beta1")}`, "200", "200", "200"],
  [`application/json${as("Table", "v2")}`, onlyTypes(TYPES), onlyTypes(TYPES), onlyTypes(TYPES)],
  [`application/json${as("Table", "v1", "x")}`, onlyTypes(TYPES), onlyTypes(TYPES), onlyTypes(TYPES)],
  [`application/json${as("Other")}`, onlyTypes(TYPES), onlyTypes(TYPES), onlyTypes(TYPES)],
  [`application/json${as("Other")}, application/json`, "200", "200", "200"],
  [`application/vnd.kubernetes.protobuf${as("Table")}`, onlyTypes(TYPES), onlyTypes(TYPES), onlyTypes(TYPES)],
  ["application/json;v=v1", onlyTypes(TYPES), onlyTypes(TYPES), onlyTypes(TYPES)],
  ["application/json;g=meta.k8s.io;v=v1", onlyTypes(TYPES), onlyTypes(TYPES), onlyTypes(TYPES)],
  ["application/json;sv=v2", onlyTypes(TYPES), onlyTypes(TYPES), onlyTypes(TYPES)],
  ["application/json;sv=v1, application/yaml", "200", "200", "200"],
  ["application/json;stream=other", onlyTypes(TYPES), onlyTypes(TYPES), onlyTypes(TYPES)],
  ["text/html", unavailable(TYPES), unavailable(`${TYPES}, ${STREAMS}`), unavailable(`${TYPES}, ${STREAMS}`)],
  ["APPLICATION/JSON", unavailable(TYPES), unavailable(`${TYPES}, ${STREAMS}`), unavailable(`${TYPES}, ${STREAMS}`)],
  ["application/cbor", unavailable(TYPES), unavailable(`${TYPES}, ${STREAMS}`), unavailable(`${TYPES}, ${STREAMS}`)],
  ["text/html, */*", "200", "200", "200"],
  // A parameter without a value is none, names are case-sensitive, and quotes belong to the value.
  ["application/json;as=;v=;g", "200", "200", "200"],
  ["application/json;AS=Other;V=v2", "200", "200", "200"],
  [`application/json;as="Table";v=v1;g=meta.k8s.io`, onlyTypes(TYPES), onlyTypes(TYPES), onlyTypes(TYPES)],
  ["application /json", unavailable(TYPES), unavailable(`${TYPES}, ${STREAMS}`), unavailable(`${TYPES}, ${STREAMS}`)],
];

t.test("objects, lists and watches are represented as the Accept header says, or get a 406", async (t) => {
  await using server = await startTableServer();
  const maps = `${NAMESPACE}/configmaps`;
  for (const [accept, object, list, watch] of ANSWERS) {
    t.equal(await answerTo(server, `GET ${maps}/a`, { accept }), object, accept);
    const listed = await answerTo(server, `GET ${maps}`, { accept });
    if (list === "list") t.match(listed, /^406 NotAcceptable: you requested PartialObjectMetadata, but /, accept);
    else t.equal(listed, list, accept);
    const watched = await answerTo(server, `GET ${maps}?watch=1&timeoutSeconds=1`, { accept });
    // Errors are in YAML too where the client wants that.
    if (watch === "yaml")
      t.match(watched, /^406 .*only the following media types are accepted: \S+;stream=watch/s, accept);
    else t.equal(watched, watch, accept);
  }
});

/** Accept header; answers for a Status of success (deletion, eviction), the deletion of a collection, and discovery. */
const OTHER_ANSWERS: readonly (readonly [string, string, string, string, string])[] = [
  ["application/json", "json", "json", "json", "json"],
  ["application/yaml;q=0.5", "yaml", "yaml", "yaml", "yaml"],
  // A Status has no table and no metadata: it stays as it is, in the media type of those.
  [`application/yaml${as("PartialObjectMetadata")}`, "yaml", "406", onlyTypes(TYPES), onlyTypes(TYPES)],
  [`application/vnd.kubernetes.protobuf${as("PartialObjectMetadata")}`, "protobuf", "406", "406", "406"],
  ["application/json;stream=watch", "json", "json", "json", "json"],
  // An error that the client does not accept is JSON.
  ["application/yaml;stream=watch", onlyTypes(TYPES), onlyTypes(TYPES), onlyTypes(TYPES), onlyTypes(TYPES)],
  ["application/json;sv=v1", "json", "json", onlyTypes(TYPES), onlyTypes(TYPES)],
  ["text/html", unavailable(TYPES), unavailable(TYPES), unavailable(TYPES), onlyTypes(TYPES)],
  ["application/*", unavailable(TYPES), unavailable(TYPES), unavailable(TYPES), "json"],
  ["APPLICATION/JSON", unavailable(TYPES), unavailable(TYPES), unavailable(TYPES), onlyTypes(TYPES)],
];

t.test("deletions, evictions and discovery are represented as the Accept header says, or get a 406", async (t) => {
  await using server = await startTableServer();
  const pod = { metadata: { name: "p" }, spec: { containers: [{ name: "c", image: "i" }] } };
  await server.send(`POST ${NAMESPACE}/pods`, { body: { apiVersion: "v1", kind: "Pod", ...pod } });
  const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: "p" } };
  const formatOf = async (line: string, accept: string, body?: object): Promise<string> => {
    const { status, text, headers } = await server.send(line, { headers: { accept }, ...(body && { body }) });
    const format = /json|yaml|protobuf/.exec(String(headers["content-type"]))?.[0] ?? "";
    if (status < 300) return format;
    if (format !== "json") return "406";
    const { code, reason, message } = JSON.parse(text) as Readonly<Record<string, string>>;
    return message?.includes("PartialObjectMetadata, but") ? String(code) : `${code} ${reason}: ${message}`;
  };
  for (const [accept, status, collection, version, group] of OTHER_ANSWERS) {
    const matches = async (wanted: string, found: Promise<string>, what: string) => {
      const text = await found;
      t.equal(wanted === "406" ? text.slice(0, 3) : text, wanted, `${what}: ${accept}`);
    };
    await matches(status, formatOf(`DELETE ${NAMESPACE}/configmaps/a?dryRun=All`, accept), "deletion");
    await matches(status, formatOf(`POST ${NAMESPACE}/pods/p/eviction?dryRun=All`, accept, eviction), "eviction");
    await matches(collection, formatOf(`DELETE ${NAMESPACE}/configmaps?dryRun=All`, accept), "collection");
    for (const path of ["/api", "/api/v1", "/apis/apps/v1"])
      await matches(version, formatOf(`GET ${path}`, accept), path);
    for (const path of ["/apis", "/apis/apps"]) await matches(group, formatOf(`GET ${path}`, accept), path);
  }
});
