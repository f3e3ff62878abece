import t from "tap";
import { deploymentKind } from "../../api/apps/deployment/kind.ts";
import { certificateSigningRequestKind } from "../../api/certificates/certificate-signing-request/kind.ts";
import { leaseKind } from "../../api/coordination/lease/kind.ts";
import type { Lease } from "../../api/coordination/lease/schema.ts";
import { configMapKind } from "../../api/core/config-map/kind.ts";
import { endpointsKind } from "../../api/core/endpoints/kind.ts";
import { persistentVolumeKind } from "../../api/core/persistent-volume/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import { secretKind } from "../../api/core/secret/kind.ts";
import { serviceKind } from "../../api/core/service/kind.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import { serviceCIDRKind } from "../../api/networking/service-cidr/kind.ts";
import { clusterRoleKind } from "../../api/rbac/cluster-role/kind.ts";
import { resourceClaimTemplateKind } from "../../api/resource/resource-claim-template/kind.ts";
import { storageVersionMigrationKind } from "../../api/storagemigration/storage-version-migration/kind.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { explainUncontrolled } from "./controlled-kinds.ts";

function start(...embeddedControllers: readonly string[]) {
  const clock = new FakeClock();
  const leases = new Map<string, Lease>();
  const explain = explainUncontrolled({ embeddedControllers, findLease: async (name) => leases.get(name), clock });
  const hold = (name: string): void => {
    const renewTime = new Date(clock.now()).toISOString();
    leases.set(name, { spec: { holderIdentity: "a", leaseDurationSeconds: 15, renewTime } });
  };
  return { clock, leases, explain, hold };
}

t.test("explainUncontrolled() names the controller and the lease", async (t) => {
  const { explain } = start();
  const table: readonly (readonly [kind: Pick<Kind, "kind">, object: ApiObject, reason: RegExp | undefined])[] = [
    [deploymentKind, {}, /^the controller deployment is not among .* no program holds .*kube-controller-manager$/],
    [podKind, {}, /^the scheduler is not among .* kube-system\/kube-scheduler$/],
    [podKind, { spec: { nodeName: "n1" } } as ApiObject, undefined],
    [podKind, { spec: { schedulerName: "mine" } } as ApiObject, undefined],
    [serviceKind, { spec: { selector: { app: "web" } } } as ApiObject, /^the controller endpointslice/],
    [serviceKind, { spec: {} } as ApiObject, undefined],
    [configMapKind, {}, undefined],
    [leaseKind, {}, undefined],
    [persistentVolumeKind, {}, /^the controller persistentvolume-binder/],
    [serviceCIDRKind, {}, /^the controller service-cidr-controller/],
    [endpointsKind, {}, /^the controller endpointslicemirroring/],
    [endpointsKind, { metadata: { labels: { "endpointslice.kubernetes.io/skip-mirror": "true" } } }, undefined],
    [secretKind, { type: "kubernetes.io/service-account-token" } as ApiObject, /^the controller serviceaccount-token/],
    [secretKind, { type: "Opaque" } as ApiObject, undefined],
    [certificateSigningRequestKind, { spec: { signerName: "kubernetes.io/a" } } as ApiObject, /controller csrsigning/],
    [certificateSigningRequestKind, { spec: { signerName: "example.com/a" } } as ApiObject, undefined],
    [clusterRoleKind, { aggregationRule: {} } as ApiObject, /^the controller clusterrole-aggregation/],
    [clusterRoleKind, {}, undefined],
    [resourceClaimTemplateKind, {}, /^the controller resourceclaim is/],
    [storageVersionMigrationKind, {}, /^the controller storage-version-migrator/],
  ];
  for (const [kind, object, reason] of table) {
    const text = await explain(kind as Kind, object);
    if (reason === undefined) t.equal(text, undefined, kind.kind);
    else t.match(text, reason);
  }
});

t.test("explainUncontrolled() returns nothing for controllers that run here, or elsewhere with a lease", async (t) => {
  const kind = deploymentKind as Kind;
  for (const embedded of ["*", "deployment"]) t.equal(await start(embedded).explain(kind, {}), undefined, embedded);
  const { clock, leases, explain, hold } = start("scheduler");
  t.match(await explain(kind, {}), /deployment/);
  hold("kube-controller-manager");
  t.match(await explain(kind, {}), /deployment/, "within two seconds");
  await clock.advance(2000);
  t.equal(await explain(kind, {}), undefined);
  await clock.advance(20_000);
  t.match(await explain(kind, {}), /deployment/, "the lease ran out");
  hold("kube-controller-manager");
  const { spec } = leases.get("kube-controller-manager")!;
  leases.set("kube-controller-manager", { spec: { ...spec, holderIdentity: "" } });
  await clock.advance(2000);
  t.match(await explain(kind, {}), /deployment/, "the lease was released");
});
