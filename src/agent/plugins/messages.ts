/** Messages of kubelet's plugin registration API (`pluginregistration`, v1). */
import { boolean, list, message, optional, string } from "../../schema/define.ts";
import type { Infer } from "../../schema/schema.ts";

const infoRequest = message("pluginregistration.InfoRequest", {});

const pluginInfo = message("pluginregistration.PluginInfo", {
  /** `CSIPlugin`, `DevicePlugin`, `DRAPlugin` */
  type: optional(1, string),
  name: optional(2, string),
  /** Path of the socket on which it serves; empty: the registration socket. */
  endpoint: optional(3, string),
  supportedVersions: optional(4, list(string)),
});
export type PluginInfo = Infer<typeof pluginInfo>;

const registrationStatus = message("pluginregistration.RegistrationStatus", {
  pluginRegistered: optional(1, boolean),
  error: optional(2, string),
});

const registrationStatusResponse = message("pluginregistration.RegistrationStatusResponse", {});

export const registration = {
  getInfo: { path: "/pluginregistration.Registration/GetInfo", request: infoRequest, response: pluginInfo },
  notifyRegistrationStatus: {
    path: "/pluginregistration.Registration/NotifyRegistrationStatus",
    request: registrationStatus,
    response: registrationStatusResponse,
  },
} as const;
