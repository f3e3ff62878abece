import t from "tap";
import type { PersistentVolumeSpec } from "../../api/core/persistent-volume/schema.ts";
import { checkVolume } from "./volume-checks.ts";

const node = { name: "n1", labels: { zone: "a" } };
const inZone = (zone: string) => ({
  required: { nodeSelectorTerms: [{ matchExpressions: [{ key: "zone", operator: "In" as const, values: [zone] }] }] },
});

const cases: readonly (readonly [
  name: string,
  spec: Partial<PersistentVolumeSpec>,
  operation: string,
  text: string,
])[] = [
  ["of another node", { nodeAffinity: inZone("b") }, "MountVolume.NodeAffinity check", "no matching NodeSelectorTerms"],
  [
    "of another node, in block mode",
    { nodeAffinity: inZone("b"), volumeMode: "Block" },
    "MapVolume.NodeAffinity check",
    "no matching NodeSelectorTerms",
  ],
  [
    "of a path with mount options",
    { hostPath: { path: "/x" }, mountOptions: ["ro"] },
    "MountVolume.MountOptionSupport check",
    "mount options are not supported for this volume type",
  ],
];
for (const [name, spec, operation, message] of cases) {
  t.test(`checkVolume() rejects a volume ${name} with Kubernetes' text`, async (t) => {
    const check = () => checkVolume({ metadata: { name: "pv" }, spec }, node);
    t.throws(check, { operation, message, volume: "pv", event: "FailedMount" });
  });
}

t.test("checkVolume() accepts volumes of this node, and mount options of types that have them", async (t) => {
  checkVolume({ metadata: { name: "pv" }, spec: { nodeAffinity: inZone("a"), hostPath: { path: "/x" } } }, node);
  checkVolume({ metadata: { name: "pv" }, spec: { local: { path: "/x" }, mountOptions: ["ro"] } }, node);
  t.pass();
});
