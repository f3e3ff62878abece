import t from "tap";
import { customResourceDefinitionKind } from "../api/apiextensions/custom-resource-definition/kind.ts";
import type { ApiObject, Kind } from "../api/kind.ts";
import {
  alphaResourceSliceKind,
  betaResourceSliceKind,
  flatResourceClaimKinds,
  flatResourceClaimTemplateKinds,
} from "../api/resource/flat-versions/kinds.ts";
import { resourceClaimKind } from "../api/resource/resource-claim/kind.ts";
import { resourceClaimTemplateKind } from "../api/resource/resource-claim-template/kind.ts";
import { resourceSliceKind } from "../api/resource/resource-slice/kind.ts";
import { codecOf, plainCodec } from "./codec.ts";

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

const device = { name: "d", capacity: { memory: { value: "10Gi" } }, attributes: { a: { string: "x" } } };
const devices = {
  requests: [{ name: "r", exactly: { deviceClassName: "c", allocationMode: "ExactCount", count: 2n } }],
};
const metadata = { name: "a" };

for (const [kind, versions, value] of [
  [resourceClaimKind, flatResourceClaimKinds, { metadata, spec: { devices } }],
  [resourceClaimTemplateKind, flatResourceClaimTemplateKinds, { metadata, spec: { spec: { devices } } }],
  [
    resourceSliceKind,
    [betaResourceSliceKind, alphaResourceSliceKind],
    { metadata, spec: { driver: "d", pool: { name: "p", generation: 1n, resourceSliceCount: 1n }, devices: [device] } },
  ],
] as unknown as readonly (readonly [Kind, readonly Kind[], ApiObject])[]) {
  t.test(`a ${kind.kind} is read in each version in which Kubernetes stores it`, async (t) => {
    t.ok(versions.some(({ version }) => version === kind.storageVersion));
    for (const flat of versions) {
      for (const mediaType of ["application/vnd.svc.protobuf", "application/json"] as const) {
        const format = { mediaType, names: "k8s" } as const;
        const stored = plainCodec(flat, format).encode(flat.conversion!.fromStorage(value));
        const codec = codecOf(kind, format);
        const read = codec.decode(stored);
        t.same(codec.decode(codec.encode(value)), read, `${flat.version}, ${mediaType}`);
        t.same(flat.conversion!.fromStorage(read), plainCodec(flat, format).decode(stored));
      }
    }
  });
}
