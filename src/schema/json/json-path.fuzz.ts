/** Fuzzes the JSONPath parser: evaluating any valid path ends quickly. */
import { fuzz } from "../../testing/schema/fuzz-harness.ts";
import { JsonPathError, parseJsonPath } from "./json-path.ts";

const object = { spec: { l: ["p", { k: 1 }], o: { "a.b": null } }, status: { conditions: [{ type: "Ready" }] } };

fuzz({
  name: "json-path",
  samples: [
    '.status.conditions[?(@.type=="Ready")].status',
    String.raw`{.spec.o.a\.b}`,
    "$..l[0:2:1][*]['k','l']",
    ".spec.l[-1,0]..k",
  ].map((path) => Buffer.from(path)),
  words: [".", "..", "[", "]", "[*]", "['", "']", "[?(", ")]", "@.", "==", "<", "\\", "0", "-1", ":", ",", "l", "spec"],
  read: (input) => parseJsonPath(input.toString()).find(object),
  isRefusal: (error) => error instanceof JsonPathError,
});
