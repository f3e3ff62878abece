/** Values with more errors than a call has arguments: validation stops early, and does not fail. */
import t from "tap";
import { decode } from "../../schema/decode/decode.ts";
import { builtinKinds } from "../builtin.ts";
import type { ApiObject } from "../kind.ts";

const MANY = 150_000;
const container = { name: "c", image: "i" };

const OBJECTS: readonly (readonly [kind: string, object: object, field: string])[] = [
  ["HorizontalPodAutoscaler", { spec: { behavior: { scaleUp: { policies: Array(MANY).fill({}) } } } }, "policies"],
  ["Pod", { spec: { containers: [container], dnsConfig: { nameservers: Array(MANY).fill("x") } } }, "nameservers"],
  [
    "Pod",
    {
      spec: {
        containers: [container],
        volumes: [{ name: "v", quobyte: { registry: ",".repeat(MANY), volume: "v" } }],
      },
    },
    "registry",
  ],
];

t.test("kinds report a bounded number of errors of long lists", async (t) => {
  for (const [name, object, field] of OBJECTS) {
    const kind = builtinKinds.find(({ kind, version }) => kind === name && version !== "v1beta1")!;
    const { value } = decode(kind.schema, { metadata: { name: "x" }, ...object });
    const errors = kind.strategy.validate?.(value as ApiObject) ?? [];
    const found = errors.filter((error) => error.field.includes(field));
    t.ok(found.length > 0 && found.length < 300, `${name} ${field}: ${found.length}`);
  }
});
