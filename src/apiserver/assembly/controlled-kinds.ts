/** Kinds whose objects only a controller acts on: writes get a warning while it does not run. */
import type { CertificateSigningRequest } from "../../api/certificates/certificate-signing-request/schema.ts";
import type { Lease } from "../../api/coordination/lease/schema.ts";
import type { Endpoints } from "../../api/core/endpoints/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { Secret } from "../../api/core/secret/schema.ts";
import type { Service } from "../../api/core/service/schema.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import type { ClusterRole } from "../../api/rbac/cluster-role/schema.ts";
import { includesController } from "../../controllers/controller-manager.ts";
import { isMirrored } from "../../controllers/endpoints/is-mirrored.ts";
import type { Clock } from "../../std/time/clock.ts";

interface ControlledKind {
  /** As in `--embedded-controllers`. */
  readonly controller: string;
  /** The lease of the program that runs the controller elsewhere. */
  readonly lease: string;
  /** Whether the controller acts on the object; on every object when absent. */
  readonly applies?: (object: ApiObject) => boolean;
}

const CONTROLLER_MANAGER = "kube-controller-manager";
const SCHEDULER = "kube-scheduler";

const controlledKinds: Readonly<Record<string, ControlledKind>> = {
  "/Endpoints": { ...ofManager("endpointslicemirroring"), applies: (object: Endpoints) => isMirrored(object) },
  "/PersistentVolume": ofManager("persistentvolume-binder"),
  "/PersistentVolumeClaim": ofManager("persistentvolume-binder"),
  "/Pod": {
    controller: "scheduler",
    lease: SCHEDULER,
    applies: ({ spec }: Pod) => !spec?.nodeName && (spec?.schedulerName ?? DEFAULT_SCHEDULER) === DEFAULT_SCHEDULER,
  },
  "/ReplicationController": ofManager("replicationcontroller"),
  "/Secret": {
    ...ofManager("serviceaccount-token"),
    applies: ({ type }: Secret) => type === "kubernetes.io/service-account-token",
  },
  "/Service": {
    ...ofManager("endpointslice"),
    applies: ({ spec }: Service) => spec?.type !== "ExternalName" && Object.keys(spec?.selector ?? {}).length > 0,
  },
  "apps/DaemonSet": ofManager("daemonset"),
  "apps/Deployment": ofManager("deployment"),
  "apps/ReplicaSet": ofManager("replicaset"),
  "apps/StatefulSet": ofManager("statefulset"),
  "autoscaling/HorizontalPodAutoscaler": ofManager("horizontalpodautoscaling"),
  "batch/CronJob": ofManager("cronjob"),
  "batch/Job": ofManager("job"),
  "certificates.svc.io/CertificateSigningRequest": {
    ...ofManager("csrsigning"),
    // Other programs sign for other signers.
    applies: ({ spec }: Partial<CertificateSigningRequest>) => spec?.signerName.startsWith("kubernetes.io/") === true,
  },
  "networking.svc.io/ServiceCIDR": ofManager("service-cidr-controller"),
  "policy/PodDisruptionBudget": ofManager("disruption"),
  "rbac.authorization.svc.io/ClusterRole": {
    ...ofManager("clusterrole-aggregation"),
    applies: ({ aggregationRule }: ClusterRole) => aggregationRule !== undefined,
  },
  "resource.svc.io/ResourceClaimTemplate": ofManager("resourceclaim"),
  "storagemigration.svc.io/StorageVersionMigration": ofManager("storage-version-migrator"),
};

const DEFAULT_SCHEDULER = "default-scheduler";

function ofManager(controller: string): ControlledKind {
  return { controller, lease: CONTROLLER_MANAGER };
}

export interface ControlledKindsOptions {
  readonly embeddedControllers: readonly string[];
  /** A lease in kube-system. */
  readonly findLease: (name: string) => Promise<Lease | undefined>;
  readonly clock: Clock;
}

/** How long it is not checked again whether a lease is held, in milliseconds. */
const CHECK_MS = 2000;

/**
 * Returns why no controller acts on a written object: the controller is not embedded, and no program holds the lease of
 * those that would run it.
 */
export function explainUncontrolled({
  embeddedControllers,
  findLease,
  clock,
}: ControlledKindsOptions): (kind: Kind, object: ApiObject) => Promise<string | undefined> | undefined {
  const held = new Map<string, { readonly isHeld: boolean; readonly at: number }>();
  const isHeld = async (name: string): Promise<boolean> => {
    const known = held.get(name);
    if (known !== undefined && clock.monotonic() - known.at < CHECK_MS) return known.isHeld;
    const found = isCurrent(await findLease(name), clock.now());
    held.set(name, { isHeld: found, at: clock.monotonic() });
    return found;
  };
  return ({ group, kind }, object) => {
    const row = controlledKinds[`${group}/${kind}`];
    if (row === undefined || row.applies?.(object) === false) return undefined;
    const { controller, lease } = row;
    if (includesController(embeddedControllers, controller)) return undefined;
    return isHeld(lease).then((running) => {
      if (running) return undefined;
      const what = controller === "scheduler" ? "the scheduler" : `the controller ${controller}`;
      return `${what} is not among --embedded-controllers, and no program holds the lease kube-system/${lease}`;
    });
  };
}

function isCurrent(lease: Lease | undefined, now: number): boolean {
  const { holderIdentity, renewTime, leaseDurationSeconds = 0 } = lease?.spec ?? {};
  if (!holderIdentity || renewTime === undefined) return false;
  return Date.parse(renewTime) + 1000 * leaseDurationSeconds >= now;
}
