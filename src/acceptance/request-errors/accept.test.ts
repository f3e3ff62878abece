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
