import {
  boolean,
  documentedEnum,
  int64,
  list,
  named,
  object,
  optional,
  pointer,
  required,
  string,
} from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";

export const seLinuxOptions = object("core/v1.SELinuxOptions", {
  user: optional(1, string),
  role: optional(2, string),
  type: optional(3, string),
  level: optional(4, string),
});
export type SELinuxOptions = Infer<typeof seLinuxOptions>;

export const windowsSecurityContextOptions = object("core/v1.WindowsSecurityContextOptions", {
  gmsaCredentialSpecName: pointer(1, string),
  gmsaCredentialSpec: pointer(2, string),
  runAsUserName: pointer(3, string),
  hostProcess: pointer(4, boolean),
});
export type WindowsSecurityContextOptions = Infer<typeof windowsSecurityContextOptions>;

export const seccompProfile = object(
  "core/v1.SeccompProfile",
  {
    type: required(1, named("v1.SeccompProfileType", documentedEnum("Unconfined", "RuntimeDefault", "Localhost"))),
    localhostProfile: pointer(2, string),
  },
  { unions: [{ discriminator: "type", members: ["localhostProfile"] }] },
);
export type SeccompProfile = Infer<typeof seccompProfile>;

export const appArmorProfile = object(
  "core/v1.AppArmorProfile",
  {
    type: required(1, named("v1.AppArmorProfileType", documentedEnum("Unconfined", "RuntimeDefault", "Localhost"))),
    localhostProfile: pointer(2, string),
  },
  { unions: [{ discriminator: "type", members: ["localhostProfile"] }] },
);
export type AppArmorProfile = Infer<typeof appArmorProfile>;

export const capabilities = object("core/v1.Capabilities", {
  add: optional(1, list(named("v1.Capability", string))),
  drop: optional(2, list(named("v1.Capability", string))),
});
export type Capabilities = Infer<typeof capabilities>;

export const securityContext = object("core/v1.SecurityContext", {
  capabilities: pointer(1, capabilities),
  privileged: pointer(2, boolean),
  seLinuxOptions: pointer(3, seLinuxOptions),
  windowsOptions: pointer(10, windowsSecurityContextOptions),
  runAsUser: pointer(4, int64),
  runAsGroup: pointer(8, int64),
  runAsNonRoot: pointer(5, boolean),
  readOnlyRootFilesystem: pointer(6, boolean),
  allowPrivilegeEscalation: pointer(7, boolean),
  procMount: pointer(9, named("v1.ProcMountType", documentedEnum("Default", "Unmasked"))),
  seccompProfile: pointer(11, seccompProfile),
  appArmorProfile: pointer(12, appArmorProfile),
});
export type SecurityContext = Infer<typeof securityContext>;

export const sysctl = object("core/v1.Sysctl", {
  name: required(1, string),
  value: required(2, string),
});
export type Sysctl = Infer<typeof sysctl>;

export const podSecurityContext = object("core/v1.PodSecurityContext", {
  seLinuxOptions: pointer(1, seLinuxOptions),
  windowsOptions: pointer(8, windowsSecurityContextOptions),
  runAsUser: pointer(2, int64),
  runAsGroup: pointer(6, int64),
  runAsNonRoot: pointer(3, boolean),
  supplementalGroups: optional(4, list(int64)),
  supplementalGroupsPolicy: pointer(12, named("v1.SupplementalGroupsPolicy", documentedEnum("Merge", "Strict")), {
    featureGate: "SupplementalGroupsPolicy",
  }),
  fsGroup: pointer(5, int64),
  sysctls: optional(7, list(sysctl)),
  fsGroupChangePolicy: pointer(9, named("v1.PodFSGroupChangePolicy", documentedEnum("OnRootMismatch", "Always"))),
  seccompProfile: pointer(10, seccompProfile),
  appArmorProfile: pointer(11, appArmorProfile),
  seLinuxChangePolicy: pointer(13, named("v1.PodSELinuxChangePolicy", string), {
    featureGate: "SELinuxChangePolicy",
  }),
});
export type PodSecurityContext = Infer<typeof podSecurityContext>;
