/** Messages of kubelet's device plugin API (`v1beta1`). */
import { bigInt64, boolean, int32, list, map, message, optional, string } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";

const empty = message("v1beta1.Empty", {});

const devicePluginOptions = message("v1beta1.DevicePluginOptions", {
  preStartRequired: optional(1, boolean),
  getPreferredAllocationAvailable: optional(2, boolean),
});
export type DevicePluginOptions = Infer<typeof devicePluginOptions>;

const registerRequest = message("v1beta1.RegisterRequest", {
  version: optional(1, string),
  /** Name of the plugin's socket in the directory. */
  endpoint: optional(2, string),
  resourceName: optional(3, string),
  options: optional(4, devicePluginOptions),
});
export type RegisterRequest = Infer<typeof registerRequest>;

const numaNode = message("v1beta1.NUMANode", { id: optional(1, bigInt64) });

const topologyInfo = message("v1beta1.TopologyInfo", { nodes: optional(1, list(numaNode)) });

const pluginDevice = message("v1beta1.Device", {
  id: optional(1, string),
  health: optional(2, string),
  topology: optional(3, topologyInfo),
});
export type PluginDevice = Infer<typeof pluginDevice>;

const listAndWatchResponse = message("v1beta1.ListAndWatchResponse", {
  devices: optional(1, list(pluginDevice)),
});
export type ListAndWatchResponse = Infer<typeof listAndWatchResponse>;

const preStartContainerRequest = message("v1beta1.PreStartContainerRequest", {
  devicesIds: optional(1, list(string)),
});
const preStartContainerResponse = message("v1beta1.PreStartContainerResponse", {});

const preferredAllocationRequest = message("v1beta1.PreferredAllocationRequest", {
  containerRequests: optional(
    1,
    list(
      message("v1beta1.ContainerPreferredAllocationRequest", {
        availableDeviceIds: optional(1, list(string)),
        mustIncludeDeviceIds: optional(2, list(string)),
        allocationSize: optional(3, int32),
      }),
    ),
  ),
});
const preferredAllocationResponse = message("v1beta1.PreferredAllocationResponse", {
  containerResponses: optional(
    1,
    list(message("v1beta1.ContainerPreferredAllocationResponse", { deviceIds: optional(1, list(string)) })),
  ),
});

const allocateRequest = message("v1beta1.AllocateRequest", {
  containerRequests: optional(
    1,
    list(message("v1beta1.ContainerAllocateRequest", { devicesIds: optional(1, list(string)) })),
  ),
});

/** What the runtime sets for a container that has the devices. */
export const containerAllocateResponse = message("v1beta1.ContainerAllocateResponse", {
  envs: optional(1, map(string)),
  mounts: optional(
    2,
    list(
      message("v1beta1.Mount", {
        containerPath: optional(1, string),
        hostPath: optional(2, string),
        readOnly: optional(3, boolean),
      }),
    ),
  ),
  devices: optional(
    3,
    list(
      message("v1beta1.DeviceSpec", {
        containerPath: optional(1, string),
        hostPath: optional(2, string),
        permissions: optional(3, string),
      }),
    ),
  ),
  annotations: optional(4, map(string)),
  cdiDevices: optional(5, list(message("v1beta1.CDIDevice", { name: optional(1, string) }))),
});
export type ContainerAllocateResponse = Infer<typeof containerAllocateResponse>;

const allocateResponse = message("v1beta1.AllocateResponse", {
  containerResponses: optional(1, list(containerAllocateResponse)),
});

export const deviceRegistration = {
  register: { path: "/v1beta1.Registration/Register", request: registerRequest, response: empty },
} as const;

export const devicePlugin = {
  getOptions: {
    path: "/v1beta1.DevicePlugin/GetDevicePluginOptions",
    request: empty,
    response: devicePluginOptions,
  },
  listAndWatch: { path: "/v1beta1.DevicePlugin/ListAndWatch", request: empty, response: listAndWatchResponse },
  getPreferredAllocation: {
    path: "/v1beta1.DevicePlugin/GetPreferredAllocation",
    request: preferredAllocationRequest,
    response: preferredAllocationResponse,
  },
  allocate: { path: "/v1beta1.DevicePlugin/Allocate", request: allocateRequest, response: allocateResponse },
  preStartContainer: {
    path: "/v1beta1.DevicePlugin/PreStartContainer",
    request: preStartContainerRequest,
    response: preStartContainerResponse,
  },
} as const;
