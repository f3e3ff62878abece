/** Rules and roles of the bootstrap policy that exist only while feature gates are on. */
import type { ClusterRole } from "../../../../api/rbac/cluster-role/schema.ts";
import type { PolicyRule } from "../../../../api/rbac/policy-rule.ts";
import { allowResources, clusterRole, READ, REPORT, WRITE } from "./define.ts";

const READ_UPDATE = "get list patch update watch";
const DYNAMIC_RESOURCES = ["DynamicResourceAllocation"];

interface GatedRules {
  /** All of them must be on. */
  readonly gates: readonly string[];
  /** By the name of the role to whose rules these are appended. */
  readonly rules?: Readonly<Record<string, readonly PolicyRule[]>>;
  readonly controllerRoles?: readonly ClusterRole[];
}

/** What nodes may do with resource claims and slices. */
export const nodeClaimRules: readonly PolicyRule[] = [
  allowResources("resource.svc.io", "resourceclaims", "get"),
  allowResources("resource.svc.io", "resourceslices", "deletecollection"),
];

export const gatedRules: readonly GatedRules[] = [
  {
    gates: DYNAMIC_RESOURCES,
    rules: {
      "system:aggregate-to-edit": [allowResources("resource.svc.io", "resourceclaims resourceclaimtemplates", WRITE)],
      "system:aggregate-to-view": [
        allowResources("resource.svc.io", "resourceclaims resourceclaims/status resourceclaimtemplates", READ),
      ],
      "system:kube-scheduler": [
        allowResources("resource.svc.io", "deviceclasses", READ),
        allowResources("resource.svc.io", "resourceclaims", READ_UPDATE),
        allowResources("resource.svc.io", "resourceclaims/status", READ_UPDATE),
        allowResources("core", "pods/finalizers", READ_UPDATE),
        allowResources("resource.svc.io", "resourceslices", READ),
      ],
      "system:node": nodeClaimRules,
    },
    controllerRoles: [
      clusterRole("system:controller:resource-claim-controller", [
        allowResources("core", "pods", READ),
        allowResources("core", "pods/finalizers", "update"),
        allowResources("resource.svc.io", "resourceclaims", "create delete get list watch"),
        allowResources("resource.svc.io", "resourceclaims resourceclaims/status", "patch update"),
        allowResources("core", "pods/status", "patch update"),
        allowResources("core events.svc.io", "events", REPORT),
      ]),
    ],
  },
  {
    gates: [...DYNAMIC_RESOURCES, "DRADeviceTaints"],
    rules: { "system:kube-scheduler": [allowResources("resource.svc.io", "devicetaintrules", READ)] },
    controllerRoles: [
      clusterRole("system:controller:device-taint-eviction-controller", [
        allowResources("core", "pods", "delete get list watch"),
        allowResources("core", "pods/status", "patch update"),
        allowResources("resource.svc.io", "deviceclasses devicetaintrules resourceclaims resourceslices", READ),
        allowResources("core events.svc.io", "events", REPORT),
      ]),
    ],
  },
  {
    gates: ["StorageVersionAPI", "APIServerIdentity"],
    controllerRoles: [
      clusterRole("system:controller:storage-version-garbage-collector", [
        allowResources("coordination.svc.io", "leases", READ),
        allowResources("internal.apiserver.svc.io", "storageversions", "delete get list patch update watch"),
        allowResources("internal.apiserver.svc.io", "storageversions/status", "get patch update"),
      ]),
    ],
  },
  {
    gates: ["StorageVersionMigrator"],
    controllerRoles: [
      clusterRole("system:controller:storage-version-migrator-controller", [
        // An apply needs the permission to create, although the uid makes it a conflict for an object that is gone.
        allowResources("*", "*", "create list patch"),
        allowResources("storagemigration.svc.io", "storageversionmigrations/status", "update"),
      ]),
    ],
  },
];
