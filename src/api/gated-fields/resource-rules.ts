/** The gated fields of `resource.k8s.io`, in its storage version. */
import type { GatedFields } from "./gated-fields.ts";

const requests = (claim: string): string => `${claim}.devices.requests[]`;

/** `claim` is the path of the claim's spec. */
function claimRules(claim: string, status: readonly string[]): readonly GatedFields[] {
  const [results] = status;
  const inResults = (field: string): readonly string[] => (results === undefined ? [] : [`${results}.${field}`]);
  return [
    {
      gates: ["DRAPrioritizedList"],
      paths: [`${requests(claim)}.firstAvailable`],
    },
    {
      gates: ["DRAAdminAccess"],
      paths: [`${requests(claim)}.exactly.adminAccess`, ...inResults("adminAccess")],
    },
    {
      gates: ["DRADeviceTaints"],
      paths: [
        `${requests(claim)}.exactly.tolerations`,
        `${requests(claim)}.firstAvailable[].tolerations`,
        ...inResults("tolerations"),
      ],
    },
  ];
}

const SLICE_FIELDS = [
  "spec.perDeviceNodeSelection",
  "spec.sharedCounters",
  "spec.devices[].consumesCounters",
  "spec.devices[].nodeName",
  "spec.devices[].nodeSelector",
  "spec.devices[].allNodes",
];

export const resourceRules: Readonly<Record<string, readonly GatedFields[]>> = {
  "resource.svc.io/resourceclaims": [
    ...claimRules("spec", ["status.allocation.devices.results[]"]),
    { gates: ["DRAResourceClaimDeviceStatus"], paths: ["status.devices"] },
  ],
  "resource.svc.io/resourceclaimtemplates": claimRules("spec.spec", []),
  "resource.svc.io/resourceslices": [
    { gates: ["DRADeviceTaints"], paths: ["spec.devices[].taints"] },
    { gates: ["DRAPartitionableDevices"], paths: SLICE_FIELDS },
  ],
};
