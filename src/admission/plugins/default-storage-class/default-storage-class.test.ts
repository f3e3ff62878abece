import t from "tap";
import { persistentVolumeClaimKind } from "../../../api/core/persistent-volume-claim/kind.ts";
import type { PersistentVolumeClaim } from "../../../api/core/persistent-volume-claim/schema.ts";
import { storageClassKind } from "../../../api/storage/storage-class/kind.ts";
import { pluginDeps, runPlugin } from "../../../testing/admission/admission-fixture.ts";
import { defaultStorageClass } from "./default-storage-class.ts";

const claim = (spec: object = {}, more: object = {}): PersistentVolumeClaim =>
  ({ metadata: { name: "c", namespace: "default" }, spec, ...more }) as PersistentVolumeClaim;

const createClass = (name: string, annotation: string, second = 0) => ({
  metadata: {
    name,
    annotations: { [annotation]: "true" },
    creationTimestamp: `2026-01-01T00:00:0${second}Z`,
  },
});

t.test("defaultStorageClass() sets the newest default class on a claim without a class", async (t) => {
  const annotation = "storageclass.kubernetes.io/is-default-class";
  const older = "storageclass.beta.kubernetes.io/is-default-class";
  const classes = [createClass("b", annotation, 1), createClass("a", older, 1), createClass("z", annotation, 0)];
  const plugin = defaultStorageClass(pluginDeps(classes.map((one) => [storageClassKind, one])));
  const classNameOf = async (sent: PersistentVolumeClaim) =>
    (await runPlugin(plugin, persistentVolumeClaimKind, sent)).object.spec?.storageClassName;
  t.equal(await classNameOf(claim()), "a");
  t.equal(await classNameOf(claim({ storageClassName: "" })), "");
  const annotations = { "volume.beta.kubernetes.io/storage-class": "mine" };
  t.equal(await classNameOf(claim({}, { metadata: { name: "c", annotations } })), undefined);
  const none = defaultStorageClass(pluginDeps());
  t.equal((await runPlugin(none, persistentVolumeClaimKind, claim())).object.spec?.storageClassName, undefined);
});
