import t from "tap";
import { decode } from "../../../schema/decode/decode.ts";
import { type CustomResourceDefinition, customResourceDefinition } from "./schema.ts";
import { fromV1beta1 } from "./stored-v1beta1.ts";

const schema = { openAPIV3Schema: { type: "object", properties: { spec: { type: "object" } } } };
const scale = { specReplicasPath: ".spec.n", statusReplicasPath: ".status.n" };

function read(spec: object): CustomResourceDefinition {
  const { value, errors } = decode(customResourceDefinition, fromV1beta1({ metadata: { name: "foos.ex.io" }, spec }));
  if (errors[0] !== undefined) throw new Error(errors[0].message);
  return value as CustomResourceDefinition;
}

t.test("a definition that Kubernetes stored in v1beta1 has what its versions share in each version", async (t) => {
  const { spec } = read({
    group: "ex.io",
    version: "v1",
    scope: "Namespaced",
    names: { plural: "foos", kind: "Foo" },
    validation: schema,
    subresources: { status: {}, scale },
    additionalPrinterColumns: [{ name: "N", type: "integer", JSONPath: ".spec.n" }],
    selectableFields: [{ jsonPath: ".spec.n" }],
    versions: [
      { name: "v1", served: true, storage: true },
      { name: "v2", served: true, storage: false, deprecated: true },
    ],
    conversion: { strategy: "None" },
    preserveUnknownFields: false,
  });
  const shared = {
    schema,
    subresources: { status: {}, scale },
    additionalPrinterColumns: [{ name: "N", type: "integer", jsonPath: ".spec.n" }],
    selectableFields: [{ jsonPath: ".spec.n" }],
  };
  t.match(spec, { group: "ex.io", scope: "Namespaced", conversion: { strategy: "None" } });
  t.same(spec?.versions, [
    { name: "v1", served: true, storage: true, ...shared },
    { name: "v2", served: true, storage: false, deprecated: true, ...shared },
  ]);
});

t.test("versions of a definition in v1beta1 keep what they do not share", async (t) => {
  const { spec } = read({
    group: "ex.io",
    subresources: { status: {} },
    versions: [
      { name: "v1", served: true, storage: true, schema, additionalPrinterColumns: [{ name: "A", JSONPath: ".a" }] },
      { name: "v2", served: true, storage: false, schema: { openAPIV3Schema: { type: "object" } } },
    ],
  });
  t.match(spec?.versions, [
    { name: "v1", schema, subresources: { status: {} }, additionalPrinterColumns: [{ name: "A", jsonPath: ".a" }] },
    { name: "v2", schema: { openAPIV3Schema: { type: "object" } }, subresources: { status: {} } },
  ]);
});

t.test("a definition in v1beta1 without a list of versions serves and stores the one that it names", async (t) => {
  const { spec } = read({ group: "ex.io", version: "v1", validation: schema });
  t.same(spec?.versions, [{ name: "v1", served: true, storage: true, schema }]);
});

t.test("the webhook of a conversion in v1beta1 keeps its client configuration and versions", async (t) => {
  const clientConfig = { url: "https://127.0.0.1:1/convert", caBundle: "AA==" };
  const conversion = { strategy: "Webhook", webhookClientConfig: clientConfig, conversionReviewVersions: ["v1"] };
  const { spec } = read({ group: "ex.io", conversion, versions: [] });
  t.same(spec?.conversion, { strategy: "Webhook", webhook: { clientConfig, conversionReviewVersions: ["v1"] } });
});
