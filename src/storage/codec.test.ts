import t from "tap";
import { customResourceDefinitionKind } from "../api/apiextensions/custom-resource-definition/kind.ts";
import { codecOf } from "./codec.ts";

t.test("a definition is read in v1 and in the version in which Kubernetes stores it, and written in v1", async (t) => {
  const codec = codecOf(customResourceDefinitionKind, { mediaType: "application/json", names: "k8s" });
  const schema = { openAPIV3Schema: { type: "object" } };
  const version = { name: "v1", served: true, storage: true };
  const read = (of: string, spec: object) => {
    const identity = { apiVersion: `apiextensions.k8s.io/${of}`, kind: "CustomResourceDefinition" };
    return codec.decode(Buffer.from(JSON.stringify({ ...identity, metadata: { name: "foos.ex.io" }, spec })));
  };
  const versions = [{ ...version, schema }];
  const older = read("v1beta1", { versions: [version], validation: schema });
  t.same(older.spec?.versions, versions);
  t.same(read("v1", { versions }).spec?.versions, versions);
  const written = JSON.parse(Buffer.from(codec.encode(older)).toString());
  t.match(written, { apiVersion: "apiextensions.k8s.io/v1", spec: { versions } });
});
