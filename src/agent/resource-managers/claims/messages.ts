/** Messages of kubelet's API for drivers of Dynamic Resource Allocation (`v1beta1`; `v1alpha4` has the same). */
import { list, map, message, optional, string } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";

const claim = message("v1beta1.Claim", {
  namespace: optional(1, string),
  uid: optional(2, string),
  name: optional(3, string),
});
export type DriverClaim = Infer<typeof claim>;

const device = message("v1beta1.Device", {
  requestNames: optional(1, list(string)),
  poolName: optional(2, string),
  deviceName: optional(3, string),
  cdiDeviceIds: optional(4, list(string)),
});
export type DriverDevice = Infer<typeof device>;

const prepareRequest = message("v1beta1.NodePrepareResourcesRequest", { claims: optional(1, list(claim)) });
const prepareResponse = message("v1beta1.NodePrepareResourcesResponse", {
  claims: optional(
    1,
    map(
      message("v1beta1.NodePrepareResourceResponse", {
        devices: optional(1, list(device)),
        error: optional(2, string),
      }),
    ),
  ),
});
const unprepareRequest = message("v1beta1.NodeUnprepareResourcesRequest", { claims: optional(1, list(claim)) });
const unprepareResponse = message("v1beta1.NodeUnprepareResourcesResponse", {
  claims: optional(1, map(message("v1beta1.NodeUnprepareResourceResponse", { error: optional(1, string) }))),
});

function defineService<P extends string>(service: P) {
  return {
    prepare: { path: `/${service}/NodePrepareResources`, request: prepareRequest, response: prepareResponse },
    unprepare: { path: `/${service}/NodeUnprepareResources`, request: unprepareRequest, response: unprepareResponse },
  } as const;
}

export type DriverService = ReturnType<typeof defineService>;

/** By the version that drivers announce; the preferred one first. */
export const driverServices: Readonly<Record<"v1beta1.DRAPlugin" | "v1alpha4.Node", DriverService>> = {
  "v1beta1.DRAPlugin": defineService("k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin"),
  "v1alpha4.Node": defineService("v1alpha3.Node"),
};
