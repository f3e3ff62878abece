/** Plugins about claims, volumes, ingresses and services. */
import t from "tap";
import { persistentVolumeKind } from "../../../api/core/persistent-volume/kind.ts";
import { persistentVolumeClaimKind } from "../../../api/core/persistent-volume-claim/kind.ts";
import type { PersistentVolumeClaim } from "../../../api/core/persistent-volume-claim/schema.ts";
import { serviceKind } from "../../../api/core/service/kind.ts";
import { ingressKind } from "../../../api/networking/ingress/kind.ts";
import { ingressClassKind } from "../../../api/networking/ingress-class/kind.ts";
import { storageClassKind } from "../../../api/storage/storage-class/kind.ts";
import { runPlugin, pluginDeps, rejectionOf } from "../../../testing/admission/admission-fixture.ts";
import { denyServiceExternalIPs } from "../deny-service-external-ips/deny-service-external-ips.ts";
import {
  persistentVolumeClaimResize,
  storageObjectInUseProtection,
} from "../storage-object-in-use-protection/storage-object-in-use-protection.ts";
import { defaultIngressClass, defaultStorageClass } from "./default-storage-class.ts";

const claim = (spec: object = {}, more: object = {}): PersistentVolumeClaim =>
  ({ metadata: { name: "c", namespace: "default" }, spec, ...more }) as PersistentVolumeClaim;

const marked = (name: string, annotation: string, second = 0) => ({
  metadata: {
    name,
    annotations: { [annotation]: "true" },
    creationTimestamp: `2026-01-01T00:00:0${second}Z`,
  },
});

t.test("defaultStorageClass() gives a claim that names no class the youngest default", async (t) => {
  const annotation = "storageclass.kubernetes.io/is-default-class";
  const older = "storageclass.beta.kubernetes.io/is-default-class";
  const classes = [marked("b", annotation, 1), marked("a", older, 1), marked("z", annotation, 0)];
  const plugin = defaultStorageClass(pluginDeps(classes.map((one) => [storageClassKind, one])));
  const named = async (sent: PersistentVolumeClaim) =>
    (await runPlugin(plugin, persistentVolumeClaimKind, sent)).object.spec?.storageClassName;
  t.equal(await named(claim()), "a");
  t.equal(await named(claim({ storageClassName: "" })), "");
  const annotations = { "volume.beta.kubernetes.io/storage-class": "mine" };
  t.equal(await named(claim({}, { metadata: { name: "c", annotations } })), undefined);
  const none = defaultStorageClass(pluginDeps());
  t.equal((await runPlugin(none, persistentVolumeClaimKind, claim())).object.spec?.storageClassName, undefined);
});

t.test("defaultIngressClass() gives an ingress that names no class the youngest default", async (t) => {
  const annotation = "ingressclass.kubernetes.io/is-default-class";
  const plugin = defaultIngressClass(pluginDeps([[ingressClassKind, marked("main", annotation)]]));
  const named = async (ingress: object) =>
    (await runPlugin(plugin, ingressKind, { metadata: { name: "i" }, ...ingress } as never)).object.spec?.ingressClassName;
  t.equal(await named({ spec: {} }), "main");
  t.equal(await named({ spec: { ingressClassName: "mine" } }), "mine");
  const annotations = { "kubernetes.io/ingress.class": "mine" };
  t.equal(await named({ metadata: { name: "i", annotations }, spec: {} }), undefined);
});

t.test("storageObjectInUseProtection() keeps new volumes and claims until nobody uses them", async (t) => {
  const plugin = storageObjectInUseProtection();
  const finalizers = ["example.com/mine"];
  const volume = { metadata: { name: "v", finalizers }, spec: {} } as never;
  t.same((await runPlugin(plugin, persistentVolumeKind, volume)).object.metadata?.finalizers, [
    "example.com/mine",
    "kubernetes.io/pv-protection",
  ]);
  const { object } = await runPlugin(plugin, persistentVolumeClaimKind, claim());
  t.same(object.metadata?.finalizers, ["kubernetes.io/pvc-protection"]);
  t.equal((await runPlugin(plugin, persistentVolumeClaimKind, object)).object, object);
});

t.test("persistentVolumeClaimResize() lets claims grow where their class foresees it", async (t) => {
  const growing = { metadata: { name: "grows" }, provisioner: "p", allowVolumeExpansion: true };
  const plugin = persistentVolumeClaimResize(
    pluginDeps([
      [storageClassKind, growing as never],
      [storageClassKind, { ...growing, metadata: { name: "stays" }, allowVolumeExpansion: false } as never],
    ]),
  );
  const sized = (storage: string, storageClassName: string, phase = "Bound") =>
    claim({ storageClassName, resources: { requests: { storage } } }, { status: { phase } });
  const change = (next: PersistentVolumeClaim, previous: PersistentVolumeClaim) =>
    rejectionOf(runPlugin(plugin, persistentVolumeClaimKind, next, { oldObject: previous }));
  t.equal(await change(sized("2Gi", "grows"), sized("1Gi", "grows")), "");
  t.equal(await change(sized("1024Mi", "stays"), sized("1Gi", "stays")), "");
  t.match(
    await change(sized("2Gi", "grows"), sized("1Gi", "grows", "Pending")),
    /^persistentvolumeclaims "c" is forbidden: Only bound persistent volume claims can be expanded$/,
  );
  for (const name of ["stays", "gone", ""]) {
    t.match(
      await change(sized("2Gi", name), sized("1Gi", name)),
      /only dynamically provisioned pvc can be resized and the storageclass .* must support resize$/,
    );
  }
});

t.test("denyServiceExternalIPs() lets services keep what they had, and have no more", async (t) => {
  const service = (...externalIPs: readonly string[]) => ({ metadata: { name: "s" }, spec: { externalIPs } }) as never;
  const plugin = denyServiceExternalIPs();
  const why = 'services "s" is forbidden: Use of external IPs is denied by admission control.';
  t.equal(await rejectionOf(runPlugin(plugin, serviceKind, service("192.0.2.1"))), why);
  t.equal(await rejectionOf(runPlugin(plugin, serviceKind, service())), "");
  const previous = service("192.0.2.1", "192.0.2.2");
  t.equal(await rejectionOf(runPlugin(plugin, serviceKind, service("192.0.2.2"), { oldObject: previous })), "");
  t.equal(await rejectionOf(runPlugin(plugin, serviceKind, service("192.0.2.3"), { oldObject: previous })), why);
});
