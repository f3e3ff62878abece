/** The types of responses that are not API objects: Status, watch events, discovery, version. */
import {
  boolean,
  int32,
  list,
  named,
  object,
  optional,
  pointer,
  rawExtension,
  required,
  string,
} from "../../schema/define.ts";
import { listMeta } from "./list-meta.ts";
import { typeMeta } from "./type-meta.ts";

const statusCause = object("meta/v1.StatusCause", {
  reason: optional(1, named("v1.CauseType", string)),
  message: optional(2, string),
  field: optional(3, string),
});

const statusDetails = object("meta/v1.StatusDetails", {
  name: optional(1, string),
  group: optional(2, string),
  kind: optional(3, string),
  uid: optional(6, named("types.UID", string)),
  causes: optional(4, list(statusCause)),
  retryAfterSeconds: optional(5, int32),
});

export const statusResponse = object("meta/v1.Status", {
  ...typeMeta,
  metadata: optional(1, listMeta),
  status: optional(2, string),
  message: optional(3, string),
  reason: optional(4, named("v1.StatusReason", string)),
  details: pointer(5, statusDetails),
  code: optional(6, int32),
});

export const watchEventResponse = object("meta/v1.WatchEvent", {
  type: required(1, string),
  object: required(2, rawExtension),
});

const serverAddressByClientCIDR = object("meta/v1.ServerAddressByClientCIDR", {
  clientCIDR: required(1, string),
  serverAddress: required(2, string),
});

const groupVersionForDiscovery = object("meta/v1.GroupVersionForDiscovery", {
  groupVersion: required(1, string),
  version: required(2, string),
});

export const apiVersions = object("meta/v1.APIVersions", {
  ...typeMeta,
  versions: required(1, list(string)),
  serverAddressByClientCIDRs: required(2, list(serverAddressByClientCIDR)),
});

export const apiGroup = object("meta/v1.APIGroup", {
  ...typeMeta,
  name: required(1, string),
  versions: required(2, list(groupVersionForDiscovery)),
  preferredVersion: optional(3, groupVersionForDiscovery),
  serverAddressByClientCIDRs: optional(4, list(serverAddressByClientCIDR)),
});

export const apiGroupList = object("meta/v1.APIGroupList", {
  ...typeMeta,
  groups: required(1, list(apiGroup)),
});

const apiResource = object("meta/v1.APIResource", {
  name: required(1, string),
  singularName: required(6, string),
  namespaced: required(2, boolean),
  group: optional(8, string),
  version: optional(9, string),
  kind: required(3, string),
  verbs: required(4, named("v1.Verbs", list(string))),
  shortNames: optional(5, list(string)),
  categories: optional(7, list(string)),
  storageVersionHash: optional(10, string),
});

export const apiResourceList = object("meta/v1.APIResourceList", {
  ...typeMeta,
  groupVersion: required(1, string),
  resources: required(2, list(apiResource)),
});

export const versionInfo = object("version.Info", {
  major: required(0, string),
  minor: required(0, string),
  emulationMajor: optional(0, string),
  emulationMinor: optional(0, string),
  minCompatibilityMajor: optional(0, string),
  minCompatibilityMinor: optional(0, string),
  gitVersion: required(0, string),
  gitCommit: required(0, string),
  gitTreeState: required(0, string),
  buildDate: required(0, string),
  goVersion: required(0, string),
  compiler: required(0, string),
  platform: required(0, string),
});
